//! Rows by key, whatever the shapes of the statements that write them.

use oncesink::{Reason, SinkError};

use crate::fixture::{Fixture, batch, failure, keyed};

const UPSERT: &str = r#"{"table":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"}}"#;
const BY_KEY: &str = r#"{"table":{"mode":"upsert","key":["id"],"delete":"tombstone"}}"#;
const UPDATE: &str = r#"{"table":{"mode":"update","key":["id"],"key_from":"value","delete":"none"}}"#;

/// Sizes on either side of where another shape begins.
const SIZES: [i64; 6] = [1, 9, 10, 99, 100, 1234];

#[tokio::test]
async fn every_row_is_written_once_whatever_the_size_on_sqlite() {
    for rows in SIZES {
        let fixture = Fixture::new(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER DEFAULT 7);
             CREATE TABLE child (id INTEGER REFERENCES t ON DELETE CASCADE);
             CREATE TABLE seen (op TEXT);
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 2 FROM n WHERE n < 2499) INSERT INTO t SELECT n, 0, 5 FROM n;
             INSERT INTO child SELECT id FROM t;
             CREATE TRIGGER i AFTER INSERT ON t BEGIN INSERT INTO seen VALUES ('INSERT'); END;
             CREATE TRIGGER u AFTER UPDATE ON t BEGIN INSERT INTO seen VALUES ('UPDATE'); END;
             CREATE TRIGGER d AFTER DELETE ON t BEGIN INSERT INTO seen VALUES ('DELETE'); END;",
        )
        .await;
        let sink = fixture.open(UPSERT, &["t"]).await.unwrap();
        let values: Vec<_> = (1..=rows).rev().map(|id| format!(r#"{{"a":{id},"id":{id}}}"#)).collect();
        let written = fixture.write(&sink, &mut batch(&values)).await.unwrap();
        assert_eq!(written.total().records as i64, rows);
        let wrong: i64 = fixture
            .file
            .value(&format!(
                "SELECT count(*) FROM t WHERE (id <= {rows}) IS NOT (a = id) OR b <> CASE id % 2 WHEN 1 THEN 5 ELSE 7 END"
            ))
            .await;
        assert_eq!(wrong, 0, "{rows}");
        assert_eq!(fixture.file.count("child").await, 1250, "no child row goes");
        let odd = (rows + 1) / 2;
        let mut expected = vec![format!("UPDATE{odd}")];
        if rows > odd {
            expected.insert(0, format!("INSERT{}", rows - odd));
        }
        let seen = fixture.rows("SELECT op || count(*) FROM seen GROUP BY op ORDER BY 1").await;
        assert_eq!(seen, expected, "{rows}");
    }
}

#[tokio::test]
async fn keys_are_told_apart_by_every_byte_on_sqlite() {
    for (table, update) in [
        ("CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER)", true),
        (
            "CREATE TABLE t (id TEXT COLLATE NOCASE, n INTEGER); CREATE UNIQUE INDEX k ON t (id COLLATE BINARY)",
            true,
        ),
        ("CREATE TABLE t (id PRIMARY KEY, n INTEGER) WITHOUT ROWID", true),
    ] {
        let fixture = Fixture::new(table).await;
        let sink = fixture.open(BY_KEY, &["t"]).await.unwrap();
        let put = |key: &'static str, n: &'static str| (key, Some(n));
        let mut records = keyed(&[
            put("\"a\"", r#"{"n":1}"#),
            put("\"A\"", r#"{"n":2}"#),
            put("\"a \"", r#"{"n":3}"#),
            put("\"a\\u0000\"", r#"{"n":4}"#),
            put("\"7\"", r#"{"n":5}"#),
        ]);
        fixture.write(&sink, &mut records).await.unwrap();
        let all = "SELECT CAST(n AS TEXT) FROM t ORDER BY n";
        assert_eq!(fixture.rows(all).await, ["1", "2", "3", "4", "5"], "{table}");
        if update {
            let sink = fixture.open(UPDATE, &["t"]).await.unwrap();
            fixture.write(&sink, &mut batch(&[r#"{"id":"A","n":20}"#])).await.unwrap();
            assert_eq!(fixture.rows(all).await, ["1", "3", "4", "5", "20"], "{table}");
            let bad = fixture.write(&sink, &mut batch(&[r#"{"id":"B","n":20}"#])).await.unwrap_err();
            assert!(matches!(bad, SinkError::Bad(_)), "{table}: {bad}");
        }
        let sink = fixture.open(BY_KEY, &["t"]).await.unwrap();
        fixture.write(&sink, &mut keyed(&[("\"a\"", None), ("\"A \"", None)])).await.unwrap();
        assert_eq!(fixture.rows(all).await, ["3", "4", "5", "20"], "{table}");
    }
}

#[tokio::test]
async fn keys_of_several_columns_meet_their_rows_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (n DECIMAL(10, 2), v TEXT, day DATE, u UUID, PRIMARY KEY (u, day, n)) WITHOUT ROWID",
    )
    .await;
    let keys = r#""key":["n","day","u"],"key_from":"value""#;
    let row = |nth: u32, v: u32| {
        format!(
            r#"{{"n":{nth}.50,"day":"2026-01-{:02}","u":"00000000-0000-0000-0000-{nth:012}","v":"{v}"}}"#,
            nth % 28 + 1
        )
    };
    for (mode, v) in [("upsert", 1), ("upsert", 2), ("update", 3)] {
        let values: Vec<_> = (0..250).map(|nth| row(nth, v)).collect();
        let config = format!(r#"{{"table":{{"mode":"{mode}","delete":"none",{keys}}}}}"#);
        fixture.put(&config, &values).await.unwrap();
        let found = fixture.rows("SELECT count(*) || min(v) || max(v) FROM t").await;
        assert_eq!(found, [format!("250{v}{v}")], "{mode}");
    }
    let sink = fixture
        .open(r#"{"table":{"mode":"upsert","delete":"tombstone","key":["n","day","u"]}}"#, &["t"])
        .await
        .unwrap();
    let keys: Vec<_> = (0..120).map(|nth| row(nth, 0).replace(r#","v":"0""#, "")).collect();
    let deletes: Vec<_> = keys.iter().map(|key| (key.as_str(), None)).collect();
    fixture.write(&sink, &mut keyed(&deletes)).await.unwrap();
    assert_eq!(fixture.rows("SELECT count(*) || ' ' || min(n) FROM t").await, ["130 120.5"]);
}

#[tokio::test]
async fn an_update_names_the_records_without_a_row_and_changes_nothing_on_sqlite() {
    for rows in SIZES {
        let fixture = Fixture::new(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT NOT NULL);
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1234) INSERT INTO t SELECT n, 0, 'kept' FROM n;",
        )
        .await;
        let sink = fixture.open(UPDATE, &["t"]).await.unwrap();
        let mut values: Vec<_> = (1..=rows).map(|id| format!(r#"{{"id":{id},"a":{id}}}"#)).collect();
        fixture.write(&sink, &mut batch(&values)).await.unwrap();
        let sum = "SELECT count(*) || ' ' || sum(a) || min(b) || max(b) FROM t";
        let after = [format!("1234 {}keptkept", rows * (rows + 1) / 2)];
        assert_eq!(fixture.rows(sum).await, after);
        values.push(r#"{"id":5000,"a":1}"#.to_owned());
        values.insert(0, r#"{"id":5001}"#.to_owned());
        match fixture.write(&sink, &mut batch(&values)).await {
            Err(SinkError::Bad(bad)) => {
                let mut places: Vec<_> = bad.iter().map(|bad| (bad.offset, bad.reason)).collect();
                places.sort();
                assert_eq!(places, [(0, Reason::MissingRow), (rows + 1, Reason::MissingRow)]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fixture.rows(sum).await, after);
    }
}

#[tokio::test]
async fn insert_ignore_passes_over_keys_and_nothing_else_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, code TEXT UNIQUE, n INTEGER CHECK (n > 0)); INSERT INTO t VALUES (1, 'a', 1)",
    )
    .await;
    let any = r#"{"table":{"mode":"insert-ignore"}}"#;
    let by_id = r#"{"table":{"mode":"insert-ignore","key":["id"],"key_from":"value"}}"#;
    fixture
        .put(any, &[r#"{"id":1,"n":9}"#, r#"{"id":2,"code":"a","n":9}"#, r#"{"id":3,"n":3}"#])
        .await
        .unwrap();
    fixture.put(by_id, &[r#"{"id":1,"n":9}"#, r#"{"id":4,"n":4}"#]).await.unwrap();
    assert_eq!(fixture.rows("SELECT id || ':' || n FROM t ORDER BY id").await, ["1:1", "3:3", "4:4"]);
    for (config, value, reason) in
        [(any, r#"{"id":5,"n":-1}"#, Reason::Check), (by_id, r#"{"id":5,"code":"a"}"#, Reason::Unique)]
    {
        let data = failure(fixture.put(config, &[value]).await.unwrap_err()).data.unwrap();
        assert_eq!(data.reason, reason, "{value}");
    }
}

#[tokio::test]
async fn what_a_trigger_raises_is_a_bad_record_without_its_words_on_sqlite() {
    let fixture = Fixture::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY);
         CREATE TRIGGER g BEFORE INSERT ON t WHEN NEW.id = 13 BEGIN SELECT RAISE(ABORT, 'secret 13'); END",
    )
    .await;
    let raised = failure(fixture.put("{}", &[r#"{"id":12}"#, r#"{"id":13}"#]).await.unwrap_err());
    let data = raised.data.as_deref().unwrap();
    assert_eq!((data.reason, data.table.as_deref()), (Reason::Trigger, Some("t")));
    assert!(!format!("{raised:?}").contains("secret"), "{raised:?}");
    assert_eq!(fixture.file.count("t").await, 0);
}
