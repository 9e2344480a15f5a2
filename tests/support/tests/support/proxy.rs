//! A COMMIT lost on either side of the server's work, delayed, held; rows lost in mid-COPY; a network that breaks.

use std::time::{Duration, Instant};

use oncesink_test_support::postgres::{Postgres, Schema};
use oncesink_test_support::proxy::{Action, Cut, Point, Proxy};
use oncesink_test_support::{Servers, eventually};
use sqlx::{Connection, Executor, PgConnection};

const DEADLINE: Duration = Duration::from_secs(30);

async fn setup() -> (Schema, Proxy, PgConnection) {
    let schema = Servers::shared().await.postgres().schema("proxy").await;
    schema.execute("CREATE TABLE t (n int)").await;
    let proxy = Proxy::start(schema.url());
    let connection = Postgres::connect(proxy.url()).connection().await;
    (schema, proxy, connection)
}

async fn insert_and_commit(connection: &mut PgConnection) -> sqlx::Result<()> {
    let mut tx = connection.begin().await?;
    sqlx::query("INSERT INTO t VALUES ($1)").bind(1).execute(&mut *tx).await?;
    tx.commit().await
}

async fn eventually_has(schema: &Schema, rows: i64) {
    eventually(DEADLINE, || async { (schema.count("t").await == rows).then_some(()) }).await;
}

/// Waits until no session of the schema holds a transaction, so that "no row" is final.
async fn nothing_open(schema: &Schema) {
    let open = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid <> pg_backend_pid()";
    eventually(DEADLINE, || async { (schema.value::<i64>(open).await == 0).then_some(()) }).await;
}

#[tokio::test]
async fn without_a_fault_everything_passes() {
    let (schema, proxy, mut connection) = setup().await;
    insert_and_commit(&mut connection).await.unwrap();
    let seen = proxy.seen();
    assert_eq!((seen.sessions, seen.commits, seen.commits_forwarded, seen.commits_applied), (1, 1, 1, 1));
    let mut copy = connection.copy_in_raw("COPY t FROM STDIN").await.unwrap();
    copy.send("1\n".repeat(100_000).into_bytes()).await.unwrap();
    assert_eq!(copy.finish().await.unwrap(), 100_000);
    let long: String =
        sqlx::query_scalar("SELECT repeat('x', 3000000)").fetch_one(&mut connection).await.unwrap();
    assert_eq!(long.len(), 3_000_000);
    assert_eq!(schema.count("t").await, 100_001);
}

#[tokio::test]
async fn a_commit_cut_before_the_server_is_not_applied() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.cut_next_commit(Cut::Before);
    let error = insert_and_commit(&mut connection).await.unwrap_err();
    assert!(matches!(error, sqlx::Error::Io(_)), "{error}");
    nothing_open(&schema).await;
    assert_eq!(schema.count("t").await, 0);
    let seen = proxy.seen();
    assert_eq!((seen.commits, seen.commits_forwarded, seen.cuts), (1, 0, 1));
}

#[tokio::test]
async fn a_commit_cut_after_the_server_is_applied() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.cut_next_commit(Cut::AfterApplied);
    let error = insert_and_commit(&mut connection).await.unwrap_err();
    assert!(matches!(error, sqlx::Error::Io(_)), "{error}");
    assert_eq!(schema.count("t").await, 1);
    let seen = proxy.seen();
    assert_eq!((seen.commits_forwarded, seen.commits_applied, seen.cuts), (1, 1, 1));
    let mut again = Postgres::connect(proxy.url()).connection().await;
    insert_and_commit(&mut again).await.unwrap();
    assert_eq!(schema.count("t").await, 2);
}

#[tokio::test]
async fn a_commit_in_other_dress_is_cut_too() {
    for text in ["INSERT INTO t VALUES (2); cOmMiT ;", "COMMIT"] {
        let (schema, proxy, mut connection) = setup().await;
        proxy.cut_next_commit(Cut::AfterApplied);
        connection.execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
        // The second one goes by Parse, Bind and Execute.
        let outcome = if text == "COMMIT" {
            sqlx::query(text).execute(&mut connection).await.map(drop)
        } else {
            connection.execute(text).await.map(drop)
        };
        outcome.unwrap_err();
        assert_eq!(schema.count("t").await, if text == "COMMIT" { 1 } else { 2 });
        assert_eq!(proxy.seen().cuts, 1);
    }
}

#[tokio::test]
async fn only_the_commit_of_the_named_transaction_is_cut() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.arm(Point::CommitOf("INSERT INTO t".into()), Action::CutBefore);
    connection.execute("BEGIN; SELECT 1").await.unwrap();
    connection.execute("COMMIT").await.unwrap();
    insert_and_commit(&mut connection).await.unwrap_err();
    nothing_open(&schema).await;
    assert_eq!(schema.count("t").await, 0);
}

#[tokio::test]
async fn a_copy_is_cut_in_the_middle() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.arm(Point::CopyBytes(1_000_000), Action::CutBefore);
    let outcome = async {
        let mut copy = connection.copy_in_raw("COPY t FROM STDIN").await?;
        for _ in 0..100 {
            copy.send("1\n".repeat(50_000).into_bytes()).await?;
        }
        copy.finish().await
    };
    outcome.await.unwrap_err();
    nothing_open(&schema).await;
    assert_eq!(schema.count("t").await, 0);
    assert_eq!(proxy.seen().cuts, 1);
}

#[tokio::test]
async fn a_held_commit_arrives_after_its_client_is_gone() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.arm(Point::Commit, Action::Hold);
    let client = tokio::spawn(async move { insert_and_commit(&mut connection).await });
    proxy.wait_for(|seen| seen.held == 1).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    assert_eq!(schema.count("t").await, 0);
    proxy.release();
    eventually_has(&schema, 1).await;
    nothing_open(&schema).await;
    assert_eq!(proxy.seen().held, 0);
}

#[tokio::test]
async fn a_delayed_commit_takes_that_long() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.arm(Point::Commit, Action::Delay(Duration::from_millis(300)));
    let begin = Instant::now();
    insert_and_commit(&mut connection).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300));
    assert_eq!(schema.count("t").await, 1);
}

#[tokio::test]
async fn a_stall_before_keeps_the_transaction_open_and_a_stall_after_has_applied_it() {
    for (action, rows) in [(Action::StallBefore, 0), (Action::StallAfter, 1)] {
        let (schema, proxy, mut connection) = setup().await;
        proxy.arm(Point::Commit, action);
        let client = tokio::spawn(async move { insert_and_commit(&mut connection).await });
        proxy.wait_for(|seen| seen.stalls == 1).await;
        assert_eq!(schema.count("t").await, rows);
        assert!(!client.is_finished());
        let open = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid <> pg_backend_pid()";
        assert_eq!(schema.value::<i64>(open).await == 0, rows == 1, "{action:?}");
        proxy.cut_sessions();
        client.await.unwrap().unwrap_err();
        nothing_open(&schema).await;
        assert_eq!(schema.count("t").await, rows);
    }
}

#[tokio::test]
async fn a_black_hole_swallows_nothing_for_good() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.black_hole();
    let client = tokio::spawn(async move { insert_and_commit(&mut connection).await });
    let newcomer = tokio::time::timeout(Duration::from_millis(300), PgConnection::connect(proxy.url())).await;
    assert!(newcomer.is_err(), "a connection through a black hole");
    assert!(!client.is_finished());
    proxy.pass();
    client.await.unwrap().unwrap();
    assert_eq!(schema.count("t").await, 1);
}

#[tokio::test]
async fn refusing_spares_the_sessions_that_are_open() {
    let (schema, proxy, mut connection) = setup().await;
    proxy.refuse();
    eventually(DEADLINE, || async { PgConnection::connect(proxy.url()).await.err() }).await;
    insert_and_commit(&mut connection).await.unwrap();
    proxy.pass();
    let mut again = eventually(DEADLINE, || async { PgConnection::connect(proxy.url()).await.ok() }).await;
    insert_and_commit(&mut again).await.unwrap();
    assert_eq!(schema.count("t").await, 2);
}
