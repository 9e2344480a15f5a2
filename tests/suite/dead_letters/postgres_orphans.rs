//! A record that refers to a row which is not there yet, under a policy that goes on behind it: it waits once, together with its like.

use std::time::{Duration, Instant};

use super::{dead, each_once_with, rig};
use crate::rig::{PATIENCE, Rig};

/// The ledger's rows of partition 1 refer to a row of `parents`, into which the rows of partition 0 go as well.
async fn rig_with_parents(stem: &str, wait: &str) -> Rig {
    let rig = rig(stem, 2, &format!("writers = 1\nforeign_key_wait = \"{wait}\"")).await;
    let topic = &rig.topic;
    rig.schema
        .execute(&format!(
            "CREATE TABLE parents (seq bigint PRIMARY KEY);
             ALTER TABLE \"{topic}\" ADD COLUMN parent bigint GENERATED ALWAYS AS
                 (CASE WHEN partition_id = 1 THEN seq END) STORED;
             ALTER TABLE \"{topic}\" ADD CONSTRAINT needs_parent FOREIGN KEY (parent) REFERENCES parents (seq);
             CREATE FUNCTION bear() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO parents VALUES (NEW.seq); RETURN NULL; END $$;
             CREATE TRIGGER bear AFTER INSERT ON \"{topic}\" FOR EACH ROW
                 WHEN (NEW.partition_id = 0) EXECUTE FUNCTION bear()"
        ))
        .await;
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_comes_within_the_wait_makes_no_dead_letter() {
    let mut rig = rig_with_parents("late", "30 s").await;
    let children = rig.records(1, 40);
    rig.kafka.produce(&rig.topic, children).await;
    let process = rig.run();
    process.wait_for_line(|line| line.text.contains("waiting up to 30 s"), PATIENCE).await;
    let parents = rig.records(0, 40);
    rig.kafka.produce(&rig.topic, parents).await;
    each_once_with(&rig, &[]).await;
}

/// Forty of them, and those behind them that are no orphans.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_never_come_cost_one_wait_for_all_that_were_read_together() {
    let mut rig = rig_with_parents("never", "2 s").await;
    rig.schema
        .execute("INSERT INTO parents SELECT generate_series(0, 99) EXCEPT SELECT generate_series(10, 88, 2)")
        .await;
    let bad: Vec<(i32, i64)> = (10..=88).step_by(2).map(|seq| (1, seq)).collect();
    let children = rig.records(1, 100);
    rig.kafka.produce(&rig.topic, children).await;
    let process = rig.run();
    process.wait_for_line(|line| line.text.contains("/1: offset 10: "), PATIENCE).await;
    let began = Instant::now();
    assert_eq!(dead(&rig).await.len(), 0);
    each_once_with(&rig, &bad).await;
    let took = began.elapsed();
    // Forty waits would take eighty seconds.
    assert!(took > Duration::from_millis(1_500) && took < Duration::from_secs(20), "{took:?}");
    let told: Vec<String> = rig
        .schema
        .column("SELECT DISTINCT concat_ws(' ', class, reason, sql_state) FROM oncesink_dead_letters")
        .await;
    assert_eq!(told, ["constraint foreign_key 23503"]);
    assert_eq!(process.text().matches("waiting up to 2 s").count(), 1, "{}", process.text());
}
