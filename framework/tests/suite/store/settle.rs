//! Settling a transaction in doubt: every verdict, again, and against the old session.

use std::time::Duration;

use oncesink::store::{Settled, Store};
use oncesink_test_support::eventually;
use oncesink_test_support::proxy::{Cut, Proxy};
use sqlx::Executor;
use uuid::Uuid;

use super::{Bench, step};

/// How long a test waits for what takes at most a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn every_verdict_and_again() {
    let bench = Bench::registered("settle_all", 4).await;
    let store = bench.store();
    let mut steps = Vec::new();
    for partition in 0..4 {
        steps.push(step(partition, bench.claim(&store, partition).await.fence, 10, 15));
    }
    bench.schema.execute("UPDATE kafka_offsets SET last_offset = 15 WHERE partition_id = 0").await;
    bench.claim(&bench.store(), 2).await;
    bench.schema.execute("DELETE FROM kafka_offsets WHERE partition_id = 3").await;

    let token = Uuid::new_v4();
    let verdicts = store.settle(&steps, token).await.unwrap();
    let mine = |offset| Settled::Mine { offset, fence: oncesink::store::Fence { epoch: 2, token } };
    assert_eq!(verdicts, [mine(15), mine(10), Settled::Fenced, Settled::Fenced]);
    assert_eq!(store.settle(&steps, token).await.unwrap(), verdicts);
    assert_eq!(bench.stands(0).await, (2, 15));
    // The old fence is worth nothing any more, the new one is.
    let mut tx = store.begin(store.connect().await.unwrap()).await.unwrap();
    let fence = oncesink::store::Fence { epoch: 2, token };
    let again = [step(0, fence, 15, 16), steps[1].clone()];
    assert_eq!(store.advance(&mut tx, &again).await.unwrap(), [true, false]);
}

#[tokio::test]
async fn a_rewound_row_that_is_mine_is_told_as_it_stands() {
    let bench = Bench::registered("settle_rewound", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    bench
        .schema
        .execute(&format!(
            "BEGIN;
             INSERT INTO oncesink_events (who, consumer_group, topic, partition_id, kind, reason)
             VALUES ('test', '{}', 't', 0, 'rewound', 'as after a failover');
             UPDATE kafka_offsets SET last_offset = 4;
             COMMIT",
            bench.group
        ))
        .await;
    let verdicts = store.settle(&[step(0, fence, 10, 15)], Uuid::new_v4()).await.unwrap();
    assert!(matches!(verdicts[0], Settled::Mine { offset: 4, .. }), "{verdicts:?}");
}

#[tokio::test]
async fn a_lost_commit_is_settled_on_either_side() {
    for (cut, expected) in [(Cut::Before, 10), (Cut::AfterApplied, 12)] {
        let bench = Bench::with_rows("settle_cut", 1).await;
        let proxy = Proxy::start(bench.schema.url());
        let (store, direct) = (bench.store_at(proxy.url()), bench.store());
        let fence = bench.claim(&direct, 0).await.fence;
        let steps = [step(0, fence, 10, 12)];
        let mut tx = store.begin(store.connect().await.unwrap()).await.unwrap();
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
    let mut tx = store.begin(store.connect().await.unwrap()).await.unwrap();
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
    let mut tx = store.begin(store.connect().await.unwrap()).await.unwrap();
    store.advance(&mut tx, &steps).await.unwrap();
    let token = Uuid::new_v4();
    let verdicts = eventually(DEADLINE, || async { store.settle(&steps, token).await.ok() }).await;
    assert!(matches!(verdicts[0], Settled::Mine { offset: 10, .. }), "{verdicts:?}");
    assert_eq!(store.sessions_ended(), 1, "the server's own idle limit was not what ended it");
    // The client that thaws finds its session gone.
    let failure = store.guard(&mut tx).await.unwrap_err();
    assert!(!failure.session_alive, "{failure}");
}
