//! Errors of a real SQLite: class, place, and never a value.

use oncesink::store::Store;
use oncesink::{Class, Failure, Reason};
use sqlx::Executor;

use super::{Bench, step};

const TABLES: &str = "
    CREATE TABLE parents (id integer PRIMARY KEY);
    CREATE TABLE items (id integer PRIMARY KEY, amount numeric, name text NOT NULL, code text UNIQUE, parent integer REFERENCES parents,
                        CONSTRAINT some_amount CHECK (amount > 0));
    CREATE TABLE strict_items (n integer, t text) STRICT;
    CREATE TABLE guarded (id integer);
    CREATE TRIGGER refuse BEFORE INSERT ON guarded BEGIN SELECT RAISE(ABORT, 'row 5550123 is not welcome'); END;
    INSERT INTO items VALUES (5550123, 1, 'a', 'x5550123', NULL)";

async fn failure(bench: &Bench, sql: &str) -> Failure {
    let store = bench.store();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let failure = Failure::from(tx.sql().execute(sql).await.expect_err(sql));
    assert!(failure.session_alive, "{sql}");
    assert!(store.rollback(tx).await.is_some(), "{sql}");
    failure
}

#[tokio::test]
async fn data_errors_name_their_place_and_keep_the_value_to_themselves() {
    let bench = Bench::with_rows("errors_data", 1).await;
    bench.schema.execute(TABLES).await;
    let insert = "INSERT INTO items (id, amount, name, code, parent) VALUES";
    let cases = [
        (
            format!("{insert} (5550123, 1, 'b', 'y', NULL)"),
            "PRIMARYKEY",
            Reason::Unique,
            Some("id"),
            "items.id",
        ),
        (
            format!("{insert} (1, 1, 'b', 'x5550123', NULL)"),
            "UNIQUE",
            Reason::Unique,
            Some("code"),
            "items.code",
        ),
        (format!("{insert} (1, -5550123, 'b', 'y', NULL)"), "CHECK", Reason::Check, None, "some_amount"),
        (
            format!("{insert} (5550124, 1, NULL, 'y', NULL)"),
            "NOTNULL",
            Reason::NullInNotNull,
            Some("name"),
            "items.name",
        ),
        (
            format!("{insert} (1, 1, 'b', 'y', 5550123)"),
            "FOREIGNKEY",
            Reason::ForeignKey,
            None,
            "FOREIGN KEY",
        ),
        (
            "INSERT INTO strict_items (n) VALUES ('x5550123')".into(),
            "DATATYPE",
            Reason::WrongType,
            Some("n"),
            "INTEGER",
        ),
        (
            "INSERT INTO guarded VALUES (5550123)".into(),
            "TRIGGER",
            Reason::Trigger,
            None,
            "raised by a trigger",
        ),
    ];
    for (sql, state, reason, column, says) in cases {
        let failure = failure(&bench, &sql).await;
        let state = format!("SQLITE_CONSTRAINT_{state}");
        assert_eq!(
            (failure.class, failure.sql_state.as_deref()),
            (Class::BadRecord, Some(state.as_str())),
            "{sql}: {failure}"
        );
        let data = failure.data.as_ref().unwrap();
        assert_eq!((data.reason, data.column.as_deref()), (reason, column), "{sql}");
        assert!(failure.message.contains(says), "{sql}: {failure}");
        assert!(!format!("{failure:?}").contains("55501"), "the value is told: {failure:?}");
        assert!(failure.to_string().ends_with(&format!("({state})")), "{failure}");
    }
    let mismatch = failure(&bench, "INSERT INTO parents VALUES ('x5550123')").await;
    assert_eq!(
        (mismatch.class, mismatch.data.as_ref().map(|data| data.reason)),
        (Class::BadRecord, Some(Reason::WrongType))
    );
    assert!(!format!("{mismatch:?}").contains("5550123"), "{mismatch:?}");
}

#[tokio::test]
async fn what_is_not_data_has_its_own_class() {
    let bench = Bench::with_rows("errors_other", 1).await;
    for sql in [
        "INSERT INTO absent VALUES (1)",
        "INSERT INTO rows (absent) VALUES (1)",
        "SELECT absent FROM rows",
        "SELEC 1",
        "INSERT INTO rows VALUES (1) ON CONFLICT (absent) DO NOTHING",
    ] {
        let failure = failure(&bench, sql).await;
        assert_eq!((failure.class, failure.data.is_none()), (Class::StaleCatalog, true), "{sql}: {failure}");
    }
    let quoted = failure(&bench, "SELECT json('x5550123')").await;
    assert_eq!(quoted.class, Class::BadRecord, "{quoted}");
    assert!(!format!("{quoted:?}").contains("5550123"), "{quoted:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_any_more_is_left() {
    let bench = Bench::with_rows("errors_read_only", 1).await;
    let store = bench.store();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("PRAGMA query_only = ON").await.unwrap();
    let failure = Failure::from(tx.sql().execute("INSERT INTO rows VALUES (1)").await.unwrap_err());
    assert_eq!(
        (failure.class, failure.sql_state.as_deref(), failure.session_alive),
        (Class::WrongServer, Some("SQLITE_READONLY"), false)
    );
    drop(tx);
    let tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert!(store.rollback(tx).await.is_some(), "a new connection writes again");
}

#[tokio::test]
async fn a_table_altered_under_us_is_a_stale_catalog_once_and_then_fits() {
    let bench = Bench::with_rows("errors_altered", 1).await;
    let store = bench.store();
    let mut session = store.connect().await.unwrap();
    for round in 0..2 {
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        sqlx::query("INSERT INTO rows VALUES (?)").bind(round).execute(tx.sql()).await.unwrap();
        store.guard(&mut tx).await.unwrap();
        session = store.commit(tx).await.map_err(|_| "commit").unwrap();
        // SQLite prepares the statement again by itself where it still fits.
        bench.schema.execute(&format!("CREATE INDEX more_{round} ON rows (n)")).await;
    }
    bench.schema.execute("DROP TABLE rows").await;
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    let error = sqlx::query("INSERT INTO rows VALUES (?)").bind(9).execute(tx.sql()).await.unwrap_err();
    assert_eq!(Failure::from(error).class, Class::StaleCatalog);
}

#[tokio::test]
async fn a_trigger_on_the_offsets_is_no_records_fault() {
    let bench = Bench::registered("errors_offsets", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    bench
        .schema
        .execute("CREATE TRIGGER stop BEFORE UPDATE OF last_offset ON kafka_offsets BEGIN SELECT RAISE(ABORT, 'no'); END")
        .await;
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let failure = store.advance(&mut tx, &[step(0, fence, 10, 11)]).await.unwrap_err();
    // The framework makes a sick object of it, since no record is at hand yet.
    assert_eq!(failure.sql_state.as_deref(), Some("SQLITE_CONSTRAINT_TRIGGER"), "{failure}");
    assert!(store.rollback(tx).await.is_some());
}
