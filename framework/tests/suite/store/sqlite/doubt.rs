//! A COMMIT whose answer nobody took, and connections that go on after their caller: a settle waits for them and judges what they did.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use oncesink::sqlite::{Sqlite, Tx};
use oncesink::store::{Claim, Fence, Settled, Store};
use oncesink::{Class, Failure};
use oncesink_test_support::eventually;
use sqlx::Executor;
use uuid::Uuid;

use super::{Bench, claimed, step, wanted};

/// How long a test waits for what takes at most a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

async fn begun(store: &Sqlite, fence: Fence, from: i64) -> Tx {
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &[step(0, fence, from, from + 2)]).await.unwrap(), [true]);
    let insert = format!("INSERT INTO rows VALUES ({from}), ({from} + 1)");
    tx.sql().execute(&*insert).await.unwrap();
    store.guard(&mut tx).await.unwrap();
    tx
}

#[tokio::test]
async fn c025_a_cancelled_commit_is_settled_by_what_the_file_has() {
    let bench = Bench::with_rows("doubt_cancelled", 1).await;
    let store = bench.store();
    let mut fence = bench.claim(&store, 0).await.fence;
    let mut from = 10;
    // What became of transactions whose COMMIT was given up before its answer was taken.
    let (mut applied, mut not) = (0, 0);
    let mut round: u32 = 0;
    while applied < 10 || not < 10 {
        assert!(round < 2000, "{applied} applied, {not} not, in {round} rounds");
        let tx = begun(&store, fence, from).await;
        let mut commit = Box::pin(store.commit(tx));
        let mut answered = false;
        // Given up after so many steps: before COMMIT was sent, while it runs, or after it.
        for _ in 0..round % 16 {
            answered = answered || commit.as_mut().now_or_never().is_some();
            std::thread::sleep(Duration::from_micros(30));
        }
        drop(commit);
        let steps = [step(0, fence, from, from + 2)];
        let token = Uuid::new_v4();
        let verdicts = eventually(DEADLINE, || async { store.settle(&steps, token).await.ok() }).await;
        let Settled::Mine { offset, fence: next } = verdicts[0] else { panic!("fenced: {verdicts:?}") };
        assert_eq!(bench.schema.count("rows").await, offset - 10, "round {round}");
        match (answered, offset == from) {
            (true, lost) => assert!(!lost, "answered, and not applied"),
            (false, true) => not += 1,
            (false, false) => applied += 1,
        }
        (fence, from) = (next, offset);
        round += 1;
    }
}

#[tokio::test]
async fn a_settle_waits_out_the_old_connection_and_judges_what_it_did() {
    let bench = Bench::with_rows("doubt_waits", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let steps = [step(0, fence, 10, 12)];
    let tx = begun(&store, fence, 10).await;
    let token = Uuid::new_v4();
    // While the old transaction is open there is no verdict, and nothing was raised.
    let failure = store.settle(&steps, token).await.unwrap_err();
    assert_eq!(
        (failure.class, failure.sql_state.as_deref()),
        (Class::Transient, Some("SQLITE_BUSY")),
        "{failure}"
    );
    assert_eq!(store.locked(&steps).await.unwrap(), [steps[0].place.clone()]);
    let settling = eventually(DEADLINE, || async { store.settle(&steps, token).await.ok() });
    let committing = async { store.commit(tx).await.map_err(|_| "commit").unwrap() };
    let (verdicts, session) = tokio::join!(settling, committing);
    assert!(matches!(verdicts[0], Settled::Mine { offset: 12, .. }), "{verdicts:?}");
    assert_eq!(store.locked(&steps).await.unwrap(), []);
    drop(session);
}

#[tokio::test]
async fn a_statement_whose_caller_has_gone_is_ended_and_frees_the_file() {
    let bench = Bench::with_rows("doubt_gone", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let mut tx = begun(&store, fence, 10).await;
    let forever = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let statement = tokio::time::timeout(Duration::from_millis(100), tx.sql().execute(forever)).await;
    assert!(statement.is_err());
    drop(tx);
    let began = Instant::now();
    let claim = eventually(DEADLINE, || async {
        let claim = store.claim_waiting(&bench.identity("next"), &wanted("t", 0), false).await.unwrap();
        (claim != Claim::Busy).then_some(claim)
    })
    .await;
    assert_eq!(claimed(&claim).offset, 10);
    assert_eq!(bench.schema.count("rows").await, 0);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    // The same by the session's identity.
    let session = store.connect().await.unwrap();
    let id = Sqlite::session_id(&session);
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(Sqlite::tx_session_id(&tx), id);
    let ending = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        store.end_session(id.clone()).await.unwrap()
    };
    let (answer, ended) = tokio::join!(tx.sql().execute(forever), ending);
    let failure = Failure::from(answer.unwrap_err());
    assert_eq!(
        (failure.class, failure.sql_state.as_deref(), ended),
        (Class::Timeout, Some("SQLITE_INTERRUPT"), true)
    );
    drop(tx);
    let gone =
        eventually(DEADLINE, || async { (!store.end_session(id.clone()).await.unwrap()).then_some(true) });
    assert!(gone.await, "a session that is gone is no error");
}

#[tokio::test]
async fn c025_a_cancelled_begin_never_leaves_an_open_transaction() {
    let bench = Bench::registered("doubt_begin", 1).await;
    let store = bench.store();
    let mut cancelled = 0;
    for round in 0..60 {
        let mut begin = Box::pin(store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign));
        let mut begun = false;
        for _ in 0..round % 6 {
            begun = begun || begin.as_mut().now_or_never().is_some();
            if !begun {
                tokio::time::sleep(Duration::from_micros(1)).await;
            }
        }
        cancelled += i32::from(!begun);
    }
    assert!(cancelled > 5, "only {cancelled} were cancelled");
    let free = eventually(DEADLINE, || async {
        let claims = store.claim(&bench.identity("a"), &[wanted("t", 0)]).await.unwrap();
        (claims[0] != Claim::Busy).then(|| claimed(&claims[0]))
    });
    assert_eq!(free.await.offset, 10);
}

#[tokio::test]
async fn a_full_disk_is_waited_for_and_nothing_of_the_batch_stays() {
    let bench = Bench::with_rows("doubt_full", 1).await;
    bench.schema.execute("CREATE TABLE blobs (b blob)").await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let mut tx = begun(&store, fence, 10).await;
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(tx.sql()).await.unwrap();
    tx.sql().execute(&*format!("PRAGMA max_page_count = {}", pages + 10)).await.unwrap();
    let failure =
        Failure::from(tx.sql().execute("INSERT INTO blobs VALUES (zeroblob(1000000))").await.unwrap_err());
    assert_eq!((failure.class, failure.sql_state.as_deref()), (Class::Transient, Some("SQLITE_FULL")));
    assert!(failure.message.contains("Make room on the disk"), "{failure}");
    // Whatever SQLite made of it, the rest of the batch cannot be committed alone.
    let _ = tx.sql().execute("INSERT INTO rows VALUES (99)").await;
    drop(store.rollback(tx).await);
    assert_eq!((bench.offset(0).await, bench.schema.count("rows").await), (10, 0));
}
