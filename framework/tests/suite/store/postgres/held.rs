//! Rows that a session holds: claims wait for them one by one, and a settle waits for its own old session.

use std::time::Duration;

use oncesink::store::{Claim, Settled, Store};
use oncesink_test_support::eventually;
use oncesink_test_support::proxy::{Cut, Proxy};
use sqlx::Executor;
use uuid::Uuid;

use super::{Bench, claimed, step, wanted};

/// How long a test waits for what takes at most a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_held_row_is_busy_and_the_free_ones_are_claimed() {
    let bench = Bench::registered("claim_busy", 3).await;
    let store = bench.store();
    let mut holder = bench.schema.connection().await;
    sqlx::raw_sql("BEGIN; SELECT FROM kafka_offsets WHERE partition_id = 1 FOR UPDATE")
        .execute(&mut holder)
        .await
        .unwrap();
    let all: Vec<_> = (0..3).map(|partition| wanted("t", partition)).collect();
    let claims = store.claim(&bench.identity("a"), &all).await.unwrap();
    assert_eq!(claims[1], Claim::Busy);
    assert_eq!((claimed(&claims[0]).fence.epoch, claimed(&claims[2]).fence.epoch), (1, 1));
    assert_ne!(claimed(&claims[0]).fence.token, claimed(&claims[2]).fence.token);

    // Alone it waits, up to the lock timeout, and touches nothing.
    let alone = store.claim_waiting(&bench.identity("a"), &all[1], false).await.unwrap();
    assert_eq!(alone, Claim::Busy);
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    let alone = store.claim_waiting(&bench.identity("a"), &all[1], false).await.unwrap();
    assert_eq!(claimed(&alone).fence.epoch, 1);
}

#[tokio::test]
async fn a_claim_waits_for_the_transaction_under_way_and_finds_where_it_ended() {
    let bench = Bench::registered("claim_waits", 1).await;
    let (first, second) = (bench.store(), bench.store());
    let owner = bench.claim(&first, 0).await;
    let mut tx = first.begin(first.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    first.advance(&mut tx, &[step(0, owner.fence, 10, 15)]).await.unwrap();
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(tx.sql()).await.unwrap();
    first.guard(&mut tx).await.unwrap();

    let (identity, want) = (bench.identity("b"), wanted("t", 0));
    let claiming = eventually(DEADLINE, || async {
        // Busy when its lock timeout was shorter than the wait.
        let claim = second.claim_waiting(&identity, &want, false).await.unwrap();
        (claim != Claim::Busy).then_some(claim)
    });
    let committing = async {
        let blocked =
            format!("SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))");
        eventually(DEADLINE, || async { (bench.schema.value::<i64>(&blocked).await > 0).then_some(()) })
            .await;
        first.commit(tx).await.map_err(|_| "commit").unwrap();
    };
    let (claim, ()) = tokio::join!(claiming, committing);
    assert_eq!((claimed(&claim).offset, claimed(&claim).fence.epoch), (15, 2));
}

#[tokio::test]
async fn a_lost_commit_is_settled_on_either_side() {
    for (cut, expected) in [(Cut::Before, 10), (Cut::AfterApplied, 12)] {
        let bench = Bench::with_rows("settle_cut", 1).await;
        let proxy = Proxy::start(bench.schema.url());
        let (store, direct) = (bench.store_at(proxy.url()), bench.store());
        let fence = bench.claim(&direct, 0).await.fence;
        let steps = [step(0, fence, 10, 12)];
        let mut tx =
            store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
        assert_eq!(store.advance(&mut tx, &steps).await.unwrap(), [true]);
        tx.sql().execute("INSERT INTO rows VALUES (10), (11)").await.unwrap();
        store.guard(&mut tx).await.unwrap();
        proxy.cut_next_commit(cut);
        let failure = store.commit(tx).await.err().expect("a lost answer");
        assert!(matches!(failure, oncesink::CommitFailure::InDoubt(_)), "{failure:?}");

        let token = Uuid::new_v4();
        let verdict = eventually(DEADLINE, || async { direct.settle(&steps, token).await.ok() }).await;
        assert!(matches!(verdict[0], Settled::Mine { offset, .. } if offset == expected), "{verdict:?}");
        assert_eq!(bench.schema.count("rows").await, expected - 10);
    }
}

#[tokio::test]
async fn a_settle_waits_out_the_old_backend_and_judges_what_it_did() {
    let bench = Bench::with_rows("settle_waits", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let steps = [step(0, fence, 10, 12)];
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    store.advance(&mut tx, &steps).await.unwrap();
    let token = Uuid::new_v4();
    // While the old transaction is open there is no verdict, and nothing was raised.
    let failure = store.settle(&steps, token).await.unwrap_err();
    assert_eq!(failure.sql_state.as_deref(), Some("55P03"));
    let settling = eventually(DEADLINE, || async { store.settle(&steps, token).await.ok() });
    let committing = async {
        store.guard(&mut tx).await.unwrap();
        store.commit(tx).await.map_err(|_| "commit").unwrap();
    };
    let (verdicts, ()) = tokio::join!(settling, committing);
    assert!(matches!(verdicts[0], Settled::Mine { offset: 12, .. }), "{verdicts:?}");
}

#[tokio::test]
async fn an_old_backend_that_never_ends_is_ended() {
    let bench = Bench::with_rows("settle_frozen", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let steps = [step(0, fence, 10, 12)];
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    store.advance(&mut tx, &steps).await.unwrap();
    let token = Uuid::new_v4();
    let verdicts = eventually(DEADLINE, || async { store.settle(&steps, token).await.ok() }).await;
    assert!(matches!(verdicts[0], Settled::Mine { offset: 10, .. }), "{verdicts:?}");
    assert_eq!(store.sessions_ended(), 1, "the server's own idle limit was not what ended it");
    // The client that thaws finds its session gone.
    let failure = store.guard(&mut tx).await.unwrap_err();
    assert!(!failure.session_alive, "{failure}");
}
