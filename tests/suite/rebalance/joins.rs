//! Joins and leaves without any fault, under load, by both group protocols: the plainest thing that doubles rows elsewhere.

use std::time::Duration;

use crate::rebalance::group::{PROTOCOLS, said};
use crate::rebalance::load::Load;
use crate::rig::{PATIENCE, Rig};

async fn with_protocol(stem: &str, partitions: i32, protocol: &str) -> Rig {
    let mut rig = Rig::new(stem, partitions).await;
    rig.kafka_lines = protocol.to_owned();
    // Many small transactions, so that some are open whenever a partition is taken away.
    rig.sink_lines = "batch = { rows = 100 }".to_owned();
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_join_under_load_doubles_and_loses_nothing() {
    for protocol in PROTOCOLS {
        let mut rig = with_protocol("join", 4, protocol).await;
        rig.produce(2_000).await;
        let load = Load::start(&rig, 100, Duration::from_millis(20));
        let first = rig.run();
        rig.rows_reach(1_000).await;
        let second = rig.run();
        rig.shared_by(&[&first, &second]).await;
        rig.flows(&[0, 1, 2, 3], 200).await;
        load.stop(&mut rig).await;
        rig.all_once().await;
        // No fault, so nobody was fenced, and the group took nothing by force.
        for process in [&first, &second] {
            assert_eq!(said(process, "not ours any more"), 0, "{protocol}: {}", process.text());
            assert_eq!(said(process, "partitions to the group"), 0, "{protocol}: {}", process.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_joins_and_leaves_double_and_lose_nothing() {
    for protocol in PROTOCOLS {
        let mut rig = with_protocol("joins", 6, protocol).await;
        rig.produce(2_000).await;
        let load = Load::start(&rig, 50, Duration::from_millis(20));
        let mut members = vec![rig.run()];
        rig.rows_reach(1_000).await;
        for _ in 0..2 {
            members.push(rig.run());
            rig.shared_by(&members.iter().collect::<Vec<_>>()).await;
        }
        for _ in 0..2 {
            let leaver = members.remove(0);
            leaver.terminate();
            assert_eq!(leaver.wait_exit(PATIENCE).await, 0, "{protocol}: {}", leaver.text());
            rig.shared_by(&members.iter().collect::<Vec<_>>()).await;
        }
        members.push(rig.run());
        rig.shared_by(&members.iter().collect::<Vec<_>>()).await;
        rig.flows(&[0, 1, 2, 3, 4, 5], 100).await;
        load.stop(&mut rig).await;
        rig.all_once().await;
    }
}

/// librdkafka lets partitions fetch in a fixed order while the queue that they share has room: a writer that made a little room at a time would feed the first
/// one alone.
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_slow_database_every_partition_of_a_writer_flows() {
    let mut rig = Rig::new("fair", 4).await;
    rig.sink_lines = "writers = 1\nmemory = \"6MB\"\nbatch = { rows = 250 }".to_owned();
    rig.schema
        .execute(&format!(
            "CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS
                 'BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END';
             CREATE TRIGGER hold_up AFTER INSERT ON \"{}\" FOR EACH STATEMENT EXECUTE FUNCTION hold_up()",
            rig.topic
        ))
        .await;
    // In small batches: a fetch brings at least one, however large.
    for _ in 0..20 {
        rig.produce(2_000).await;
    }
    let process = rig.run();
    // Half of the whole backlog: fair shares would be 20,000 each.
    process.wait_for_line(|line| line.text.contains("partitions claimed"), PATIENCE).await;
    rig.rows_reach(80_000).await;
    let stored = rig.stored_all().await;
    println!("stored after half of the rows: {stored:?}");
    assert!(stored.iter().all(|offset| *offset >= 8_000), "{stored:?}");
    drop(process);
}
