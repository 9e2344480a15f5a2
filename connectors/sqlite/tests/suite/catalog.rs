//! What the catalog says of a table: its keys, its nulls, its defaults, and whether it is still the same.

use oncesink::{Class, Reason};

use crate::fixture::{Fixture, batch, failure};

#[tokio::test]
async fn a_rowid_that_is_named_is_a_key_without_nulls_that_fills_itself_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)").await;
    fixture.put("{}", &[r#"{"n":1}"#, r#"{"id":7,"n":2}"#, "{}"]).await.unwrap();
    assert_eq!(
        fixture.rows("SELECT id || ':' || coalesce(n, '-') FROM t ORDER BY id").await,
        ["1:1", "7:2", "8:-"]
    );
    // SQLite would make up a number.
    let bad = fixture.bad("{}", &[r#"{"id":null,"n":3}"#]).await;
    assert_eq!((bad[0].reason, bad[0].column.as_deref()), (Reason::NullInNotNull, Some("id")));
    assert_eq!(bad[0].sql_state.as_deref(), Some("SQLITE_CONSTRAINT_NOTNULL"));
}

#[tokio::test]
async fn other_primary_keys_take_nulls_as_they_are_declared_on_sqlite() {
    for (table, null) in [
        ("CREATE TABLE t (k TEXT PRIMARY KEY)", true),
        // No name for the rowid, by an exception of SQLite's.
        ("CREATE TABLE t (k INTEGER PRIMARY KEY DESC)", true),
        ("CREATE TABLE t (k INT PRIMARY KEY)", true),
        ("CREATE TABLE t (k TEXT PRIMARY KEY) WITHOUT ROWID", false),
        ("CREATE TABLE t (k TEXT PRIMARY KEY) STRICT", false),
        ("CREATE TABLE t (k TEXT PRIMARY KEY NOT NULL)", false),
    ] {
        let fixture = Fixture::new(table).await;
        if null {
            fixture.put("{}", &[r#"{"k":null}"#, "{}"]).await.unwrap();
            assert_eq!(
                fixture.rows("SELECT CAST(count(*) AS TEXT) FROM t WHERE k IS NULL").await,
                ["2"],
                "{table}"
            );
        } else {
            let bad = fixture.bad("{}", &[r#"{"k":null}"#, "{}"]).await;
            let reasons: Vec<_> = bad.iter().map(|bad| bad.reason).collect();
            assert_eq!(reasons, [Reason::NullInNotNull, Reason::MissingField], "{table}");
        }
        let upsert = r#"{"table":{"mode":"upsert","key":["k"],"key_from":"value","delete":"none"}}"#;
        let bad = fixture.bad(upsert, &[r#"{"k":null}"#]).await;
        assert_eq!(bad[0].reason, Reason::NullInKey, "{table}");
    }
}

#[tokio::test]
async fn strict_tables_take_the_same_values_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (id INT PRIMARY KEY, r REAL, x TEXT, b BLOB, a ANY, n INTEGER NOT NULL DEFAULT (1 + 1)) STRICT",
    )
    .await;
    let config = r#"{"table":{"columns":{"b":{"as":"utf8"}}}}"#;
    fixture
        .put(config, &[r#"{"id":"1","r":2,"x":3,"b":"4","a":"05","n":6}"#, r#"{"id":2,"a":5.50}"#])
        .await
        .unwrap();
    let sql = "SELECT concat_ws(' ', quote(id), quote(r), quote(x), quote(b), quote(a), quote(n)) FROM t ORDER BY id";
    assert_eq!(fixture.rows(sql).await, ["1 2.0 '3' X'34' '05' 6", "2 NULL NULL NULL 5.5 2"]);
    let bad = fixture.bad(config, &[r#"{"id":"x"}"#, r#"{"id":3,"r":"y"}"#]).await;
    assert!(bad.iter().all(|bad| bad.reason == Reason::NotANumber), "{bad:?}");
}

#[tokio::test]
async fn rows_without_any_field_are_rows_of_defaults_in_every_mode_on_sqlite() {
    for (table, expected) in [
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER DEFAULT 5)", "1:5 2:5"),
        ("CREATE TABLE t (n INTEGER DEFAULT (2 + 3), id INTEGER DEFAULT 1 UNIQUE)", "1:5"),
        (
            "CREATE TABLE t (x INTEGER AS (n) VIRTUAL, n INTEGER DEFAULT 5, id INTEGER DEFAULT 1 PRIMARY KEY) WITHOUT ROWID",
            "1:5",
        ),
    ] {
        let fixture = Fixture::new(table).await;
        fixture.put(r#"{"table":{"mode":"insert-ignore"}}"#, &["{}", "{}"]).await.unwrap();
        let rows = fixture.rows("SELECT group_concat(id || ':' || n, ' ') FROM t").await;
        assert_eq!(rows, [expected], "{table}");
    }
}

#[tokio::test]
async fn c079_a_table_that_was_altered_is_noticed_before_a_row_is_written_on_sqlite() {
    for (change, stale) in [
        ("ALTER TABLE t ADD COLUMN c INTEGER", true),
        ("ALTER TABLE t RENAME COLUMN n TO m", true),
        ("ALTER TABLE t RENAME TO u", true),
        ("DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT)", true),
        ("DROP INDEX k", true),
        ("CREATE UNIQUE INDEX l ON t (n)", true),
        ("DROP TABLE t", true),
        ("CREATE TABLE other (id INTEGER)", false),
        ("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END", false),
        ("VACUUM", false),
    ] {
        let fixture =
            Fixture::new("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); CREATE INDEX k ON t (n)").await;
        let sink = fixture.open("{}", &["t"]).await.unwrap();
        fixture.file.execute(change).await;
        let written = fixture.write(&sink, &mut batch(&[r#"{"id":1,"n":1}"#])).await;
        if stale {
            let found = failure(written.unwrap_err());
            assert_eq!((found.class, found.session_alive), (Class::StaleCatalog, true), "{change}");
            assert!(found.message.contains("table t was altered"), "{found}");
        } else {
            written.unwrap_or_else(|error| panic!("{change}: {error}"));
        }
    }
}

#[tokio::test]
async fn two_topics_of_one_table_are_written_together_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER PRIMARY KEY)").await;
    let sink = fixture.open(r#"{"table":{"table":"t"}}"#, &["t", "other"]).await.unwrap();
    assert_eq!(
        (sink.table("t"), sink.table("other"), sink.table("new")),
        ("t".into(), "t".into(), "new".into())
    );
}
