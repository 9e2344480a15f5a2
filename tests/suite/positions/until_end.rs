//! `run --until-end`: the ends that were read at the start, whoever reaches them.

use oncesink_test_support::kafka::Record;

use super::{end, says, seqs};
use crate::rig::{PATIENCE, Rig};

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_the_ends_are_reached_whoever_wrote_them() {
    let mut rig = Rig::new("whoever", 2).await;
    let owner = rig.run();
    rig.produce(500).await;
    rig.run_until_end().await;
    rig.each_once().await;
    rig.produce(5).await;
    rig.all_once().await;
    end(owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_four_and_names_the_partitions_that_stopped_short() {
    let mut rig = Rig::new("short", 3).await;
    rig.produce(10).await;
    rig.kafka.produce(&rig.topic, [Record::to(1).value("no object")]).await;
    rig.produce(5).await;
    let (code, lines) = rig.command(&["run", "--until-end"]).run(PATIENCE).await;
    assert_eq!(code, 4, "{lines:#?}");
    // Up to the end of the message: no other partition is named.
    let short = format!("stopped short are {}/1\"", rig.topic);
    assert!(lines.iter().any(|line| line.text.contains(&short)), "{short}: {lines:#?}");
    assert_eq!((rig.stored(0).await, rig.stored(1).await, rig.stored(2).await), (15, 10, 15));
    assert_eq!(seqs(&rig, &rig.topic, 1).await, (0..10).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_topics_are_at_their_end() {
    let rig = Rig::new("empty", 2).await;
    let process = rig.command(&["run", "--until-end"]).env("RUST_LOG", "info").start();
    says(&process, &["the end is reached"]).await;
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    assert_eq!(rig.schema.count(&rig.topic).await, 0);
}
