//! Settling a transaction in doubt: every verdict, again, and against the old session.

use oncesink::store::{Settled, Store};
use uuid::Uuid;

use super::{Bench, step};

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
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
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
             INSERT INTO oncesink_events (who, consumer_group, topic, partition_id, kind, new_offset, reason)
             VALUES ('test', '{}', 't', 0, 'rewound', 4, 'as after a failover');
             UPDATE kafka_offsets SET last_offset = 4;
             COMMIT",
            bench.group
        ))
        .await;
    let verdicts = store.settle(&[step(0, fence, 10, 15)], Uuid::new_v4()).await.unwrap();
    assert!(matches!(verdicts[0], Settled::Mine { offset: 4, .. }), "{verdicts:?}");
}
