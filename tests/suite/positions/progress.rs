//! Offsets without records: markers of transactions, aborted records, open transactions.

use std::time::{Duration, Instant};

use super::{end, metric, numbered, rows_reach, says, seqs, stands_at};
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn tails_without_records_are_passed_over_and_aborted_records_are_no_rows() {
    let rig = Rig::new("tails", 3).await;
    rig.kafka.produce_committed(&rig.topic, numbered(0, 0..5)).await;
    rig.kafka.produce_aborted(&rig.topic, numbered(1, 0..5)).await;
    rig.kafka.produce_committed(&rig.topic, numbered(2, 0..3)).await;
    rig.kafka.produce_aborted(&rig.topic, numbered(2, 100..102)).await;
    // Ends only when the stored offsets have reached the ends, which stand behind the markers.
    rig.run_until_end().await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await, [0, 1, 2, 3, 4]);
    assert_eq!(seqs(&rig, &rig.topic, 1).await, [0_i64; 0]);
    assert_eq!(seqs(&rig, &rig.topic, 2).await, [0, 1, 2]);
    for (partition, last) in [(0, 6), (1, 6), (2, 7)] {
        assert_eq!(rig.stored(partition).await, last);
        assert_eq!(rig.kafka.high_watermark(&rig.topic, partition).await, last);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c171_gaps_are_passed_over_and_the_next_offset_is_right() {
    let rig = Rig::new("c171", 1).await;
    rig.kafka.produce(&rig.topic, numbered(0, 0..7)).await;
    let process = rig.run();
    stands_at(&rig, &rig.topic, 0, 7).await;
    // 7 and 8 are aborted, 9 is the marker; 10 arrives; 11 to 18 are aborted, 19 is the marker; 20 arrives.
    rig.kafka.produce_aborted(&rig.topic, numbered(0, 100..102)).await;
    rig.kafka.produce(&rig.topic, numbered(0, 7..8)).await;
    rig.kafka.produce_aborted(&rig.topic, numbered(0, 102..110)).await;
    let last = rig.kafka.produce(&rig.topic, numbered(0, 8..9)).await;
    assert_eq!(last, [20]);
    stands_at(&rig, &rig.topic, 0, 21).await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await, (0..9).collect::<Vec<i64>>());
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_transaction_is_waited_for_and_the_two_lags_differ() {
    let rig = Rig::new("hanging", 1).await;
    rig.kafka.produce(&rig.topic, numbered(0, 0..5)).await;
    let mut open = rig.kafka.begin(Duration::from_secs(120)).await;
    open.produce(&rig.topic, numbered(0, 5..8)).await;
    rig.kafka.produce(&rig.topic, numbered(0, 8..12)).await;
    let process = rig.run();
    stands_at(&rig, &rig.topic, 0, 5).await;
    let lag = async |name: &str| metric(&process, &[&format!("{name}{{"), &rig.topic]).await;
    let began = Instant::now();
    while lag("oncesink_lag_records").await != Some(7.0) {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", lag("oncesink_lag_records").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(lag("oncesink_lag_readable_records").await, Some(0.0));
    assert_eq!(rig.stored(0).await, 5);
    assert_eq!(seqs(&rig, &rig.topic, 0).await.len(), 5);

    open.commit().await;
    stands_at(&rig, &rig.topic, 0, 13).await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await, (0..12).collect::<Vec<i64>>());
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_alone_takes_one_transaction_a_second() {
    let rig = Rig::new("trickle", 1).await;
    rig.kafka.produce(&rig.topic, numbered(0, 0..1)).await;
    let process = rig.run();
    rows_reach(&rig, &rig.topic, 1).await;
    let committed = async || {
        metric(&process, &["oncesink_transactions_total", "committed"])
            .await
            .expect("a transaction was counted")
    };
    says(&process, &["partitions claimed"]).await;
    let (before, began) = (committed().await, Instant::now());
    for seq in 0..15 {
        rig.kafka.produce_aborted(&rig.topic, numbered(0, seq + 100..seq + 101)).await;
    }
    stands_at(&rig, &rig.topic, 0, 31).await;
    let (taken, lasted) = (committed().await - before, began.elapsed().as_secs_f64());
    assert!(taken >= 1.0 && taken <= lasted + 2.0, "{taken} transactions in {lasted} s");
    assert_eq!(seqs(&rig, &rig.topic, 0).await, [0]);
    end(process).await;
}
