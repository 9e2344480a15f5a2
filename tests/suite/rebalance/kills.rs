//! Ends of every kind while rows flow: `kill -9` again and again, a graceful stop, and a stop that is aborted by a second signal.

use std::time::Duration;

use oncesink_test_support::kafka::{Kafka, KafkaCluster, KafkaOptions};
use oncesink_test_support::proxy::{Action, Point, Proxy};
use oncesink_test_support::{Servers, eventually_within};

use crate::rebalance::group::{rig, said};
use crate::rebalance::load::Load;
use crate::rig::{PATIENCE, Rig};

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_ten_times_while_rows_flow() {
    let mut rig = Rig::new("kill9", 3).await;
    // A bearer of the same name has its partitions back at once, so that there is time for many kills.
    rig.kafka_lines = "group.instance.id = \"one\"".to_owned();
    rig.sink_lines = "batch = { rows = 300 }".to_owned();
    rig.produce(2_000).await;
    let load = Load::start(&rig, 200, Duration::from_millis(5));
    let mut in_transaction = 0;
    for _ in 0..10 {
        let process = rig.run();
        rig.flows(&[0, 1, 2], 300).await;
        let open = |open: &Vec<(String, String)>| !open.is_empty();
        eventually_within(PATIENCE, || rig.open_transactions(process.pid()), open).await;
        process.kill9();
        in_transaction += 1;
    }
    load.stop(&mut rig).await;
    let _last = rig.run();
    rig.all_once().await;
    assert_eq!(in_transaction, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_the_transaction_in_flight() {
    let mut rig = rig("graceful", 2).await;
    rig.sink_lines = "writers = 1".to_owned();
    rig.produce(2_000).await;
    let proxy = Proxy::start(rig.schema.url());
    proxy.arm(Point::Statement("RELEASE SAVEPOINT".into()), Action::Hold);
    let process = rig.run_through(proxy.url());
    proxy.wait_for(|seen| seen.held == 1).await;
    process.terminate();
    process.wait_for_line(|line| line.text.contains("SIGTERM: stopping"), PATIENCE).await;
    assert_eq!(rig.schema.count(&rig.topic).await, 0);
    proxy.release();
    assert_eq!(process.wait_exit(PATIENCE).await, 0, "{}", process.text());
    let written = rig.schema.count(&rig.topic).await;
    assert!(written > 0, "the transaction in flight was not finished: {}", process.text());
    let stored: i64 = rig.stored_all().await.iter().sum();
    assert_eq!(written, stored);
    rig.run_until_end().await;
    rig.each_once().await;
}

/// What the exit code is then is no matter; that nothing is lost or written twice is.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_is_gone_or_frozen_at_the_close_costs_no_row() {
    let cluster = KafkaCluster::start(KafkaOptions::one()).await;
    let broker = cluster.broker(1);
    let kafka: &'static Kafka = Box::leak(Box::new(Kafka::connect(cluster.bootstrap())));
    let mut rig = Rig::between(kafka, Servers::shared().await.postgres(), "gone", 2).await;
    rig.kafka_lines = "\"session.timeout.ms\" = 3000".to_owned();
    for frozen in [true, false] {
        rig.produce(500).await;
        let process = rig.run();
        rig.all_once().await;
        if frozen {
            broker.freeze()
        } else {
            broker.kill9()
        }
        process.terminate();
        process.wait_exit(PATIENCE).await;
        rig.each_once().await;
        if frozen { broker.thaw() } else { broker.restart().await }
    }
    rig.produce(500).await;
    rig.run_until_end().await;
    rig.each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_aborts() {
    let mut rig = rig("abort", 2).await;
    rig.produce(2_000).await;
    let proxy = Proxy::start(rig.schema.url());
    proxy.arm(Point::Statement("RELEASE SAVEPOINT".into()), Action::StallBefore);
    let process = rig.run_through(proxy.url());
    proxy.wait_for(|seen| seen.stalls == 1).await;
    process.terminate();
    process.wait_for_line(|line| line.text.contains("SIGTERM: stopping"), PATIENCE).await;
    process.interrupt();
    // 128 and SIGABRT.
    assert_eq!(process.wait_exit(Duration::from_secs(5)).await, 134, "{}", process.text());
    assert_eq!(said(&process, "SIGINT again"), 1);
    proxy.cut_sessions();
    rig.run_until_end().await;
    rig.each_once().await;
}
