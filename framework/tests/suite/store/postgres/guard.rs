//! What a connector can do to a transaction, found before COMMIT.

use oncesink::postgres::{Postgres, Tx};
use oncesink::store::Store;
use oncesink::{Class, CommitFailure, Reason};
use sqlx::{Acquire, Executor};

use super::{Bench, step};

async fn begun(bench: &Bench, store: &Postgres) -> Tx {
    let fence = bench.claim(store, 0).await.fence;
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap(), [true]);
    tx
}

#[tokio::test]
async fn a_swallowed_error_never_commits() {
    let bench = Bench::with_rows("guard_swallowed", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    tx.sql().execute("INSERT INTO rows VALUES (1), (1)").await.unwrap_err();
    let failure = store.guard(&mut tx).await.unwrap_err();
    assert_eq!((failure.class, failure.sql_state.as_deref()), (Class::Fatal, Some("25P02")));
    assert!(failure.message.contains("the connector swallowed an error"), "{failure}");
    assert!(store.rollback(tx).await.is_some(), "the session itself is fine");
    assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (10, 0));
}

#[tokio::test]
async fn a_transaction_ended_by_the_connector_is_found() {
    for sql in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN; SAVEPOINT oncesink_x"] {
        let bench = Bench::with_rows("guard_ended", 1).await;
        let store = bench.store();
        let mut tx = begun(&bench, &store).await;
        tx.sql().execute(sql).await.unwrap();
        let failure = store.guard(&mut tx).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal, "{sql}: {failure}");
        assert!(
            failure.message.contains("the connector ended the transaction by itself"),
            "{sql}: {failure}"
        );
    }
}

#[tokio::test]
async fn the_drivers_own_transactions_are_savepoints_inside_ours() {
    let bench = Bench::with_rows("guard_nested", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    let mut inner = tx.sql().begin().await.unwrap();
    inner.execute("INSERT INTO rows VALUES (1)").await.unwrap();
    inner.commit().await.unwrap();
    let mut dropped = tx.sql().begin().await.unwrap();
    dropped.execute("INSERT INTO rows VALUES (2)").await.unwrap();
    drop(dropped);
    assert_eq!(bench.schema.count("rows").await, 0, "the inner COMMIT reached the server");
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.map_err(|_| "commit").unwrap();
    assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (12, 1));
}

#[tokio::test]
async fn a_transaction_left_open_inside_ours_is_found() {
    let bench = Bench::with_rows("guard_left", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    std::mem::forget(tx.sql().begin().await.unwrap());
    assert_eq!(store.guard(&mut tx).await.unwrap_err().class, Class::Fatal);
    assert!(store.rollback(tx).await.is_none());
}

#[tokio::test]
async fn a_deferred_constraint_is_a_bad_record_before_commit() {
    let bench = Bench::with_rows("guard_deferred", 1).await;
    bench
        .schema
        .execute(
            "CREATE TABLE parents (id bigint PRIMARY KEY);
             CREATE TABLE children (id bigint, parent bigint REFERENCES parents DEFERRABLE INITIALLY DEFERRED)",
        )
        .await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    tx.sql().execute("INSERT INTO children VALUES (1, 4711)").await.unwrap();
    let failure = store.guard(&mut tx).await.unwrap_err();
    assert_eq!((failure.class, failure.sql_state.as_deref()), (Class::BadRecord, Some("23503")));
    assert_eq!(failure.data.as_ref().map(|data| data.reason), Some(Reason::ForeignKey));
    assert!(!format!("{failure:?}").contains("4711"), "the value is told: {failure:?}");
    // Asked all the same, the server says itself that it rolled back.
    let session = store.rollback(tx).await.unwrap();
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("INSERT INTO children VALUES (1, 4711)").await.unwrap();
    let Err(CommitFailure::RolledBack(failure)) = store.commit(tx).await else { panic!("no verdict") };
    assert_eq!(failure.sql_state.as_deref(), Some("23503"));
}

#[tokio::test]
async fn a_session_with_an_answer_in_the_line_is_not_given_back() {
    let bench = Bench::with_rows("guard_copy", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    let mut copy = tx.sql().copy_in_raw("COPY rows FROM STDIN").await.unwrap();
    copy.send(&b"1\n"[..]).await.unwrap();
    drop(copy);
    if let Some(session) = store.rollback(tx).await {
        // Given back is allowed only when it answers rightly.
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        let one: i64 = sqlx::query_scalar("SELECT count(*) FROM rows").fetch_one(tx.sql()).await.unwrap();
        assert_eq!(one, 0);
    }
}

#[tokio::test]
async fn the_session_is_pinned_inside_the_transaction_only() {
    let bench = Bench::with_rows("guard_pins", 1).await;
    let store = bench.store();
    let show = "SELECT concat_ws(' ', current_setting('timezone'), current_setting('lock_timeout'), current_setting('statement_timeout'),
                current_setting('idle_in_transaction_session_timeout'), current_setting('transaction_isolation'), current_setting('synchronous_commit'))";
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let inside: String = sqlx::query_scalar(show).fetch_one(tx.sql()).await.unwrap();
    assert_eq!(inside, "UTC 1s 30s 10s read committed on");
    store.guard(&mut tx).await.unwrap();
    let mut session = store.commit(tx).await.map_err(|_| "commit").unwrap();
    // The same session begins again: nothing is left of the first transaction.
    for _ in 0..3 {
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        store.guard(&mut tx).await.unwrap();
        session = store.commit(tx).await.map_err(|_| "commit").unwrap();
    }
}
