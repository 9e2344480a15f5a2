//! Tables and keys that a start refuses, by name and with what helps.

use oncesink::{Reason, SinkError};

use crate::fixture::Fixture;

#[tokio::test]
async fn what_cannot_take_rows_exactly_once_is_refused_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE plain (id INTEGER PRIMARY KEY AUTOINCREMENT);
         CREATE VIEW looks AS SELECT * FROM plain;
         CREATE VIRTUAL TABLE words USING fts5 (word);
         CREATE TABLE ignoring (id INTEGER PRIMARY KEY ON CONFLICT IGNORE);
         CREATE TABLE replacing (id INTEGER, n INTEGER, UNIQUE (id, n) on conflict replace);
         CREATE TABLE rolling (id INTEGER NOT NULL ON CONFLICT ROLLBACK);
         CREATE TABLE failing (id INTEGER PRIMARY KEY ON CONFLICT FAIL)",
    )
    .await;
    for (table, says) in [
        ("looks", "table looks is a view; name the table behind it"),
        ("words", "table words is a virtual table: whether its rows commit together"),
        ("words_data", "table words_data is a part of a virtual table"),
        ("sqlite_sequence", "table sqlite_sequence is SQLite's own"),
        ("ignoring", "table ignoring is declared with ON CONFLICT IGNORE: rows would be lost in silence"),
        ("replacing", "declared with ON CONFLICT REPLACE"),
        ("rolling", "declared with ON CONFLICT ROLLBACK"),
    ] {
        let refusal = fixture.refusal("{}", table).await;
        assert!(refusal.contains(says), "{table}: {refusal}");
    }
    for table in ["plain", "failing"] {
        fixture.open("{}", &[table]).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_needs_an_index_that_tells_its_values_apart_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (
             id INTEGER PRIMARY KEY, plain TEXT, part TEXT, folded TEXT, trimmed TEXT, lowered TEXT, a TEXT, b TEXT COLLATE NOCASE, twice TEXT,
             j JSON, odd GEOMETRY, plain_not_unique TEXT);
         CREATE UNIQUE INDEX k1 ON t (plain);
         CREATE UNIQUE INDEX k2 ON t (part) WHERE part > '';
         CREATE UNIQUE INDEX k3 ON t (folded COLLATE NOCASE);
         CREATE UNIQUE INDEX k4 ON t (trimmed COLLATE RTRIM);
         CREATE UNIQUE INDEX k5 ON t (lower(lowered));
         CREATE UNIQUE INDEX k6 ON t (a, b COLLATE BINARY);
         CREATE UNIQUE INDEX k7 ON t (twice);
         CREATE UNIQUE INDEX k8 ON t (twice COLLATE NOCASE);
         CREATE UNIQUE INDEX k9 ON t (j);
         CREATE UNIQUE INDEX k10 ON t (odd);
         CREATE INDEX k11 ON t (plain_not_unique)",
    )
    .await;
    let upsert = |key: &str| {
        format!(r#"{{"table":{{"mode":"upsert","key":[{key}],"key_from":"value","delete":"none"}}}}"#)
    };
    for key in ["\"id\"", "\"plain\"", "\"a\",\"b\"", "\"b\",\"a\""] {
        fixture.open(&upsert(key), &["t"]).await.unwrap();
    }
    for (key, says) in [
        ("\"part\"", "key = (part): table t has no unique index on exactly these columns"),
        ("\"folded\"", "has collation NOCASE, which takes different texts for one key"),
        ("\"trimmed\"", "has collation RTRIM"),
        ("\"lowered\"", "no unique index on exactly these columns"),
        ("\"a\"", "(id))"),
        ("\"twice\"", "has collation NOCASE"),
        ("\"j\"", "key column t.j is JSON"),
        ("\"odd\"", "key column t.odd is GEOMETRY"),
        ("\"plain_not_unique\"", "CREATE UNIQUE INDEX .. ON \"t\" (\"plain_not_unique\")"),
        ("\"rowid\"", "table t has no column \"rowid\""),
    ] {
        let refusal = fixture.refusal(&upsert(key), "t").await;
        assert!(refusal.contains(says), "{key}: {refusal}");
    }
}

#[tokio::test]
async fn a_type_that_is_not_known_is_named_once_a_record_brings_a_value_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER, s STRING, a ANY, p POINT DEFAULT 'x')").await;
    fixture.put("{}", &[r#"{"id":1}"#, r#"{"id":2,"p":null}"#]).await.unwrap();
    let bad = fixture.bad("{}", &[r#"{"s":"007"}"#, r#"{"a":"007"}"#, r#"{"p":[1,2]}"#]).await;
    let said: Vec<_> = bad.iter().map(|bad| bad.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "field \"s\": column t.s STRING is of a type that this version does not write",
            "field \"a\": column t.a ANY is of a type that this version does not write",
            "field \"p\": column t.p POINT is of a type that this version does not write",
        ]
    );
    assert!(bad.iter().all(|bad| bad.reason == Reason::WrongType));
    assert_eq!(fixture.rows("SELECT id || coalesce(p, '-') FROM t").await, ["1x", "2-"]);
}

#[tokio::test]
async fn a_computed_column_is_known_and_left_out_and_cannot_be_mapped_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (id INTEGER, twice INTEGER AS (id * 2) VIRTUAL NOT NULL, thrice INTEGER AS (id * 3) STORED)",
    )
    .await;
    fixture.put("{}", &[r#"{"id":1,"twice":"whatever","thrice":{}}"#]).await.unwrap();
    assert_eq!(fixture.rows("SELECT id || twice || thrice FROM t").await, ["123"]);
    let refusal = fixture.refusal(r#"{"table":{"columns":{"twice":"value.x"}}}"#, "t").await;
    assert!(refusal.contains("columns.twice: the column is computed by the database"), "{refusal}");
}

#[tokio::test]
async fn readings_that_do_not_suit_a_column_are_refused_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (n INTEGER, d DATE, b BLOB, x TEXT)").await;
    for (column, reading) in [("n", "epoch-ms"), ("d", "hex"), ("b", "json-text"), ("x", "base64")] {
        let config = format!(r#"{{"table":{{"columns":{{"{column}":{{"as":"{reading}"}}}}}}}}"#);
        let refusal = fixture.refusal(&config, "t").await;
        assert!(
            refusal.contains(&format!("as = \"{reading}\" does not suit column t.{column}")),
            "{refusal}"
        );
    }
}

#[tokio::test]
async fn rows_that_are_there_are_seen_in_insert_mode_only_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE e (id INTEGER); INSERT INTO t VALUES (1)",
    )
    .await;
    let upsert = r#"{"table":{"mode":"upsert","key":["id"],"delete":"none"}}"#;
    for (config, topic, holds) in [("{}", "t", true), ("{}", "e", false), (upsert, "t", false)] {
        let sink = fixture.open(config, &[topic]).await.unwrap();
        let mut tx = fixture.begin().await;
        let found: Result<bool, SinkError> = sink.holds_rows(&mut tx, topic).await;
        assert_eq!(found.unwrap(), holds, "{config} {topic}");
    }
}
