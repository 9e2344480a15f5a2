//! `/healthz` tells of this process alone; `/readyz` of its part in the group.

use std::net::TcpListener;

use oncesink_test_support::eventually;
use oncesink_test_support::process::Launch;

use super::{caught_up, running, scraped};
use crate::rig::{PATIENCE, Rig};
use crate::scrape::Http;

async fn ready(http: &Http) {
    eventually(PATIENCE, || async { (http.get("/readyz").await.0 == 200).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits_for_kafka_is_healthy_and_not_ready() {
    let rig = Rig::new("waits", 1).await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let config = rig.config().replace(rig.kafka.bootstrap(), &address);
    let process =
        Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &config).args(["run"]).start();
    let http = Http::of(&process).await;
    assert_eq!(http.get("/healthz").await, (200, "ok\n".to_owned()));
    let (status, reason) = http.get("/readyz").await;
    assert_eq!((status, reason), (503, format!("group {}: not joined yet\n", rig.topic)));
    assert!(http.scrape().await.partitions(&rig.topic).is_empty());
    assert_eq!(http.get("/nothing").await.0, 404);
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_means_joined_and_everything_claimed() {
    let mut rig = Rig::new("ready", 1).await;
    rig.produce(5).await;
    let (first, http) = running(&rig).await;
    ready(&http).await;
    scraped(&http, |scrape| caught_up(&rig, scrape)).await;
    // A second instance of a group with one partition: none for it, and nothing wrong with that.
    let (_second, idle) = running(&rig).await;
    ready(&idle).await;
    first.terminate();
    assert_eq!(first.wait_exit(PATIENCE).await, 0);
    scraped(&idle, |scrape| caught_up(&rig, scrape)).await;
    assert_eq!(idle.get("/readyz").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_cannot_be_claimed_yet_is_not_ready_and_not_unhealthy() {
    use oncesink::sqlx::Executor;

    let mut rig = Rig::new("unclaimed", 1).await;
    rig.produce(5).await;
    rig.run_until_end().await;
    let mut holder = rig.schema.connection().await;
    holder.execute("BEGIN; SELECT 1 FROM kafka_offsets FOR UPDATE").await.unwrap();
    let (_process, http) = running(&rig).await;
    let reason = format!("group {0}: {0}/0 is not claimed yet\n", rig.topic);
    eventually(PATIENCE, || async { (http.get("/readyz").await == (503, reason.clone())).then_some(()) })
        .await;
    assert_eq!(http.get("/healthz").await.0, 200);
    let scrape = http.scrape().await;
    assert_eq!(scrape.state(&rig.topic, 0).as_deref(), Some("claiming"));
    assert_eq!(scrape.partition("oncesink_stored_offset", &rig.topic, 0), None, "unknown is absent");
    holder.execute("ROLLBACK").await.unwrap();
    ready(&http).await;
    rig.produce(5).await;
    rig.all_once().await;
}
