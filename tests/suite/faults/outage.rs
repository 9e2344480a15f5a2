//! The database away: in silence, with an answer, by a crash. The group is kept, the process can be stopped, and work resumes where it stood.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;
use oncesink_test_support::postgres::PostgresServer;
use oncesink_test_support::proxy::{Action, Point};

use super::commit::behind_proxy;
use super::metric;
use crate::rig::{PATIENCE, Rig};

/// Backends of the rig's sink that stand in this state.
async fn backends(rig: &Rig, condition: &str) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}' AND {condition}",
        rig.topic
    );
    rig.schema.value(&sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn c029_a_database_that_falls_silent_in_mid_statement_can_be_stopped_and_resumed() {
    let (mut rig, proxy) = behind_proxy("silent", 1).await;
    rig.sink_lines = "drain = \"2 s\"".into();
    rig.produce(20_000).await;
    proxy.arm(Point::CopyBytes(1), Action::StallBefore);
    let process = rig.run();
    proxy.wait_for(|seen| seen.stalls == 1).await;
    proxy.black_hole();
    let copying = "state = 'active' AND query LIKE 'COPY%'";
    assert_eq!(backends(&rig, copying).await, 1, "in mid-statement");
    let told = Instant::now();
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0, "{}", process.text());
    assert!(told.elapsed() < Duration::from_secs(12), "{:?}", told.elapsed());
    assert_eq!(rig.schema.count(&rig.topic).await, 0, "nothing half-committed");
    assert_eq!(backends(&rig, copying).await, 1, "frozen with its locks");
    proxy.pass();
    // The claim ends the session that is frozen in COPY, which no timeout of the server does.
    rig.run_until_end().await;
    rig.each_once().await;
}

/// Also where nothing but a connection is being made.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_answer_to_a_new_connection_can_be_stopped() {
    let (mut rig, proxy) = behind_proxy("dumb", 1).await;
    rig.sink_lines = "drain = \"1 s\"".into();
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    proxy.black_hole();
    proxy.cut_sessions();
    rig.produce(10).await;
    process.wait_for_line(|line| line.text.contains("trying again"), PATIENCE).await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0, "{}", process.text());
    proxy.pass();
    rig.run_until_end().await;
    rig.each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c011_a_database_away_for_longer_than_the_poll_limit_costs_no_membership() {
    let (mut rig, proxy) = behind_proxy("away", 2).await;
    rig.kafka_lines = "\"max.poll.interval.ms\" = 6000\n\"session.timeout.ms\" = 6000".into();
    rig.sink_lines = "writers = 1\nbatch = { rows = 100 }\nmemory = \"3 MiB\"".into();
    rig.produce(10).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    let rebalances = async || metric::sum(&address, "oncesink_rebalances_total", &[]).await;
    let before = rebalances().await;
    proxy.refuse();
    proxy.cut_sessions();
    let away = Instant::now();
    // 20,000 records of more than 60 bytes. Half of the payload's budget, a third of the memory, may wait in the writer: 512 KiB.
    rig.produce(10_000).await;
    let look = async || {
        let buffered = metric::sum(&address, "oncesink_buffered_records", &[]).await;
        assert!(buffered <= 9_000.0, "intake stops: {buffered} records held");
        away.elapsed()
    };
    eventually_within(PATIENCE, look, |away| *away > Duration::from_secs(9)).await;
    assert_eq!(rebalances().await, before, "{}", process.text());
    assert_eq!(rig.schema.count(&rig.topic).await, 20);
    proxy.pass();
    let back = Instant::now();
    rig.rows_reach(21).await;
    assert!(back.elapsed() < Duration::from_secs(8), "resumed after {:?}", back.elapsed());
    rig.all_once().await;
    assert_eq!(rebalances().await, before);
    let fenced = metric::sum(&address, "oncesink_fenced_total", &[]).await;
    assert_eq!(fenced, 0.0, "what waited behind the failing batch was kept: {}", process.text());
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_and_restarted_again_and_again_keeps_each_row_once() {
    let server = PostgresServer::start().await;
    let mut rig = Rig::on(&server, "killed", 2).await;
    rig.sink_lines = "batch = { rows = 200 }".into();
    rig.produce(2_000).await;
    let process = rig.run();
    for round in 0..3 {
        rig.rows_reach(rig.expected() - 4_000 + 500 * round).await;
        server.kill9();
        rig.produce(1_000).await;
        server.restart().await;
    }
    rig.all_once().await;
    assert!(process.text().contains("committing again after"), "{}", process.text());
}

/// Every call on the path is cut once, on either side: the first questions of a connection, the catalog, the fence, the settle.
#[tokio::test(flavor = "multi_thread")]
async fn c117_every_call_to_the_database_may_fail_and_is_tried_again() {
    let (mut rig, proxy) = behind_proxy("calls", 1).await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    let calls = [
        "pg_backend_pid",
        "BEGIN",
        "pg_catalog.pg_attribute",
        "SET last_offset",
        "RELEASE SAVEPOINT",
        "ROLLBACK",
    ];
    for text in calls.into_iter().chain([&*rig.topic.clone()]) {
        for cut in [Action::CutBefore, Action::CutAfter] {
            let cuts = proxy.seen().cuts;
            proxy.cut_sessions();
            proxy.arm(Point::Statement(text.into()), cut);
            rig.produce(10).await;
            rig.all_once().await;
            assert_eq!(proxy.seen().cuts, cuts + 1, "{text} {cut:?}: {}", process.text());
        }
    }
    // The settle: first a COMMIT whose answer is lost, then the settle's own statements.
    for text in ["FOR UPDATE OF o", "SET owner_epoch"] {
        for cut in [Action::CutBefore, Action::CutAfter] {
            let cuts = proxy.seen().cuts;
            proxy.arm(Point::CommitOf(rig.topic.clone()), Action::CutAfter);
            proxy.arm(Point::Statement(text.into()), cut);
            rig.produce(10).await;
            rig.all_once().await;
            proxy.wait_for(move |seen| seen.cuts == cuts + 2).await;
        }
    }
    rig.each_once().await;
}

/// A network that is silent and then heals: what was on its way arrives, and the process carries on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_falls_silent_and_heals_costs_no_row() {
    let (mut rig, proxy) = behind_proxy("heals", 2).await;
    rig.sink_lines = "timeout = \"1 s\"\nbatch = { rows = 200 }".into();
    rig.produce(1_000).await;
    let process = rig.run();
    for silence in [1, 7] {
        rig.rows_reach(1).await;
        proxy.black_hole();
        let began = Instant::now();
        rig.produce(1_000).await;
        eventually_within(PATIENCE, async || began.elapsed().as_secs(), |passed| *passed >= silence).await;
        proxy.pass();
        let back = Instant::now();
        rig.all_once().await;
        assert!(back.elapsed() < Duration::from_secs(20), "{:?}: {}", back.elapsed(), process.text());
    }
}
