//! Names of tables and columns: compared exactly, although SQLite itself folds their case, and quoted whatever they hold.

use oncesink::Reason;

use crate::fixture::{Fixture, batch_of};

#[tokio::test]
async fn fields_that_differ_by_case_are_two_fields_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER, Name TEXT)").await;
    let bad = fixture.bad("{}", &[r#"{"id":1,"name":"x"}"#, r#"{"ID":1}"#]).await;
    assert!(bad.iter().all(|bad| bad.reason == Reason::UnknownField), "{bad:?}");
    let ignoring = r#"{"table":{"unknown_fields":"ignore"}}"#;
    fixture.put(ignoring, &[r#"{"id":1,"Name":"x","name":"y","NAME":"z"}"#]).await.unwrap();
    assert_eq!(fixture.rows("SELECT id || Name FROM t").await, ["1x"]);
}

#[tokio::test]
async fn names_are_quoted_whatever_they_hold_on_sqlite() {
    const TABLE: &str = r#"a"".b'; DROP TABLE u; --"#;
    const COLUMN: &str = r#"order"" [x]"#;
    let fixture = Fixture::new(&format!(
        r#"CREATE TABLE u (id); CREATE TABLE "{TABLE}" (id INTEGER PRIMARY KEY, "{COLUMN}" TEXT, "rowid" TEXT)"#
    ))
    .await;
    let topic = TABLE.replace("\"\"", "\"");
    let sink = fixture
        .open(r#"{"table":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"}}"#, &[&topic])
        .await
        .unwrap();
    assert_eq!(sink.table(&topic), topic);
    let mut batch = batch_of(&topic, &[r#"{"id":1,"order\" [x]":"a","rowid":"r"}"#]);
    fixture.write(&sink, &mut batch).await.unwrap();
    let mut batch = batch_of(&topic, &[r#"{"id":1,"order\" [x]":"b"}"#]);
    fixture.write(&sink, &mut batch).await.unwrap();
    assert_eq!(fixture.rows(&format!(r#"SELECT id || "{COLUMN}" || "rowid" FROM "{TABLE}""#)).await, ["1br"]);
    assert!(fixture.rows("SELECT id FROM u").await.is_empty());
}

#[tokio::test]
async fn a_schema_is_main_or_refused_with_the_reason_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE Orders (id INTEGER)").await;
    let at = |table: &str| format!(r#"{{"table":{{"table":"{table}"}}}}"#);
    fixture.open(&at("main.Orders"), &["t"]).await.unwrap();
    for (table, says) in [
        ("orders", "there is Orders: names are compared exactly"),
        ("nowhere", "no table nowhere in the file. Create it, or name another in [sinks.<name>.table] table"),
        ("temp.Orders", "no table temp.Orders: a temporary table ends with its connection"),
        ("sales.Orders", "other files are never attached"),
        ("MAIN.Orders", "The only schema is main"),
    ] {
        let refusal = fixture.refusal(&at(table), "t").await;
        assert!(refusal.contains(says), "{table}: {refusal}");
    }
}
