//! A former owner whose advance meets the commit of the new one: nothing of what both have read is written twice.
//!
//! An owner that is frozen and wakes up hears from Kafka at once that it lost its partitions, most often before it gets to its next COMMIT; so a test that
//! freezes it does not tell whether the fence holds. Here the advance is known to be under way.

use oncesink::sqlx::Executor;
use oncesink_test_support::eventually_within;

use crate::rebalance::group::{rig, said};
use crate::rig::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_overtaken_at_its_advance_writes_nothing() {
    let mut rig = rig("overtaken", 1).await;
    let process = rig.run();
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%SET last_offset = w.to_offset%' AND application_name = 'oncesink {}'",
        rig.topic
    );
    // On a busy machine the advance's lock timeout of a second may be over too soon: then once more.
    for _ in 0..10 {
        rig.produce(12).await;
        rig.all_once().await;
        let next = rig.stored(0).await;
        // The new owner writes the next two records and has not yet committed.
        let mut other = rig.schema.connection().await;
        let overtake = format!(
            "BEGIN;
             INSERT INTO \"{}\" (partition_id, seq) VALUES (0, {next}), (0, {next} + 1);
             UPDATE kafka_offsets SET last_offset = {next} + 2, owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid()",
            rig.topic
        );
        other.execute(&*overtake).await.expect("overtaking");
        rig.produce(4).await;
        eventually_within(PATIENCE, || rig.schema.value::<i64>(&waits), |waiting| *waiting > 0).await;
        other.execute("COMMIT").await.expect("the new owner's commit");
        rig.all_once().await;
        if said(&process, "not ours any more") > 0 {
            return;
        }
    }
    panic!("no advance met the other owner's commit: {}", process.text());
}
