//! Stored offsets below the log start, at its end, and above it.

use oncesink_test_support::kafka::Record;

use super::{column, end, events, metric, rows_reach, says, seqs, stands_at, stops, verb};
use crate::rig::Rig;

/// Stored next 100; the log then holds 500 to 900.
async fn expired(stem: &str) -> Rig {
    let mut rig = Rig::new(stem, 3).await;
    rig.produce(100).await;
    rig.run_until_end().await;
    let more = rig.records(0, 801);
    rig.kafka.produce(&rig.topic, more).await;
    rig.kafka.delete_records(&rig.topic, 0, 500).await;
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn c149_c137_an_expired_partition_stops_and_the_others_flow_without_a_rebalance() {
    let mut rig = expired("c149").await;
    let process = rig.run();
    let reason = stops(&rig, &rig.topic, 0).await;
    for part in ["100", "400 offsets", "500 to 900 exist"] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    says(&process, &[&format!("{}/0@100 stopped", rig.topic), "400 offsets", "2 partitions flow on"]).await;
    let rebalances = metric(&process, &["oncesink_rebalances_total"]).await;

    let more = [rig.records(1, 10), rig.records(2, 10)].concat();
    rig.kafka.produce(&rig.topic, more).await;
    for partition in [1, 2] {
        stands_at(&rig, &rig.topic, partition, 110).await;
        assert_eq!(seqs(&rig, &rig.topic, partition).await, (0..110).collect::<Vec<i64>>());
    }
    assert_eq!(metric(&process, &["oncesink_rebalances_total"]).await, rebalances);
    assert_eq!(column(&rig, &rig.topic, 0, "last_offset").await.as_deref(), Some("100"));
    assert_eq!(seqs(&rig, &rig.topic, 0).await.len(), 100);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c137_a_partition_that_expires_while_the_sink_runs_stops_alone() {
    let mut rig = Rig::new("c137", 2).await;
    rig.produce(100).await;
    let process = rig.run();
    rig.all_once().await;
    // It stands still at a bad record while retention goes on.
    rig.kafka.produce(&rig.topic, [Record::to(0).value("no object")]).await;
    let more = rig.records(0, 800);
    rig.kafka.produce(&rig.topic, more).await;
    stops(&rig, &rig.topic, 0).await;
    rig.kafka.delete_records(&rig.topic, 0, 500).await;
    let rebalances = metric(&process, &["oncesink_rebalances_total"]).await;
    verb(&rig, &["resume", &format!("{}/0", rig.topic)]).await;
    says(&process, &[&format!("{}/0@100 stopped", rig.topic), "400 offsets", "1 partition flows on"]).await;
    let more = rig.records(1, 10);
    rig.kafka.produce(&rig.topic, more).await;
    stands_at(&rig, &rig.topic, 1, 110).await;
    assert_eq!(metric(&process, &["oncesink_rebalances_total"]).await, rebalances);

    // The person who is told the command runs it.
    verb(&rig, &["reset", &format!("{}/0", rig.topic), "--to", "earliest", "--reason", "lost"]).await;
    stands_at(&rig, &rig.topic, 0, 901).await;
    // Offset 500 is record 499: one offset was the bad record's.
    assert_eq!(seqs(&rig, &rig.topic, 0).await, (0..100).chain(499..900).collect::<Vec<i64>>());
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c149_with_a_configured_choice_it_goes_on_at_the_log_start_and_says_what_is_lost() {
    let mut rig = expired("goes_on").await;
    rig.sink_lines = "on_expired = \"earliest\"".to_owned();
    rig.run_until_end().await;
    let left: Vec<i64> = (0..100).chain(500..901).collect();
    assert_eq!(seqs(&rig, &rig.topic, 0).await, left);
    assert_eq!(events(&rig).await, ["expired T/0 100->500"]);
    assert_eq!(rig.stored(0).await, 901);
}

#[tokio::test(flavor = "multi_thread")]
async fn c159_the_end_itself_is_a_valid_position_also_of_an_empty_partition() {
    let mut rig = Rig::new("c159", 2).await;
    let first = rig.records(0, 42);
    rig.kafka.produce(&rig.topic, first).await;
    rig.run_until_end().await;
    assert_eq!((rig.stored(0).await, rig.stored(1).await), (42, 0));
    let process = rig.run();
    says(&process, &["2 partitions claimed"]).await;
    rig.produce(1).await;
    rig.all_once().await;
    assert_eq!(events(&rig).await, [""; 0]);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_above_the_high_watermark_stops() {
    let mut rig = Rig::new("beyond", 2).await;
    rig.produce(20).await;
    rig.run_until_end().await;
    rig.schema.execute("UPDATE kafka_offsets SET last_offset = 1000 WHERE partition_id = 0").await;
    rig.produce(5).await;
    let process = rig.run();
    let reason = stops(&rig, &rig.topic, 0).await;
    assert!(reason.contains("1000") && reason.contains("high watermark 25"), "{reason}");
    rows_reach(&rig, &rig.topic, 45).await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await.len(), 20);
    assert_eq!(rig.stored(0).await, 1000);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_epoch_that_is_not_the_logs_stops_its_partition() {
    let mut rig = Rig::new("truncated", 2).await;
    rig.produce(20).await;
    rig.run_until_end().await;
    assert_eq!(column(&rig, &rig.topic, 0, "leader_epoch").await.as_deref(), Some("0"));
    // As after an unclean election: the epoch under which the offset was stored is unknown to the log, which is longer already.
    rig.schema.execute("UPDATE kafka_offsets SET leader_epoch = 7 WHERE partition_id = 0").await;
    rig.produce(5).await;
    let process = rig.run();
    let reason = stops(&rig, &rig.topic, 0).await;
    assert!(reason.contains("truncated"), "{reason}");
    stands_at(&rig, &rig.topic, 1, 25).await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await.len(), 20);
    end(process).await;
}
