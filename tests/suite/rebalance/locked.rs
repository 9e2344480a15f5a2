//! One offset row of ten held by somebody else: the other nine partitions flow, and only a frozen session of our own is ended.

use std::time::Duration;

use oncesink::sqlx::{Executor, PgConnection, Row};
use oncesink_test_support::eventually_within;
use oncesink_test_support::proxy::{Action, Point, Proxy};

use crate::rebalance::group::{rig, said};
use crate::rig::{PATIENCE, Rig};

const TEN: i32 = 10;
const LOCKED: i32 = 3;
const LOCK: &str = "BEGIN; SELECT FROM kafka_offsets WHERE partition_id = 3 FOR UPDATE";

/// Rows for ten partitions, written by a first run, so that there is something to lock.
async fn begun(stem: &str) -> Rig {
    let mut rig = rig(stem, TEN).await;
    rig.produce(100).await;
    rig.run_until_end().await;
    rig.produce(1_000).await;
    rig
}

/// A foreign session that holds the row of one partition.
async fn foreign_lock(rig: &Rig) -> (PgConnection, i32) {
    let mut holder = rig.schema.connection().await;
    holder.execute(LOCK).await.expect("locking a row");
    let pid = holder.fetch_one("SELECT pg_backend_pid()").await.expect("a pid").get(0);
    (holder, pid)
}

async fn nine_have(rig: &Rig, offset: i64) {
    let others = |offsets: &Vec<i64>| {
        let mut others = offsets.iter().zip(0..).filter(|(_, partition)| *partition != LOCKED);
        others.all(|(stored, _)| *stored == offset)
    };
    eventually_within(PATIENCE, || rig.stored_all(), others).await;
}

async fn is_there(rig: &Rig, pid: i32) -> bool {
    rig.schema.value(&format!("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid})")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_flow_when_the_tenth_is_locked_before_the_claim() {
    let mut rig = begun("locked_before").await;
    let (mut holder, pid) = foreign_lock(&rig).await;
    let process = rig.run();
    nine_have(&rig, 1_100).await;
    assert_eq!(rig.stored(LOCKED).await, 100);
    // Past the time after which a frozen session of ours would be ended: the foreign one is not.
    process.wait_for_line(|line| line.text.contains("has been held by another"), PATIENCE).await;
    rig.produce(100).await;
    nine_have(&rig, 1_200).await;
    assert!(is_there(&rig, pid).await, "a foreign session was ended");
    assert_eq!(said(&process, "ended a frozen session"), 0, "{}", process.text());
    holder.execute("COMMIT").await.expect("letting go");
    rig.all_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_flow_when_the_tenth_is_locked_while_it_runs() {
    let mut rig = begun("locked_while").await;
    let process = rig.run();
    rig.all_once().await;
    let (mut holder, pid) = foreign_lock(&rig).await;
    rig.produce(500).await;
    nine_have(&rig, 1_600).await;
    assert_eq!(rig.stored(LOCKED).await, 1_100);
    process.wait_for_line(|line| line.text.contains("has been held by another"), PATIENCE).await;
    rig.produce(100).await;
    nine_have(&rig, 1_700).await;
    assert!(is_there(&rig, pid).await, "a foreign session was ended");
    holder.execute("COMMIT").await.expect("letting go");
    rig.all_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_session_of_our_own_group_is_ended() {
    let rig = begun("locked_own").await;
    let proxy = Proxy::start(rig.schema.url());
    proxy.arm(Point::Statement("RELEASE SAVEPOINT".into()), Action::StallBefore);
    let frozen = rig.run_through(proxy.url());
    proxy.wait_for(|seen| seen.stalls == 1).await;
    frozen.freeze();
    let held = rig.group_transactions().await;
    assert!(held.iter().any(|(state, _)| state == "idle in transaction"), "{held:?}");
    let (successor, begin) = (rig.run(), std::time::Instant::now());
    rig.owns(&successor, |owned| owned == i64::from(TEN)).await;
    let took = begin.elapsed();
    assert!(said(&successor, "ended a frozen session") > 0, "{}", successor.text());
    assert!(took < Duration::from_secs(20), "the takeover took {took:?}");
    rig.all_once().await;
    drop(frozen);
}
