//! Errors of a real server: class, place, and never a value.

use oncesink::store::Store;
use oncesink::{Class, Failure, Reason};
use sqlx::Executor;

use super::Bench;

const TABLES: &str = "
    CREATE TABLE items (id bigint PRIMARY KEY, amount numeric(6,2), name varchar(5) NOT NULL, at timestamptz, CHECK (amount > 0));
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no items today'; END $$;
    CREATE TABLE guarded (id bigint);
    CREATE TRIGGER refuse BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION refuse();
    INSERT INTO items VALUES (5550123, 1, 'a', now())";

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
    let cases = [
        ("INSERT INTO items VALUES (5550123, 1, 'b')", "23505", Reason::Unique, "constraint items_pkey"),
        (
            "INSERT INTO items VALUES (5550124, -5550123, 'b')",
            "22003",
            Reason::OutOfRange,
            "number out of range",
        ),
        ("INSERT INTO items VALUES (5550124, -55.50, 'b')", "23514", Reason::Check, "items_amount_check"),
        ("INSERT INTO items VALUES (5550124, 1, NULL)", "23502", Reason::NullInNotNull, "column name"),
        ("INSERT INTO items VALUES (5550124, 1, '5550123')", "22001", Reason::TooLong, "too long"),
        (
            "INSERT INTO items SELECT '5550123x'::text::bigint, 1, 'b'",
            "22P02",
            Reason::ServerData,
            "no value of the type",
        ),
        (
            "INSERT INTO items SELECT 1, 1, 'b', '5550123 o''clock'::text::timestamptz",
            "22007",
            Reason::NotATime,
            "time",
        ),
        ("INSERT INTO guarded VALUES (5550123)", "P0001", Reason::Trigger, "raised by a trigger"),
    ];
    for (sql, state, reason, says) in cases {
        let failure = failure(&bench, sql).await;
        assert_eq!(
            (failure.class, failure.sql_state.as_deref()),
            (Class::BadRecord, Some(state)),
            "{sql}: {failure}"
        );
        assert_eq!(failure.data.as_ref().map(|data| data.reason), Some(reason), "{sql}");
        assert!(failure.message.contains(says), "{sql}: {failure}");
        assert!(!format!("{failure:?}").contains("55501"), "the value is told: {failure:?}");
    }
}

#[tokio::test]
async fn what_is_raised_under_a_borrowed_state_keeps_its_words_to_itself() {
    let bench = Bench::with_rows("errors_raised", 1).await;
    for (state, class) in
        [("55P03", Class::SickObject), ("40001", Class::Transient), ("ZZ001", Class::BadRecord)]
    {
        let sql = format!("DO $$ BEGIN RAISE EXCEPTION 'row 5550123' USING ERRCODE = '{state}'; END $$");
        let failure = failure(&bench, &sql).await;
        assert_eq!((failure.class, failure.sql_state.as_deref()), (class, Some(state)), "{failure}");
        assert!(!format!("{failure:?}").contains("5550123"), "the value is told: {failure:?}");
    }
}

#[tokio::test]
async fn copy_tells_table_and_column() {
    let bench = Bench::with_rows("errors_copy", 1).await;
    bench.schema.execute(TABLES).await;
    let store = bench.store();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let mut copy = tx.sql().copy_in_raw("COPY items (id, amount, name) FROM STDIN").await.unwrap();
    copy.send(&b"1\t1\ta\n2\tsecret\tb\n"[..]).await.unwrap();
    let failure = Failure::from(copy.finish().await.unwrap_err());
    assert_eq!(failure.class, Class::BadRecord);
    let data = failure.data.as_ref().unwrap();
    assert_eq!((data.table.as_deref(), data.column.as_deref()), (Some("items"), Some("amount")));
    assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
    assert!(store.rollback(tx).await.is_some());
}

#[tokio::test]
async fn what_is_not_data_has_its_own_class() {
    let bench = Bench::with_rows("errors_other", 1).await;
    let mut holder = bench.schema.connection().await;
    holder.execute("BEGIN; LOCK TABLE rows").await.unwrap();
    let cases = [
        ("INSERT INTO rows VALUES (1)", "55P03", Class::SickObject),
        ("INSERT INTO absent VALUES (1)", "42P01", Class::StaleCatalog),
        ("INSERT INTO kafka_offsets (absent) VALUES (1)", "42703", Class::StaleCatalog),
        ("SET LOCAL statement_timeout = 10; SELECT pg_sleep(5)", "57014", Class::Timeout),
        ("SET LOCAL transaction_read_only = on; DELETE FROM kafka_offsets", "25006", Class::WrongServer),
    ];
    for (sql, state, class) in cases {
        let failure = failure(&bench, sql).await;
        assert_eq!((failure.class, failure.sql_state.as_deref()), (class, Some(state)), "{sql}: {failure}");
        assert!(failure.data.is_none(), "{sql}");
    }
}

#[tokio::test]
async fn a_session_that_the_server_ended_is_not_alive() {
    let bench = Bench::with_rows("errors_ended", 1).await;
    let store = bench.store();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let error = tx.sql().execute("SELECT pg_terminate_backend(pg_backend_pid())").await.unwrap_err();
    let failure = Failure::from(error);
    assert_eq!((failure.class, failure.session_alive), (Class::Transient, false), "{failure}");
    assert!(store.rollback(tx).await.is_none());
}
