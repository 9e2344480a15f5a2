//! Several instances of one group, and several groups in one process: each series is at one place, and sums are right.

use std::collections::BTreeSet;

use oncesink_test_support::process::Launch;

use super::{caught_up, running, scraped};
use crate::rig::{PATIENCE, Rig};
use crate::scrape::Http;

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_partition_is_gone_at_once_and_appears_elsewhere() {
    let mut rig = Rig::new("revoked", 4).await;
    rig.produce(50).await;
    let (_first, a) = running(&rig).await;
    scraped(&a, |scrape| caught_up(&rig, scrape)).await;
    let all: BTreeSet<i32> = (0..4).collect();
    assert_eq!(a.scrape().await.partitions(&rig.topic), all);

    let (second, b) = running(&rig).await;
    let (shared_a, shared_b) = oncesink_test_support::eventually(PATIENCE, || async {
        // The newcomer is asked first: what it has by then, the other one must have lost before.
        let (b, a) = (b.scrape().await, a.scrape().await);
        let (mine, others) = (b.partitions(&rig.topic), a.partitions(&rig.topic));
        assert!(mine.is_disjoint(&others), "both show {mine:?} and {others:?}");
        (mine.len() == 2 && others.len() == 2).then_some((a, b))
    })
    .await;
    assert_eq!(shared_a.sum("oncesink_rebalances_total", &[("kind", "revoke")]), 1.0);
    assert_eq!(shared_a.sum("oncesink_rebalance_stall_seconds_count", &[("kind", "revoke")]), 1.0);
    assert_eq!(shared_b.sum("oncesink_rebalances_total", &[("kind", "assign")]), 1.0);

    rig.produce(70).await;
    rig.all_once().await;
    let (a_end, b_end) = oncesink_test_support::eventually(PATIENCE, || async {
        let (a, b) = (a.scrape().await, b.scrape().await);
        let stored = a.sum("oncesink_stored_offset", &[]) + b.sum("oncesink_stored_offset", &[]);
        let lag = a.sum("oncesink_lag_records", &[]) + b.sum("oncesink_lag_records", &[]);
        let high =
            a.sum("oncesink_high_watermark_offset", &[]) + b.sum("oncesink_high_watermark_offset", &[]);
        (stored == 480.0 && high == 480.0 && lag == 0.0).then_some((a, b))
    })
    .await;
    let written = |name: &str| a_end.sum(name, &[]) + b_end.sum(name, &[]);
    assert_eq!(written("oncesink_records_read_total"), 480.0);
    assert_eq!(written("oncesink_records_written_total"), 480.0);
    assert_eq!(b_end.sum("oncesink_rebalance_stall_seconds_count", &[("kind", "assign")]), 1.0);

    second.terminate();
    assert_eq!(second.wait_exit(PATIENCE).await, 0);
    scraped(&a, |scrape| scrape.partitions(&rig.topic) == all && caught_up(&rig, scrape)).await;
    rig.each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sinks_in_one_process_share_families() {
    let mut rig = Rig::new("sinks", 2).await;
    rig.produce(20).await;
    let other = format!("{}_copy", rig.topic);
    rig.schema.execute(&format!("CREATE TABLE \"{other}\" (LIKE \"{}\")", rig.topic)).await;
    let config = format!(
        "{}\n[sinks.copy]\ntopics = [\"{}\"]\ngroup = \"{other}\"\ntarget = {{ kind = \"postgres\", url = \"{}\" }}\ntable = {{ table = \"{other}\" }}\n",
        rig.config(),
        rig.topic,
        rig.url
    );
    let process = Launch::new(env!("CARGO_BIN_EXE_oncesink"))
        .file("oncesink.toml", &config)
        .args(["run"])
        .env("RUST_LOG", "info")
        .start();
    let http = Http::of(&process).await;
    let scrape = scraped(&http, |scrape| {
        [&rig.topic, &other].into_iter().all(|group| {
            (0..2).all(|partition| {
                let partition = partition.to_string();
                let labels = [("group", &**group), ("topic", &*rig.topic), ("partition", &*partition)];
                scrape.value("oncesink_lag_seconds", &labels) == Some(0.0)
                    && scrape.value("oncesink_stored_offset", &labels) == Some(20.0)
            })
        })
    })
    .await;
    for group in [&rig.topic, &other] {
        let of = |name| scrape.sum(name, &[("group", group)]);
        assert_eq!(of("oncesink_records_written_total"), 40.0, "{group}");
        assert_eq!(of("oncesink_info"), 1.0, "{group}");
    }
    assert_eq!(http.get("/readyz").await, (200, "ok\n".to_owned()));
    rig.each_once().await;
    assert_eq!(rig.schema.count(&format!("\"{other}\"")).await, 40);
}
