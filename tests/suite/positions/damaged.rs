//! A damaged batch on the broker's disk: nothing of it or behind it is written, the other partitions flow on, and once it is whole again everything arrives.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use oncesink_test_support::Servers;
use oncesink_test_support::kafka::{Kafka, KafkaCluster, KafkaOptions};

use super::{end, numbered, says, seqs, stands_at, stops};
use crate::rig::Rig;

/// Turns over all bits of one byte; once more, and it is as it was.
fn flip(segment: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(segment).expect("opening a segment");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("reading a byte");
    file.write_all_at(&[!byte[0]], at).expect("writing a byte");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_ends_the_intake_of_its_partition_until_it_is_mended() {
    let cluster = KafkaCluster::start(KafkaOptions::one()).await;
    let kafka: &'static Kafka = Box::leak(Box::new(Kafka::connect(cluster.bootstrap())));
    let mut rig = Rig::between(kafka, Servers::shared().await.postgres(), "damaged", 2).await;
    let batches = [rig.records(0, 50), rig.records(0, 1)];
    for batch in batches {
        rig.kafka.produce(&rig.topic, batch).await;
    }
    let segment = cluster.broker(1).segment(&rig.topic, 0);
    // In the value of the last record.
    let at = std::fs::metadata(&segment).expect("a segment").len() - 10;
    flip(&segment, at);
    let behind = [rig.records(0, 20), rig.records(1, 100)].concat();
    rig.kafka.produce(&rig.topic, behind).await;

    let process = rig.run();
    stands_at(&rig, &rig.topic, 1, 100).await;
    stands_at(&rig, &rig.topic, 0, 50).await;
    // Read again, and again in vain.
    let place = format!("{}/0", rig.topic);
    let mut seen = 0;
    for _ in 0..3 {
        let place = place.clone();
        let again = move |line: &oncesink_test_support::process::Line| {
            line.text.contains(&place) && line.text.contains("reading again from the stored offset")
        };
        seen = process.wait_for_line_after(seen, again, crate::rig::PATIENCE).await.0 + 1;
    }
    assert_eq!(seqs(&rig, &rig.topic, 0).await, (0..50).collect::<Vec<i64>>());
    assert_eq!(rig.stored(0).await, 50);
    let more = rig.records(1, 10);
    rig.kafka.produce(&rig.topic, more).await;
    stands_at(&rig, &rig.topic, 1, 110).await;

    flip(&segment, at);
    rig.all_once().await;
    says(&process, &["metrics and health"]).await;
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_lost_its_tail_stops_its_partition_at_the_next_start_although_it_is_longer_again() {
    lost_tail(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_loses_its_tail_while_it_is_read_stops_its_partition() {
    lost_tail(true).await;
}

async fn lost_tail(running: bool) {
    let cluster = KafkaCluster::start(KafkaOptions::one()).await;
    let kafka: &'static Kafka = Box::leak(Box::new(Kafka::connect(cluster.bootstrap())));
    let mut rig = Rig::between(kafka, Servers::shared().await.postgres(), "lost_tail", 2).await;
    let broker = cluster.broker(1);
    let segment = broker.segment(&rig.topic, 0);
    let kept = rig.records(0, 60);
    rig.kafka.produce(&rig.topic, kept).await;
    let length = std::fs::metadata(&segment).expect("a segment").len();
    let lost = [rig.records(0, 40), rig.records(1, 100)].concat();
    rig.kafka.produce(&rig.topic, lost).await;
    rig.run_until_end().await;
    let early = running.then(|| rig.run());
    if let Some(process) = &early {
        says(process, &["2 partitions claimed"]).await;
    }

    // What an unclean leader election does to a log: 60 to 99 are gone, and others take their offsets under a later leader epoch.
    broker.kill9();
    File::options()
        .write(true)
        .open(&segment)
        .expect("a segment")
        .set_len(length)
        .expect("cutting a segment");
    broker.restart().await;
    assert_eq!(rig.kafka.produce(&rig.topic, numbered(0, 1000..1100)).await[0], 60);

    let process = early.unwrap_or_else(|| rig.run());
    let reason = stops(&rig, &rig.topic, 0).await;
    assert!(reason.contains("the log was truncated below the stored offset"), "{reason}");
    assert_eq!(seqs(&rig, &rig.topic, 0).await, (0..100).collect::<Vec<i64>>());
    assert_eq!(rig.stored(0).await, 100);
    let more = rig.records(1, 10);
    rig.kafka.produce(&rig.topic, more).await;
    stands_at(&rig, &rig.topic, 1, 110).await;
    end(process).await;
}
