//! Rows that somebody holds must not make whoever waits for them crowd the database.

use std::time::{Duration, Instant};

use oncesink::sqlx::{Connection, Executor};

use crate::rig::{PATIENCE, Rig};

const PARTITIONS: i32 = 40;
/// Writers, looks, and the claims that wait, each with a watch beside it.
const SESSIONS_MAX: i64 = 15;
/// Longer than a row is waited for once.
const HELD: Duration = Duration::from_secs(3);

/// As a frozen owner holds them, whose transaction had a part of every partition.
#[tokio::test(flavor = "multi_thread")]
async fn many_rows_that_are_held_are_waited_for_on_few_connections() {
    let mut rig = Rig::new("crowd", PARTITIONS).await;
    rig.produce(1).await;
    rig.run_until_end().await;
    let mut holder = rig.schema.connection().await;
    let mut holding = holder.begin().await.expect("a transaction");
    holding.execute("SELECT FROM kafka_offsets FOR UPDATE").await.expect("the rows");
    rig.produce(1).await;
    let process = rig.run();
    let sessions = |waiting: &str| {
        format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}'{waiting}",
            rig.topic
        )
    };
    let (began, mut most, mut waited) = (Instant::now(), 0, false);
    let mut first = None;
    while first.is_none_or(|first: Instant| first.elapsed() < HELD) {
        most = most.max(rig.schema.value::<i64>(&sessions("")).await);
        waited = waited || rig.schema.value::<i64>(&sessions(" AND wait_event_type = 'Lock'")).await > 0;
        if waited {
            first.get_or_insert_with(Instant::now);
        }
        assert!(began.elapsed() < PATIENCE, "{}", process.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    holding.rollback().await.expect("letting go");
    rig.all_once().await;
    assert!(most <= SESSIONS_MAX, "{most} sessions at once");
}
