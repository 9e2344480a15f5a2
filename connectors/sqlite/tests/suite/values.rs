//! Values as SQLite keeps them: their storage class, and what comes back.

use oncesink::Reason;

use crate::fixture::{Fixture, batch, failure, keyed};

/// A table of every kind of column, outside of STRICT, where affinities are at work.
const ALL: &str = "CREATE TABLE t (
    i INTEGER, s SMALLINT, r REAL, f FLOAT, n NUMERIC, d DECIMAL(20, 4), c VARCHAR(3), x TEXT, b BLOB, o BOOLEAN,
    day DATE, at TIME, w DATETIME, z TIMESTAMPTZ, u UUID, j JSON, jb JSONB, a)";

#[tokio::test]
async fn every_kind_comes_back_as_it_was_sent_whatever_its_affinity_on_sqlite() {
    let fixture = Fixture::new(ALL).await;
    let config = r#"{"table":{"columns":{"b":{"as":"hex"}}}}"#;
    fixture
        .put(config, &[r#"{
            "i": 9223372036854775807, "s": -32768, "r": 1, "f": 0.1, "n": "1.10", "d": 10000000000.0001, "c": "007", "x": "1e5", "b": "00ff",
            "o": true, "day": "2024-12-31", "at": "12:34:56", "w": "2024-12-31 23:59:59.5", "z": "2024-12-31T23:59:59+01:00",
            "u": "0E37DF36F69811E68DD4CB9CED3DF976", "j": 12, "jb": "12", "a": "007"
        }"#])
        .await
        .unwrap();
    let columns = "i s r f n d c x b o day at w z u j jb a".split(' ');
    let quoted: Vec<_> = columns.map(|name| format!("quote({name})")).collect();
    let rows = fixture.rows(&format!("SELECT concat_ws(' ', {}) FROM t", quoted.join(", "))).await;
    assert_eq!(
        rows,
        [
            "9223372036854775807 -32768 1.0 0.1 1.1 10000000000.0001 '007' '1e5' X'00FF' 1 '2024-12-31' '12:34:56.000000' \
          '2024-12-31T23:59:59.500000' '2024-12-31T22:59:59.000000Z' '0e37df36-f698-11e6-8dd4-cb9ced3df976' 12 '\"12\"' '007'"
        ]
    );
}

#[tokio::test]
async fn c037_declared_types_are_checked_by_us_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, d DATE)").await;
    let bad = fixture
        .bad(
            "{}",
            &[
                r#"{"id":1,"n":"abc"}"#,
                r#"{"id":2,"n":"12"}"#,
                r#"{"id":3,"n":18446744073709551615}"#,
                r#"{"id":4,"d":"31/12/2024"}"#,
            ],
        )
        .await;
    let found: Vec<_> = bad.iter().map(|bad| (bad.offset, bad.reason, bad.column.as_deref())).collect();
    assert_eq!(
        found,
        [
            (0, Reason::NotANumber, Some("n")),
            (2, Reason::OutOfRange, Some("n")),
            (3, Reason::NotATime, Some("d"))
        ]
    );
    assert!(bad.iter().all(|bad| bad.table.as_deref() == Some("t")), "{bad:?}");
    fixture.put("{}", &[r#"{"id":2,"n":"12"}"#]).await.unwrap();
    assert_eq!(fixture.rows("SELECT id || typeof(n) || n FROM t").await, ["2integer12"]);
}

#[tokio::test]
async fn constraints_are_bad_records_with_their_place_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER CHECK (n > 0))").await;
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let twice = fixture.write(&sink, &mut batch(&[r#"{"id":1}"#, r#"{"id":1}"#])).await.unwrap_err();
    let data = failure(twice).data.unwrap();
    assert_eq!(
        (data.reason, data.table.as_deref(), data.column.as_deref()),
        (Reason::Unique, Some("t"), Some("id"))
    );
    let check = fixture.write(&sink, &mut batch(&[r#"{"id":1,"n":-5}"#])).await.unwrap_err();
    let data = failure(check).data.unwrap();
    assert_eq!((data.reason, data.table.as_deref(), data.column), (Reason::Check, Some("t"), None));
    assert!(fixture.rows("SELECT id FROM t").await.is_empty());
}

#[tokio::test]
async fn a_key_in_a_json_column_is_always_a_document_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (k JSON, n INTEGER)").await;
    let sink = fixture.open(r#"{"table":{"columns":{"k":"key"}}}"#, &["t"]).await.unwrap();
    let mut records = keyed(&[
        ("abc", Some(r#"{"n":1}"#)),
        ("{\"a\": 1} ", Some(r#"{"n":2}"#)),
        ("007", Some(r#"{"n":3}"#)),
        ("[1, 2]", Some(r#"{"n":4}"#)),
    ]);
    fixture.write(&sink, &mut records).await.unwrap();
    assert_eq!(
        fixture.rows("SELECT k FROM t ORDER BY n").await,
        ["\"abc\"", "{\"a\": 1}", "\"007\"", "[1, 2]"]
    );
    assert_eq!(fixture.file.count("t WHERE json_valid(k)").await, 4);
}

#[tokio::test]
async fn c119_a_null_character_is_stored_unchanged_on_sqlite() {
    let fixture = Fixture::new("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)").await;
    fixture
        .put(
            "{}",
            &[
                r#"{"id":1,"note":"a"}"#,
                r#"{"id":2,"note":"ab\u0000cd"}"#,
                r#"{"id":3,"note":"\u0000"}"#,
                r#"{"id":4,"note":"b"}"#,
            ],
        )
        .await
        .unwrap();
    let kept = fixture.rows("SELECT hex(CAST(note AS BLOB)) FROM t ORDER BY id").await;
    assert_eq!(kept, ["61", "6162006364", "00", "62"]);
}
