//! Start policies: resolved once, for all partitions of a topic, at its first claim.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oncesink_test_support::kafka::Record;

use super::{
    QUICK_METADATA, column, command_with, end, ledger, numbered, rows_reach, says, seqs, stands_at, verb,
    with_topic,
};
use crate::rig::{Rig, row};

#[tokio::test(flavor = "multi_thread")]
async fn latest_is_resolved_once_and_another_policy_changes_nothing() {
    let mut rig = Rig::new("latest", 2).await;
    rig.produce(10).await;
    rig.sink_lines = "start = \"latest\"".to_owned();
    let process = rig.run();
    for partition in 0..2 {
        stands_at(&rig, &rig.topic, partition, 10).await;
    }
    end(process).await;

    rig.produce(5).await;
    rig.sink_lines = "start = \"earliest\"".to_owned();
    rig.run_until_end().await;
    for partition in 0..2 {
        assert_eq!(seqs(&rig, &rig.topic, partition).await, [10, 11, 12, 13, 14]);
    }
    let policy: String = rig.schema.value("SELECT start_policy FROM oncesink_topics").await;
    assert_eq!(policy, "latest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timestamp_finds_records_of_open_transactions_and_none_means_the_end() {
    let mut rig = Rig::new("timestamp", 2).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let at = |partition: i32, seq: i64, seconds: i64| {
        Record::to(partition).value(row(partition, seq)).timestamp((now - 3600 + seconds) * 1000)
    };
    rig.kafka.produce(&rig.topic, [at(0, 0, 10), at(0, 1, 20), at(1, 0, 10), at(1, 1, 20)]).await;
    // In partition 0 the first record at or after the time is one of an open transaction; in partition 1 there is none, but an open one stands at its end.
    let mut open = rig.kafka.begin(Duration::from_secs(60)).await;
    open.produce(&rig.topic, [at(0, 2, 30), at(1, 2, 21)]).await;
    let time: String = rig
        .schema
        .value(&format!(
            "SELECT to_char(to_timestamp({}) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
            now - 3600 + 25
        ))
        .await;
    rig.sink_lines = format!("start = \"{time}\"");
    let process = rig.run();
    stands_at(&rig, &rig.topic, 0, 2).await;
    stands_at(&rig, &rig.topic, 1, 3).await;
    open.commit().await;
    rig.kafka.produce(&rig.topic, [at(1, 3, 0)]).await;
    rows_reach(&rig, &rig.topic, 2).await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await, [2]);
    assert_eq!(seqs(&rig, &rig.topic, 1).await, [3]);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_racing_instances_one_resolves_the_start_of_all_partitions() {
    let mut rig = Rig::new("racing", 4).await;
    rig.produce(10).await;
    rig.sink_lines = "start = \"latest\"".to_owned();
    let one = rig.run();
    rig.sink_lines = "start = \"earliest\"".to_owned();
    let two = rig.run();
    says(&one, &["partitions claimed"]).await;
    says(&two, &["partitions claimed"]).await;
    rig.produce(5).await;
    for partition in 0..4 {
        stands_at(&rig, &rig.topic, partition, 15).await;
    }
    end(one).await;
    end(two).await;
    let policy: String = rig.schema.value("SELECT start_policy FROM oncesink_topics").await;
    let first = if policy == "latest" { 10 } else { 0 };
    for partition in 0..4 {
        assert_eq!(seqs(&rig, &rig.topic, partition).await, (first..15).collect::<Vec<i64>>(), "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_added_later_follows_the_policy_at_its_own_first_claim() {
    let mut rig = Rig::new("added", 1).await;
    rig.produce(10).await;
    rig.run_until_end().await;
    let added = rig.kafka.topic("added_later", 1).await;
    ledger(&rig, &added).await;
    rig.kafka.produce(&added, numbered(0, 0..7)).await;
    rig.produce(1).await;
    rig.sink_lines = "start = \"latest\"".to_owned();
    let process = command_with(&with_topic(&rig, &added), &["run"]).start();
    stands_at(&rig, &added, 0, 7).await;
    rig.kafka.produce(&added, numbered(0, 7..9)).await;
    rows_reach(&rig, &added, 2).await;
    assert_eq!(seqs(&rig, &added, 0).await, [7, 8]);
    // The topic that was there before went on where it stood.
    rig.all_once().await;
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c095_records_of_a_new_partition_are_read_from_its_beginning_whatever_the_policy() {
    let mut rig = Rig::new("c095", 2).await;
    rig.sink_lines = "start = \"latest\"".to_owned();
    rig.kafka_lines = QUICK_METADATA.to_owned();
    let process = rig.run();
    stands_at(&rig, &rig.topic, 1, 0).await;
    rig.kafka.grow(&rig.topic, 4).await;
    rig.kafka.produce(&rig.topic, numbered(3, 0..100)).await;
    rows_reach(&rig, &rig.topic, 100).await;
    assert_eq!(seqs(&rig, &rig.topic, 3).await, (0..100).collect::<Vec<i64>>());
    stands_at(&rig, &rig.topic, 2, 0).await;
    let count: i32 = rig.schema.value("SELECT partition_count FROM oncesink_topics").await;
    assert_eq!(count, 4);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_did_not_exist_is_recorded_and_read_from_its_beginning() {
    let mut rig = Rig::new("absent", 1).await;
    rig.sink_lines = "start = \"latest\"".to_owned();
    rig.kafka_lines = QUICK_METADATA.to_owned();
    let late = oncesink_test_support::topic("late");
    ledger(&rig, &late).await;
    let process = command_with(&with_topic(&rig, &late), &["run"]).start();
    says(&process, &["does not exist", &late]).await;
    stands_at(&rig, &rig.topic, 0, 0).await;
    let recorded = format!("SELECT partition_count FROM oncesink_topics WHERE topic = '{late}'");
    assert_eq!(rig.schema.value::<i32>(&recorded).await, 0);

    rig.kafka.create_topic(&late, 2, &[]).await;
    let records = [numbered(0, 0..20), numbered(1, 0..20)].concat();
    rig.kafka.produce(&late, records).await;
    rows_reach(&rig, &late, 40).await;
    for partition in 0..2 {
        assert_eq!(seqs(&rig, &late, partition).await, (0..20).collect::<Vec<i64>>());
    }
    assert_eq!(rig.schema.value::<i32>(&recorded).await, 2);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_row_below_the_recorded_count_stops_its_partition_until_a_reset() {
    let mut rig = Rig::new("missing", 2).await;
    rig.produce(10).await;
    rig.run_until_end().await;
    rig.schema.execute("DELETE FROM kafka_offsets WHERE partition_id = 1").await;
    rig.produce(5).await;
    let process = rig.run();
    says(&process, &[&format!("{}/1", rig.topic), "stopped", "its row is missing"]).await;
    stands_at(&rig, &rig.topic, 0, 15).await;
    assert_eq!(column(&rig, &rig.topic, 1, "last_offset").await, None);
    assert_eq!(seqs(&rig, &rig.topic, 1).await.len(), 10);

    let place = format!("{}/1", rig.topic);
    verb(&rig, &["reset", &place, "--to", "10", "--reason", "the row was deleted"]).await;
    rig.all_once().await;
    end(process).await;
}
