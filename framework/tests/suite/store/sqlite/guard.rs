//! What a connector can do to a transaction: refused by SQLite at once, or found before COMMIT.

use oncesink::sqlite::{Sqlite, Tx};
use oncesink::store::Store;
use oncesink::{Class, CommitFailure, Failure, Reason};
use sqlx::{Acquire, Executor};

use super::{Bench, step};

async fn begun(bench: &Bench, store: &Sqlite) -> Tx {
    let fence = bench.claim(store, 0).await.fence;
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap(), [true]);
    tx.sql().execute("INSERT INTO rows VALUES (10)").await.unwrap();
    tx
}

#[tokio::test]
async fn a_commit_of_the_connectors_own_is_refused_and_nothing_is_committed() {
    for sql in ["COMMIT", "END", "COMMIT; BEGIN IMMEDIATE", "RELEASE oncesink"] {
        let bench = Bench::with_rows("guard_commit", 1).await;
        let store = bench.store();
        let mut tx = begun(&bench, &store).await;
        tx.sql().execute(sql).await.unwrap_err();
        // Somebody who swallows that error as well.
        let _ = tx.sql().execute("INSERT INTO rows VALUES (11)").await;
        if sql.starts_with("RELEASE") {
            // There is no such savepoint: our own has a name that nobody can guess, and nothing happened.
            store.guard(&mut tx).await.unwrap();
        } else {
            let failure = store.guard(&mut tx).await.unwrap_err();
            assert_eq!(failure.class, Class::Fatal, "{sql}: {failure}");
            assert!(failure.message.contains("the connector ended the transaction by itself"), "{failure}");
        }
        drop(tx);
        assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (10, 0), "{sql}");
    }
}

#[tokio::test]
async fn a_transaction_rolled_back_by_the_connector_is_found() {
    for sql in ["ROLLBACK", "ROLLBACK; BEGIN IMMEDIATE", "ROLLBACK; BEGIN IMMEDIATE; SAVEPOINT oncesink_x"] {
        let bench = Bench::with_rows("guard_rollback", 1).await;
        let store = bench.store();
        let mut tx = begun(&bench, &store).await;
        tx.sql().execute(sql).await.unwrap();
        let failure = store.guard(&mut tx).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal, "{sql}: {failure}");
        // Asked all the same: a COMMIT that fails where nothing is open any more says nothing of what became of the transaction.
        if sql == "ROLLBACK" {
            assert!(matches!(store.commit(tx).await, Err(CommitFailure::InDoubt(_))), "{sql}");
        } else {
            drop(tx);
        }
        assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (10, 0), "{sql}");
    }
}

#[tokio::test]
async fn after_sqlite_rolled_back_by_itself_no_statement_commits_alone() {
    let bench = Bench::with_rows("guard_alone", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    let error = tx.sql().execute("INSERT OR ROLLBACK INTO rows VALUES (10)").await.unwrap_err();
    assert_eq!(Failure::from(error).class, Class::BadRecord);
    // The transaction is gone, and a connector that goes on all the same would write rows without their offset.
    let alone = Failure::from(tx.sql().execute("INSERT INTO rows VALUES (11)").await.unwrap_err());
    assert_eq!(alone.sql_state.as_deref(), Some("SQLITE_CONSTRAINT_COMMITHOOK"));
    assert_eq!(store.guard(&mut tx).await.unwrap_err().class, Class::Fatal);
    assert!(store.rollback(tx).await.is_none());
    assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (10, 0));
}

#[tokio::test]
async fn a_statement_that_failed_leaves_nothing_and_the_rest_is_whole() {
    let bench = Bench::with_rows("guard_failed", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    // Unlike Postgres, SQLite undoes the statement and keeps the transaction; whether to go on is the connector's decision, and the books count its records.
    tx.sql().execute("INSERT INTO rows VALUES (20), (21), (10)").await.unwrap_err();
    tx.sql().execute("INSERT INTO rows VALUES (11)").await.unwrap();
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.map_err(|_| "commit").unwrap();
    let rows: Vec<i64> = bench.schema.column("SELECT n FROM rows ORDER BY n").await;
    assert_eq!((bench.offset(0).await, rows), (12, vec![10, 11]));
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
    assert_eq!(bench.schema.count("rows").await, 0, "the inner COMMIT reached the file");
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.map_err(|_| "commit").unwrap();
    assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (12, 2));
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
async fn a_deferred_foreign_key_is_a_bad_record_before_commit() {
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
    assert_eq!(
        (failure.class, failure.sql_state.as_deref()),
        (Class::BadRecord, Some("SQLITE_CONSTRAINT_FOREIGNKEY"))
    );
    assert_eq!(failure.data.as_ref().map(|data| data.reason), Some(Reason::ForeignKey));
    // A parent that comes later in the same transaction pays what is owed.
    let session = store.rollback(tx).await.unwrap();
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("INSERT INTO children VALUES (1, 4711)").await.unwrap();
    tx.sql().execute("INSERT INTO parents VALUES (4711)").await.unwrap();
    store.guard(&mut tx).await.unwrap();
    let session = store.commit(tx).await.map_err(|_| "commit").unwrap();
    // Asked all the same, SQLite refuses and leaves the transaction open: rolled back, it is a verdict.
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("INSERT INTO children VALUES (2, 4712)").await.unwrap();
    let Err(CommitFailure::RolledBack(failure)) = store.commit(tx).await else { panic!("no verdict") };
    assert_eq!(failure.sql_state.as_deref(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"));
    assert_eq!(bench.schema.count("children").await, 1);
}

#[tokio::test]
async fn the_files_journal_mode_cannot_be_changed_under_us() {
    let bench = Bench::with_rows("guard_mode", 1).await;
    let store = bench.store();
    let mut tx = begun(&bench, &store).await;
    tx.sql().execute("ROLLBACK").await.unwrap();
    let _ = tx.sql().execute("PRAGMA journal_mode = DELETE").await;
    drop(tx);
    assert_eq!(bench.schema.value::<String>("PRAGMA journal_mode").await, "wal");
}

#[tokio::test]
async fn no_other_file_can_be_attached() {
    let bench = Bench::with_rows("guard_attach", 1).await;
    let store = bench.store();
    let mut session = store.connect().await.unwrap();
    for _ in 0..2 {
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        let error = tx.sql().execute("ATTACH ':memory:' AS other").await.unwrap_err();
        assert!(error.to_string().contains("too many attached databases"), "{error}");
        session = store.rollback(tx).await.unwrap();
    }
}

#[tokio::test]
async fn the_connection_is_pinned_and_used_again() {
    let bench = Bench::with_rows("guard_pins", 1).await;
    let store = bench.store();
    let mut session = store.connect().await.unwrap();
    for round in 0..3_i64 {
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        for (pin, expected) in
            [("foreign_keys", 1), ("synchronous", 2), ("trusted_schema", 0), ("busy_timeout", 5)]
        {
            let value: i64 = sqlx::query_scalar(&format!("PRAGMA {pin}")).fetch_one(tx.sql()).await.unwrap();
            assert_eq!(value, expected, "{pin}");
        }
        assert_eq!(tx.variable_limit().await.unwrap(), 32_766);
        sqlx::query("INSERT INTO rows VALUES (?)").bind(round).execute(tx.sql()).await.unwrap();
        store.guard(&mut tx).await.unwrap();
        session = store.commit(tx).await.map_err(|_| "commit").unwrap();
    }
    drop(session);
    assert_eq!(bench.schema.count("rows").await, 3);
    assert_eq!(bench.schema.value::<String>("PRAGMA journal_mode").await, "wal");
}

/// A file that was deleted, or replaced by a copy, is still open: SQLite would commit into it, and nobody would ever read that.
#[tokio::test]
async fn nothing_commits_into_a_file_that_has_left_its_path() {
    for replaced in [false, true] {
        let bench = Bench::with_rows("guard_gone", 1).await;
        let store = bench.store();
        let fence = bench.claim(&store, 0).await.fence;
        let copy = bench.schema.path().with_extension("copy");
        bench.schema.execute(&format!("VACUUM INTO '{}'", copy.display())).await;
        let idle = store.connect().await.unwrap();
        let mut tx =
            store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
        assert_eq!(store.advance(&mut tx, &[step(0, fence, 10, 11)]).await.unwrap(), [true]);
        tx.sql().execute("INSERT INTO rows VALUES (10)").await.unwrap();

        for end in ["", "-wal", "-shm"] {
            let path = format!("{}{end}", bench.schema.path().display());
            std::fs::remove_file(path).unwrap();
        }
        if replaced {
            std::fs::rename(&copy, bench.schema.path()).unwrap();
        }
        let failure = store.guard(&mut tx).await.expect_err("the file has gone");
        assert_eq!((failure.class, failure.session_alive), (Class::Transient, false), "{failure:?}");
        assert!(failure.message.contains("deleted, moved or replaced"), "{failure:?}");
        drop(tx);
        assert!(store.begin(idle, oncesink::Statements::Foreign).await.is_err(), "a connection from before");

        // A new connection finds what is there now.
        if replaced {
            let tx =
                store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
            store.rollback(tx).await.expect("a rollback");
            assert_eq!((bench.schema.count("rows").await, bench.offset(0).await), (0, 10));
        } else {
            let failure = store.connect().await.err().expect("no file");
            assert!(failure.message.contains("there is no such file"), "{failure:?}");
        }
    }
}
