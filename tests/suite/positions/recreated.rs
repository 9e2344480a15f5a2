//! Topics that were deleted and created again, and rows that belong to others.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;

use super::{
    column, command_with, end, ledger, numbered, rows_reach, says, seqs, stands_at, verb, with_topic,
};
use crate::rig::{PATIENCE, Rig};

/// Deletes the rig's topic, makes it again and fills it beyond the stored offset.
async fn create_again(rig: &Rig, records: std::ops::Range<i64>) {
    rig.kafka.delete_topic(&rig.topic).await;
    rig.kafka.create_topic(&rig.topic, 1, &[]).await;
    rig.kafka.produce(&rig.topic, numbered(0, records)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn created_again_while_running_it_stops_and_a_reset_takes_over() {
    let mut rig = Rig::new("recreated", 1).await;
    let other = rig.kafka.topic("healthy", 1).await;
    ledger(&rig, &other).await;
    rig.produce(100).await;
    let process = command_with(&with_topic(&rig, &other), &["run"]).start();
    stands_at(&rig, &rig.topic, 0, 100).await;

    create_again(&rig, 1000..1200).await;
    let began = Instant::now();
    // By the look at the topics' ids, or by the claim that follows when the group noticed first.
    let place = format!("{}/0", rig.topic);
    let halted = eventually_within(
        PATIENCE,
        || async {
            process
                .text()
                .lines()
                .find(|l| l.contains(&place) && l.contains("oncesink reset"))
                .map(str::to_owned)
        },
        Option::is_some,
    )
    .await
    .expect("a line");
    assert!(halted.contains("created again") || halted.contains("topic id differs"), "{halted}");
    assert!(began.elapsed() < Duration::from_secs(10), "noticed after {:?}", began.elapsed());

    // Nothing more is written, while the other topic flows.
    let standing: i64 =
        column(&rig, &rig.topic, 0, "last_offset").await.expect("a row").parse().expect("a number");
    rig.kafka.produce(&rig.topic, numbered(0, 1200..1300)).await;
    rig.kafka.produce(&other, numbered(0, 0..100)).await;
    rows_reach(&rig, &other, 100).await;
    assert_eq!(column(&rig, &rig.topic, 0, "last_offset").await, Some(standing.to_string()));
    // What the window let through is what stands between the stored offsets, and nothing below them.
    let written: Vec<i64> = (0..100).chain(1100..1000 + standing).collect();
    assert_eq!(seqs(&rig, &rig.topic, 0).await, written);

    verb(&rig, &["reset", &rig.topic, "--reason", "the topic was made anew"]).await;
    let distinct = format!("SELECT count(DISTINCT seq) FROM \"{}\" WHERE seq >= 1000", rig.topic);
    eventually_within(PATIENCE, || rig.schema.value::<i64>(&distinct), |count| *count == 300).await;
    stands_at(&rig, &rig.topic, 0, 300).await;
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn created_again_while_stopped_it_is_refused_and_nothing_is_touched_until_a_reset() {
    let mut rig = Rig::new("refused", 1).await;
    rig.produce(100).await;
    rig.run_until_end().await;
    let epoch = column(&rig, &rig.topic, 0, "owner_epoch").await;
    create_again(&rig, 1000..1200).await;

    let process = rig.run();
    let reset = format!("oncesink reset ledger {} --to earliest --reason", rig.topic);
    says(&process, &[&format!("{}/0 refused", rig.topic), "topic id differs", &reset]).await;
    assert_eq!(column(&rig, &rig.topic, 0, "owner_epoch").await, epoch);
    assert_eq!(column(&rig, &rig.topic, 0, "last_offset").await.as_deref(), Some("100"));
    assert_eq!(rig.schema.count(&rig.topic).await, 100);

    verb(&rig, &["reset", &rig.topic, "--reason", "the topic was made anew"]).await;
    rows_reach(&rig, &rig.topic, 300).await;
    stands_at(&rig, &rig.topic, 0, 200).await;
    assert_eq!(seqs(&rig, &rig.topic, 0).await, (0..100).chain(1000..1200).collect::<Vec<i64>>());
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sink_in_the_group_is_refused_and_fences_nobody() {
    let mut rig = Rig::new("second", 2).await;
    rig.produce(10).await;
    let healthy = rig.run();
    rig.all_once().await;
    let epochs =
        [column(&rig, &rig.topic, 0, "owner_epoch").await, column(&rig, &rig.topic, 1, "owner_epoch").await];

    let other = rig.config().replace("[sinks.ledger]", "[sinks.second]");
    let second = command_with(&other, &["run"]).start();
    let line = says(&second, &["refused", "sink differs", "oncesink reset second"]).await;
    let moved = if line.text.contains(&format!("{}/0 refused", rig.topic)) { 0 } else { 1 };
    assert_eq!(column(&rig, &rig.topic, moved, "owner_epoch").await, epochs[moved as usize]);
    assert_eq!(column(&rig, &rig.topic, moved, "state").await.as_deref(), Some("running"));
    // The partition that the first one kept flows on, and the other one comes back when the second sink has left.
    let kept = 1 - moved;
    let more = rig.records(kept, 5);
    rig.kafka.produce(&rig.topic, more).await;
    stands_at(&rig, &rig.topic, kept, 15).await;
    assert_eq!(column(&rig, &rig.topic, kept, "owner_epoch").await, epochs[kept as usize]);
    end(second).await;
    rig.produce(5).await;
    rig.all_once().await;
    end(healthy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_is_refused() {
    let mut rig = Rig::new("cluster", 1).await;
    rig.produce(10).await;
    rig.run_until_end().await;
    rig.schema.execute("UPDATE kafka_offsets SET cluster_id = 'another'").await;
    let epoch = column(&rig, &rig.topic, 0, "owner_epoch").await;
    rig.produce(5).await;
    let (code, lines) = rig.command(&["run", "--until-end"]).run(PATIENCE).await;
    assert_eq!(code, 4, "{lines:#?}");
    assert!(lines.iter().any(|line| line.text.contains("cluster differs")), "{lines:#?}");
    assert_eq!(column(&rig, &rig.topic, 0, "owner_epoch").await, epoch);
    assert_eq!(rig.schema.count(&rig.topic).await, 10);
}
