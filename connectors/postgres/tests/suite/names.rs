//! Names of every kind reach the catalog as they are, and never become SQL.

use crate::fixture::{Fixture, batch, part};
use oncesink::postgres::Postgres;
use oncesink::{Batch, Counts, Sink, Written};

#[tokio::test]
async fn hostile_names_are_names() {
    let long = "é".repeat(31) + "x";
    for (index, name) in [
        r#"a"; DROP TABLE t; --"#,
        "Upper",
        "select",
        "a.b",
        "a b",
        "$1",
        "'",
        "\\",
        "ünï😀",
        &long,
        "a,b)",
        "%s%I",
        "{}",
    ]
    .into_iter()
    .enumerate()
    {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let fixture = Fixture::new(
            &format!("names{index}"),
            &format!("CREATE TABLE {quoted} ({quoted} integer, other integer DEFAULT 1)"),
        )
        .await;
        let field = serde_json::Value::from(name).to_string();
        let sink = fixture.open("{}", &[name]).await.unwrap();
        let values: Vec<_> = (0..210).map(|n| format!("{{{field}:{n}}}")).collect();
        let few = || values.iter().take(3).map(|value| Some(value.as_bytes()));
        let many = || values.iter().map(|value| Some(value.as_bytes()));
        fixture.write(&sink, &mut Batch::new(vec![part(name, 0, few())])).await.unwrap();
        fixture.write(&sink, &mut Batch::new(vec![part(name, 0, many())])).await.unwrap();
        assert_eq!(fixture.schema.count(&quoted).await, 213, "{name}");
        assert_eq!(sink.table(name), format!("{}.{name}", fixture.schema.name()));
    }
}

#[tokio::test]
async fn hostile_values_are_values() {
    let fixture = Fixture::new("hostile", "CREATE TABLE t (s text, j jsonb)").await;
    let hostile = [
        "'; DROP TABLE t; --",
        "$1",
        "\\.",
        "\\N",
        "NULL",
        "{}",
        "{NULL}",
        "\"",
        "\t\n\r",
        "\u{feff}",
        "PGCOPY\n",
        "😀",
    ];
    for times in [1, 20] {
        let values: Vec<_> = hostile
            .iter()
            .cycle()
            .take(hostile.len() * times)
            .map(|text| serde_json::json!({ "s": text, "j": { *text: text } }).to_string())
            .collect();
        let sink = fixture.open("{}", &["t"]).await.unwrap();
        fixture.write(&sink, &mut batch(&values)).await.unwrap();
    }
    let mut found: Vec<String> = fixture
        .schema
        .column("SELECT s FROM t WHERE j = jsonb_build_object(s, s) GROUP BY s HAVING count(*) = 21")
        .await;
    found.sort();
    let mut expected = hostile.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_dot_from_the_topic_never_separates() {
    let fixture = Fixture::new("dots", r#"CREATE TABLE "shop.orders" (n integer)"#).await;
    let schema = fixture.schema.name().to_owned();
    let sink = fixture
        .open(&format!(r#"{{"table":{{"table":"{schema}.${{topic}}"}}}}"#), &["shop.orders"])
        .await
        .unwrap();
    assert_eq!(sink.table("shop.orders"), format!("{schema}.shop.orders"));
    fixture
        .write(&sink, &mut Batch::new(vec![part("shop.orders", 0, [Some(&b"{\"n\":1}"[..])].into_iter())]))
        .await
        .unwrap();
    assert_eq!(fixture.schema.count("\"shop.orders\"").await, 1);
}

#[tokio::test]
async fn several_topics_go_to_several_tables_in_one_batch() {
    let fixture = Fixture::new("topics", "CREATE TABLE a (n integer); CREATE TABLE b (n integer)").await;
    let config = r#"{"tables":{"to.b":{"table":"b","delete":"none"},"also.b":{"table":"b","unknown_fields":"ignore"}}}"#;
    let sink = fixture.open(config, &["a", "to.b", "also.b"]).await.unwrap();
    let value = |n: i32| format!(r#"{{"n":{n}}}"#);
    let (one, two, three) = (value(1), value(2), r#"{"n":3,"more":1}"#);
    let mut batch = Batch::new(vec![
        part("a", 0, [Some(one.as_bytes())].into_iter()),
        part("to.b", 0, [None, Some(two.as_bytes())].into_iter()),
        part("also.b", 1, [Some(three.as_bytes())].into_iter()),
    ]);
    let written = fixture.write(&sink, &mut batch).await.unwrap();
    let mut expected = Written::default();
    for (topic, records, skipped) in [("a", 1, 0), ("to.b", 1, 1), ("also.b", 1, 0)] {
        *expected.topic(&topic.into()) = Counts { records, skipped, ..Counts::default() };
    }
    assert_eq!(written, expected);
    assert_eq!(fixture.schema.column::<i32>("SELECT n FROM a").await, [1]);
    assert_eq!(
        Sink::<Postgres>::target(&sink, "also.b"),
        format!("{}.b", fixture.schema.name()),
        "part of the sink's identity"
    );
    assert_eq!(fixture.schema.column::<i32>("SELECT n FROM b ORDER BY n").await, [2, 3]);
    let unknown =
        sink.encode(&Batch::new(vec![part("c", 0, [Some(one.as_bytes())].into_iter())])).err().unwrap();
    assert_eq!(crate::fixture::failure(unknown).class, oncesink::Class::StaleCatalog);
}
