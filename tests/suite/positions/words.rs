//! Words from outside: what a person orders from another process is noticed by a live owner.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;
use oncesink_test_support::kafka::Record;

use super::{column, end, events, numbered, rows_reach, says, seqs, stands_at, stops, verb};
use crate::rig::{PATIENCE, Rig};

/// A word is noticed within two seconds; the rest is for a busy machine.
const NOTICED: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_owner_notices_a_reset() {
    let mut rig = Rig::new("idle", 2).await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    let place = format!("{}/1", rig.topic);
    verb(&rig, &["reset", &place, "--to", "4", "--expect", "10", "--reason", "again"]).await;
    let began = Instant::now();
    rows_reach(&rig, &rig.topic, 26).await;
    assert!(began.elapsed() < NOTICED, "{:?}", began.elapsed());
    let twice: Vec<i64> = (0..10).chain(4..10).collect();
    let mut found = seqs(&rig, &rig.topic, 1).await;
    found.sort_unstable();
    let mut wanted = twice;
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert_eq!(seqs(&rig, &rig.topic, 0).await.len(), 10);
    assert_eq!(events(&rig).await, ["reset T/1 10->4"]);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_partition_notices_a_skip() {
    let mut rig = Rig::new("skip", 2).await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    rig.kafka.produce(&rig.topic, [Record::to(0).value("no object")]).await;
    rig.produce(3).await;
    stops(&rig, &rig.topic, 0).await;
    let place = format!("{}/0", rig.topic);
    says(&process, &[&format!("{place}@10 stopped"), &format!("oncesink skip ledger {place} --expect 10")])
        .await;
    stands_at(&rig, &rig.topic, 1, 13).await;
    assert_eq!(rig.stored(0).await, 10);

    verb(&rig, &["skip", &place, "--expect", "10", "--reason", "not an object"]).await;
    let began = Instant::now();
    rig.all_once().await;
    assert!(began.elapsed() < NOTICED, "{:?}", began.elapsed());
    assert_eq!(rig.stored(0).await, 14);
    assert_eq!(column(&rig, &rig.topic, 0, "state").await.as_deref(), Some("running"));
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_partition_notices_a_resume_after_the_table_was_mended() {
    let mut rig = Rig::new("resume", 1).await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD CONSTRAINT low CHECK (seq < 5)", rig.topic)).await;
    rig.produce(10).await;
    let process = rig.run();
    stops(&rig, &rig.topic, 0).await;
    assert_eq!(rig.stored(0).await, 5);
    assert_eq!(seqs(&rig, &rig.topic, 0).await, [0, 1, 2, 3, 4]);
    rig.schema.execute(&format!("ALTER TABLE \"{}\" DROP CONSTRAINT low", rig.topic)).await;
    verb(&rig, &["resume", &format!("{}/0", rig.topic)]).await;
    let began = Instant::now();
    rig.all_once().await;
    assert!(began.elapsed() < NOTICED, "{:?}", began.elapsed());
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_owner_notices_a_reset() {
    let mut rig = Rig::new("busy", 1).await;
    rig.sink_lines = "batch = { rows = 100 }".to_owned();
    let process = rig.run();
    stands_at(&rig, &rig.topic, 0, 0).await;
    let records = rig.records(0, 20_000);
    let (bootstrap, topic) = (rig.kafka.bootstrap().to_owned(), rig.topic.clone());
    let producing = tokio::spawn(async move {
        let kafka = oncesink_test_support::kafka::Kafka::connect(&bootstrap);
        for some in records.chunks(500) {
            kafka.produce(&topic, some.to_vec()).await;
        }
    });
    rows_reach(&rig, &rig.topic, 1_000).await;
    verb(&rig, &["reset", &format!("{}/0", rig.topic), "--to", "500", "--reason", "again"]).await;
    let ordered: i64 = rig.schema.value("SELECT old_offset FROM oncesink_events WHERE kind = 'reset'").await;
    assert!(ordered < 20_000, "the word came while the owner was busy");
    producing.await.expect("producing");
    stands_at(&rig, &rig.topic, 0, 20_000).await;
    // Exactly what the person ordered is there twice: from the new offset to the old one.
    let twice = format!(
        "SELECT format('%s..%s: %s', min(seq), max(seq), count(*)) FROM (SELECT seq FROM \"{}\" GROUP BY seq HAVING count(*) = 2) d",
        rig.topic
    );
    let expected = format!("500..{}: {}", ordered - 1, ordered - 500);
    assert_eq!(rig.schema.value::<String>(&twice).await, expected);
    assert_eq!(rig.schema.count(&rig.topic).await, 20_000 + ordered - 500);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_partition_notices_a_reset_that_comes_at_once() {
    let mut rig = Rig::new("at_once", 1).await;
    rig.produce(10).await;
    rig.run_until_end().await;
    rig.schema.execute("UPDATE kafka_offsets SET sink = 'other: elsewhere'").await;
    rig.kafka.produce(&rig.topic, numbered(0, 10..15)).await;
    let process = rig.run();
    says(&process, &["refused", "sink differs"]).await;
    // Before any look at the rows: only what the claim saw under the lock can be compared with.
    verb(&rig, &["reset", &format!("{}/0", rig.topic), "--to", "10", "--reason", "ours"]).await;
    eventually_within(PATIENCE, || rig.schema.count(&rig.topic), |count| *count == 15).await;
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_in_the_row_is_obeyed_until_a_resume() {
    let mut rig = Rig::new("pause", 2).await;
    rig.produce(10).await;
    rig.run_until_end().await;
    rig.schema
        .execute("UPDATE kafka_offsets SET state = 'paused', state_reason = 'repairs' WHERE partition_id = 0")
        .await;
    rig.produce(5).await;
    let process = rig.run();
    let place = format!("{}/0", rig.topic);
    says(&process, &[&format!("{place}@10 paused"), &format!("oncesink resume ledger {place}")]).await;
    stands_at(&rig, &rig.topic, 1, 15).await;
    assert_eq!(rig.stored(0).await, 10);
    assert_eq!(column(&rig, &rig.topic, 0, "state_reason").await.as_deref(), Some("repairs"));
    verb(&rig, &["resume", &place]).await;
    rig.all_once().await;
    end(process).await;
}
