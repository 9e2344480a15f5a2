//! Starts that are refused, each by one message that names the object and the remedy; and a catalog that changes under an open sink.

use oncesink::{Batch, Class};

use crate::fixture::{Fixture, batch, failure, part};

#[tokio::test]
async fn unfit_tables_are_refused_by_name() {
    let fixture = Fixture::new(
        "unfit",
        r#"CREATE TABLE "Lonely_Orders" (n integer);
           CREATE VIEW a_view AS SELECT 1 AS n;
           CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS n;
           CREATE UNLOGGED TABLE unlogged (n integer);
           CREATE TABLE ruled (n integer);
           CREATE RULE nothing AS ON INSERT TO ruled DO INSTEAD NOTHING;
           CREATE TABLE empty ();
           CREATE TABLE parted (n integer) PARTITION BY RANGE (n);
           CREATE UNLOGGED TABLE part_one PARTITION OF parted FOR VALUES FROM (0) TO (10);"#,
    )
    .await;
    let schema = fixture.schema.name();
    for (topic, expected) in [
        ("nowhere", "no table nowhere on the search_path".to_owned()),
        (
            "nowhere",
            r#"Create it, or name another in [sinks.<name>.table] table = "schema.table""#.to_owned(),
        ),
        ("lonely_orders", format!(r#"there is {schema}."Lonely_Orders": names are compared exactly"#)),
        ("a_view", "is a view; name the table behind it".to_owned()),
        ("a_matview", "is a materialized view".to_owned()),
        (
            "unlogged",
            format!(
                r#"is unlogged: a crash would empty it and keep the offsets. ALTER TABLE "{schema}"."unlogged" SET LOGGED"#
            ),
        ),
        ("ruled", "has a rule on INSERT".to_owned()),
        ("empty", "has no columns".to_owned()),
        ("parted", "part_one that is foreign or unlogged".to_owned()),
    ] {
        let message = fixture.refusal("{}", topic).await;
        assert!(message.contains(&expected), "{topic}: {message}");
    }
}

#[tokio::test]
async fn mistaken_keys_are_refused_with_their_section() {
    let fixture = Fixture::new("keys", "CREATE TABLE t (n integer, note text)").await;
    for (config, expected) in [
        (r#"{"table":{"table":"a.b.c"}}"#, "[sinks.<name>.table]: table = \"a.b.c\" has more than one dot"),
        (r#"{"tables":{"t":{"table":"${key}"}}}"#, "[sinks.<name>.tables.\"t\"]: unknown ${key}"),
        (r#"{"tables":{"t":{"table":"no_such.t"}}}"#, "no table no_such.t"),
        (r#"{"table":{"zone":"Mars/Olympus"}}"#, "zone = \"Mars/Olympus\" is not known"),
        (r#"{"table":{"unknown_fields":"column:extra"}}"#, "has no such column (it has n, note)"),
        (r#"{"table":{"unknown_fields":"column:note"}}"#, "note is text; it must be json or jsonb"),
    ] {
        let message = fixture.refusal(config, "t").await;
        assert!(message.contains(expected), "{config}: {message}");
    }
}

#[tokio::test]
async fn missing_grants_are_refused_with_the_statement_that_helps() {
    let fixture = Fixture::new("grants", "CREATE TABLE t (a integer, b integer, extra jsonb)").await;
    let schema = fixture.schema.name();
    let role = format!("role_{schema}");
    fixture.schema.execute(&format!("CREATE ROLE {role} LOGIN")).await;
    let theirs = fixture.acting_as(&role);
    let shut = oncesink_test_support::unique("shut");
    fixture.schema.execute(&format!("CREATE SCHEMA {shut}; CREATE TABLE {shut}.t (n integer); GRANT USAGE ON SCHEMA {schema} TO {role}")).await;
    let message = theirs.refusal(&format!(r#"{{"table":{{"table":"{shut}.t"}}}}"#), "t").await;
    assert!(message.contains(&format!(r#"GRANT USAGE ON SCHEMA "{shut}" TO "{role}""#)), "{message}");
    let message = theirs.refusal("{}", "t").await;
    assert!(message.contains(&format!(r#"GRANT INSERT ON "{schema}"."t" TO "{role}""#)), "{message}");
    // Some columns are enough, as long as records carry no other.
    fixture.schema.execute(&format!("GRANT INSERT (a) ON t TO {role}")).await;
    theirs.put("{}", &[r#"{"a":1}"#, "{}"]).await.unwrap();
    let message = theirs.refusal(r#"{"table":{"unknown_fields":"column:extra"}}"#, "t").await;
    assert!(message.contains(r#"GRANT INSERT ("extra") ON"#), "{message}");
    let refused = failure(theirs.put("{}", &[r#"{"b":1}"#]).await.unwrap_err());
    assert_eq!(refused.sql_state.as_deref(), Some("42501"));
    assert_eq!(fixture.schema.count("t").await, 2);
}

#[tokio::test]
async fn partitioned_tables_take_rows() {
    let fixture = Fixture::new(
        "parted",
        "CREATE TABLE t (n integer) PARTITION BY RANGE (n);
         CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10);
         CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (10000);",
    )
    .await;
    let values: Vec<_> = (0..300).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    fixture.write(&sink, &mut batch(&values)).await.unwrap();
    assert_eq!((fixture.schema.count("low").await, fixture.schema.count("high").await), (10, 290));
}

#[tokio::test]
async fn a_changed_column_is_never_fed_bytes_of_its_old_type() {
    // Eight bytes are eight bytes to a binary COPY: a bigint would become some double, a numeric(12,2) would round.
    for (from, to, value) in [
        ("bigint", "double precision", "4607182418800017408"),
        ("numeric(12,2)", "numeric(12,1)", "0.25"),
        ("varchar(10)", "varchar(3)", "\"abc   \""),
        ("integer", "bigint", "7"),
        ("text", "jsonb USING to_jsonb(v)", "\"x\""),
        ("text", "numeric USING 1", "\"x\""),
    ] {
        for rows in [1, 300] {
            let fixture = Fixture::new("altered", &format!("CREATE TABLE t (v {from})")).await;
            let sink = fixture.open("{}", &["t"]).await.unwrap();
            let values = vec![format!(r#"{{"v":{value}}}"#); rows];
            fixture.schema.execute(&format!("ALTER TABLE t ALTER v TYPE {to}")).await;
            let refused = failure(fixture.write(&sink, &mut batch(&values)).await.unwrap_err());
            assert_eq!(refused.class, Class::StaleCatalog, "{from} {rows}: {refused}");
            assert_eq!(fixture.schema.count("t").await, 0);
        }
    }
}

#[tokio::test]
async fn a_table_put_in_the_place_of_another_is_noticed() {
    let fixture = Fixture::new("replaced", "CREATE TABLE t (n integer)").await;
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let one = || Batch::new(vec![part("t", 0, [Some(&b"{\"n\":1}"[..])].into_iter())]);
    fixture.write(&sink, &mut one()).await.unwrap();
    fixture.schema.execute("ALTER TABLE t RENAME TO old; CREATE UNLOGGED TABLE t (n integer)").await;
    let refused = failure(fixture.write(&sink, &mut one()).await.unwrap_err());
    assert_eq!(refused.class, Class::StaleCatalog);
    assert!(fixture.refusal("{}", "t").await.contains("is unlogged"));
}
