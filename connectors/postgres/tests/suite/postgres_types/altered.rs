//! Tables that change under an open sink and on a connection that knows them: noticed, and right again once the sink is opened anew.

use oncesink::{Class, Reason};

use crate::fixture::{Fixture, batch, failure};

const KEYS: &str = r#""key":["id"],"key_from":"value","delete":"none""#;

#[tokio::test]
async fn c079_an_altered_table_costs_one_try_on_a_connection_that_knows_its_statements() {
    for (mode, rows) in [
        ("insert", 5),
        ("insert", 300),
        ("upsert", 5),
        ("upsert", 1200),
        ("update", 5),
        ("update", 1200),
        ("insert-ignore", 1200),
    ] {
        let fixture =
            Fixture::new("c079", "CREATE TABLE t (id integer PRIMARY KEY, note text, at timestamptz)").await;
        let keys = if mode == "insert" { String::new() } else { format!(",{KEYS}") };
        let config = format!(r#"{{"table":{{"mode":"{mode}"{keys}}}}}"#);
        if mode == "update" {
            fixture.schema.execute("INSERT INTO t SELECT generate_series(0, 20000)").await;
        }
        let mut next = 0;
        let mut values = |fields: &str| -> Vec<String> {
            next += rows;
            (next - rows..next).map(|id| format!(r#"{{"id":{id}{fields}}}"#)).collect()
        };
        let mut sink = fixture.open(&config, &["t"]).await.unwrap();
        let first = batch(&values(r#","note":"x""#));
        let mut session = fixture.commit_on(fixture.session().await, &sink, &first).await.unwrap();
        for (alter, fields) in [
            ("ALTER TABLE t ALTER note TYPE varchar(80)", r#","note":"y""#),
            ("ALTER TABLE t ADD extra integer", r#","note":"z","extra":1"#),
            ("ALTER TABLE t ALTER extra TYPE bigint", r#","extra":2"#),
            ("ALTER TABLE t DROP at, ADD at integer[]", r#","at":[1,2]"#),
            ("ALTER TABLE t DROP extra", r#","note":"w""#),
            ("ALTER TABLE t RENAME note TO remark", r#","remark":"v""#),
        ] {
            fixture.schema.execute(alter).await;
            let values = values(fields);
            // A field that the open sink does not know yet is bad for it; then it is opened anew as well.
            let stale = match sink.encode(&batch(&values)) {
                Err(oncesink::SinkError::Bad(bad)) => {
                    assert!(
                        bad.iter().all(|bad| matches!(bad.reason, Reason::UnknownField | Reason::WrongType)),
                        "{bad:?}"
                    );
                    session
                }
                Err(other) => panic!("{other}"),
                Ok(_) => {
                    let (written, rest) = fixture.try_on(session, &sink, &batch(&values)).await;
                    let refused = failure(written.unwrap_err());
                    assert_eq!(refused.class, Class::StaleCatalog, "{mode} {rows} {alter}: {refused}");
                    rest.expect("the connection is still in use")
                }
            };
            sink = fixture.open(&config, &["t"]).await.unwrap();
            session = fixture.commit_on(stale, &sink, &batch(&values)).await.unwrap();
        }
        let expected = if mode == "update" { 20_001 } else { 7 * rows };
        assert_eq!(fixture.schema.count("t").await, expected, "{mode} {rows}");
        let last: i64 = fixture.schema.value("SELECT count(*) FROM t WHERE remark = 'v'").await;
        assert_eq!(last, rows, "{mode} {rows}");
    }
}

#[tokio::test]
async fn c173_identity_and_generated_columns_are_found_also_after_a_later_alter() {
    for rows in [1_i64, 300, 1200] {
        let fixture = Fixture::new(
            "c173",
            "CREATE TABLE t (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a integer, b integer, s integer GENERATED ALWAYS AS (a + b) STORED)",
        )
        .await;
        let values = |a: i64| -> Vec<String> {
            (1..=rows).map(|id| format!(r#"{{"id":{id},"a":{a},"b":2,"s":99}}"#)).collect()
        };
        let all = |mode: &str| match mode {
            "insert" => r#"{"table":{"mode":"insert"}}"#.to_owned(),
            mode => format!(r#"{{"table":{{"mode":"{mode}",{KEYS}}}}}"#),
        };
        let sum = |a: i64| format!("SELECT count(*) FROM t WHERE s = {a} + 2 AND a = {a} AND id <= {rows}");
        for (a, mode) in [(1, "insert"), (2, "upsert"), (3, "update")] {
            let sink = fixture.open(&all(mode), &["t"]).await.unwrap();
            fixture.write(&sink, &mut batch(&values(a))).await.unwrap();
            assert_eq!(fixture.schema.value::<i64>(&sum(a)).await, rows, "{mode} {rows}");
        }
        // By another key, the identity of a row that is there is not touched.
        fixture.schema.execute("ALTER TABLE t ADD k integer; UPDATE t SET k = id; ALTER TABLE t ALTER k SET NOT NULL, ADD UNIQUE (k)").await;
        let by_k = r#"{"table":{"mode":"upsert","key":["k"],"key_from":"value","delete":"none"}}"#;
        let sink = fixture.open(by_k, &["t"]).await.unwrap();
        let others: Vec<_> =
            (1..=rows).map(|k| format!(r#"{{"k":{k},"id":{},"a":4,"b":2}}"#, k + 100_000)).collect();
        fixture.write(&sink, &mut batch(&others)).await.unwrap();
        assert_eq!(fixture.schema.value::<i64>(&sum(4)).await, rows, "{rows}");
        // What was a plain column is generated from now on, and the other way round.
        fixture
            .schema
            .execute("ALTER TABLE t DROP s, ADD s integer DEFAULT 7; ALTER TABLE t DROP b, ADD b integer GENERATED ALWAYS AS (a * 2) STORED; ALTER TABLE t ALTER id SET GENERATED BY DEFAULT")
            .await;
        let stale: Vec<_> = (1..=rows).map(|k| format!(r#"{{"k":{k},"a":5}}"#)).collect();
        let refused = failure(fixture.write(&sink, &mut batch(&stale)).await.unwrap_err());
        assert_eq!(refused.class, Class::StaleCatalog, "{refused}");
        let sink = fixture.open(by_k, &["t"]).await.unwrap();
        let again: Vec<_> =
            (1..=rows).map(|k| format!(r#"{{"k":{k},"id":{k},"a":5,"b":99,"s":8}}"#)).collect();
        fixture.write(&sink, &mut batch(&again)).await.unwrap();
        let right: i64 =
            fixture.schema.value("SELECT count(*) FROM t WHERE b = 10 AND s = 8 AND id = k").await;
        assert_eq!((right, fixture.schema.count("t").await), (rows, rows));
    }
}
