//! Two partitions write one key, and one of them belongs to somebody else when their batch comes to its advance: what is written then is the net effect of the
//! other one alone.

use oncesink::sqlx::Executor;
use oncesink_test_support::eventually_within;

use crate::rebalance::group::{rig, said};
use crate::rig::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_across_a_fenced_partition_is_made_again_without_it() {
    let mut rig = rig("sharedkey", 2).await;
    rig.sink_lines = "writers = 1\nbatch = { linger = \"200 ms\" }\n\
                      table = { mode = \"upsert\", key = [\"seq\"], key_from = \"value\", delete = \"none\" }"
        .to_owned();
    let topic = rig.topic.clone();
    rig.schema.execute(&format!("ALTER TABLE \"{topic}\" ADD PRIMARY KEY (seq)")).await;
    let process = rig.run();
    rig.produce(1).await;
    rig.rows_reach(1).await;
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%SET last_offset = w.to_offset%' AND application_name = 'oncesink {topic}'"
    );
    // A lock timeout of a second may be over too soon on a busy machine, or the raised epoch be seen before the advance: then once more.
    for seq in 1..=10 {
        let stored = async || (rig.stored(0).await, rig.stored(1).await);
        eventually_within(PATIENCE, stored, |stored| *stored == (seq, seq)).await;
        // The other owner writes the next record of partition 1 and has not yet committed.
        let mut other = rig.schema.connection().await;
        let takes_over = format!(
            "BEGIN;
             UPDATE kafka_offsets SET last_offset = last_offset + 1, owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid() WHERE partition_id = 1;
             INSERT INTO \"{topic}\" (partition_id, seq, note) VALUES (1, {seq}, 'the other owner')"
        );
        other.execute(&*takes_over).await.expect("taking over");
        rig.produce(1).await;
        eventually_within(PATIENCE, || rig.schema.value::<i64>(&waits), |waiting| *waiting > 0).await;
        other.execute("COMMIT").await.expect("the other owner's commit");
        let stored = async || (rig.stored(0).await, rig.stored(1).await);
        eventually_within(PATIENCE, stored, |stored| *stored == (seq + 1, seq + 1)).await;
        let last = format!("SELECT partition_id FROM \"{topic}\" WHERE seq = {seq}");
        assert_eq!(
            rig.schema.value::<i32>(&last).await,
            0,
            "key {seq} was written by a partition that is another's"
        );
        if said(&process, "not ours any more") > 0 {
            return;
        }
    }
    panic!("no advance met the other owner's commit: {}", process.text());
}
