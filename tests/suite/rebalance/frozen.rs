//! An owner that is stopped by SIGSTOP, replaced, and woken up: it writes nothing any more, says so, and works again.
//!
//! Each test proves by the database's own view that it froze the owner at the moment that it is named after.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;
use oncesink_test_support::process::Process;
use oncesink_test_support::proxy::{Action, Point, Proxy};

use crate::rebalance::group::{reports_fenced, rig};
use crate::rig::{PATIENCE, Rig};

const PARTITIONS: i32 = 4;
/// The session timeout, the five seconds after which a session of ours is taken for frozen, and room for a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// Takes over from the frozen owner within the bound, while it is frozen.
async fn take_over(rig: &Rig) -> Process {
    let begin = Instant::now();
    let successor = rig.run();
    rig.owns(&successor, |owned| owned == i64::from(PARTITIONS)).await;
    let took = begin.elapsed();
    println!("takeover after {:.1} s", took.as_secs_f64());
    assert!(took < BOUND, "the takeover took {took:?}: {}", successor.text());
    successor
}

/// Wakes the frozen owner up; it must say that it was fenced, and then get partitions again and work.
async fn thaw_and_work(mut rig: Rig, frozen: Process, successor: Process) {
    // The successor has written all that the frozen one had fetched.
    rig.all_once().await;
    frozen.thaw();
    rig.shared_by(&[&frozen, &successor]).await;
    assert!(reports_fenced(&frozen), "{}", frozen.text());
    // Rows that the woken owner wrote of its old records would stand here twice.
    rig.each_once().await;
    rig.produce(500).await;
    rig.all_once().await;
    assert!(frozen.is_running() && successor.is_running());
}

/// A backlog, and an owner that reads it by way of a proxy.
async fn owner(stem: &str, point: Point, action: Action) -> (Rig, Proxy, Process) {
    let mut rig = rig(stem, PARTITIONS).await;
    rig.sink_lines = "writers = 1\nbatch = { rows = 2000 }".to_owned();
    rig.produce(5_000).await;
    let proxy = Proxy::start(rig.schema.url());
    proxy.arm(point, action);
    let process = rig.run_through(proxy.url());
    (rig, proxy, process)
}

/// The one open transaction of the group is in this state, at a statement with this text.
async fn stands_at(rig: &Rig, state: &str, statement: &str) {
    let there = |open: &Vec<(String, String)>| {
        open.iter().any(|(is, query)| is == state && query.contains(statement))
    };
    eventually_within(PATIENCE, || rig.group_transactions(), there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c121_frozen_in_mid_copy() {
    let (rig, proxy, frozen) = owner("mid_copy", Point::CopyBytes(30_000), Action::Hold).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    frozen.freeze();
    stands_at(&rig, "active", "COPY").await;
    let successor = take_over(&rig).await;
    proxy.release();
    thaw_and_work(rig, frozen, successor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c121_frozen_between_statements() {
    let point = Point::Statement("RELEASE SAVEPOINT".into());
    let (rig, proxy, frozen) = owner("between", point, Action::Hold).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    frozen.freeze();
    stands_at(&rig, "idle in transaction", "").await;
    let successor = take_over(&rig).await;
    proxy.release();
    thaw_and_work(rig, frozen, successor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c121_frozen_after_its_commit_was_done_and_not_answered() {
    let (rig, proxy, frozen) = owner("commit_done", Point::CommitOf("COPY".into()), Action::StallAfter).await;
    proxy.wait_for(|seen| seen.stalls == 1).await;
    frozen.freeze();
    // Applied, as the frozen owner does not know.
    let written = rig.schema.count(&rig.topic).await;
    assert!(written > 0);
    assert_eq!(rig.stored_all().await.iter().sum::<i64>(), written);
    let successor = take_over(&rig).await;
    proxy.cut_sessions();
    thaw_and_work(rig, frozen, successor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c121_frozen_with_its_commit_on_the_way() {
    let (rig, proxy, frozen) = owner("commit_sent", Point::CommitOf("COPY".into()), Action::Hold).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    frozen.freeze();
    stands_at(&rig, "idle in transaction", "").await;
    assert_eq!(rig.schema.count(&rig.topic).await, 0);
    let successor = rig.run();
    // It arrives while the successor's claim waits for the row: then the claim comes after it, and finds its offset.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%kafka_offsets%FOR UPDATE%'
                     AND application_name = 'oncesink {group}'";
    let waits = waits.replace("{group}", &rig.topic);
    eventually_within(PATIENCE, || rig.schema.value::<i64>(&waits), |waiting| *waiting > 0).await;
    proxy.release();
    eventually_within(PATIENCE, async || proxy.seen(), |seen| seen.commits_applied > 0).await;
    rig.owns(&successor, |owned| owned == i64::from(PARTITIONS)).await;
    thaw_and_work(rig, frozen, successor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c121_frozen_idle_with_a_full_queue() {
    let mut rig = rig("idle_full", PARTITIONS).await;
    rig.sink_lines = "writers = 1".to_owned();
    rig.produce(10).await;
    let proxy = Proxy::start(rig.schema.url());
    let frozen = rig.run_through(proxy.url());
    rig.all_once().await;
    // The statement with which a writer begins is held: nothing of the backlog is written, and all of it is fetched.
    proxy.arm(Point::Statement("; SAVEPOINT oncesink_".into()), Action::Hold);
    let before = memory(frozen.pid()).await;
    rig.produce(10_000).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    // A fetched record takes some hundreds of bytes in librdkafka's queue: thousands have come.
    let thousands = |bytes: &u64| *bytes > before + 4_000_000;
    eventually_within(PATIENCE, || memory(frozen.pid()), thousands).await;
    frozen.freeze();
    assert_eq!(rig.group_transactions().await, []);
    assert_eq!(rig.schema.count(&rig.topic).await, 40);
    let successor = take_over(&rig).await;
    rig.all_once().await;
    // Its first statement reaches the server now, and its advance finds that the rows have another owner.
    proxy.release();
    thaw_and_work(rig, frozen, successor).await;
}

/// Bytes of anonymous memory that a process has.
async fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
