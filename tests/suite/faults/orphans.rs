//! A record that refers to a row which is not there yet: waited for, for a while, without holding up those who bring it.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;

use super::metric;
use crate::rig::{PATIENCE, Rig};

/// The ledger's rows of partition 1 refer to a row of `parents`, into which the rows of partition 0 go as well.
async fn rig_with_parents(stem: &str) -> Rig {
    let rig = Rig::new(stem, 2).await;
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

/// Parent and child by way of one writer: a wait inside the writer would keep the parent out.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_referred_to_that_comes_late_through_the_same_writer_is_waited_for() {
    let mut rig = rig_with_parents("orphan").await;
    rig.sink_lines = "writers = 1".into();
    let process = rig.run();
    let address = metric::address(&process).await;
    process.wait_for_line(|line| line.text.contains("2 partitions claimed"), PATIENCE).await;
    let children = rig.records(1, 40);
    rig.kafka.produce(&rig.topic, children).await;
    process.wait_for_line(|line| line.text.contains("waiting up to 5 s"), PATIENCE).await;
    let parents = rig.records(0, 40);
    rig.kafka.produce(&rig.topic, parents).await;
    rig.all_once().await;
    assert!(!process.text().contains("stopped: "), "{}", process.text());
    assert_eq!(metric::sum(&address, "oncesink_partition_state", &["state=\"stopped\""]).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_referred_to_that_never_comes_stops_the_partition_after_the_wait() {
    let mut rig = rig_with_parents("orphaned").await;
    rig.schema.execute("INSERT INTO parents SELECT generate_series(1000, 1100)").await;
    rig.schema.execute("INSERT INTO parents SELECT generate_series(0, 24)").await;
    let children = rig.records(1, 60);
    rig.kafka.produce(&rig.topic, children).await;
    let began = Instant::now();
    let process = rig.run();
    let line = process.wait_for_line(|line| line.text.contains("stopped: "), PATIENCE).await;
    let took = began.elapsed();
    assert!(line.text.contains("/1@25 stopped: ") && line.text.contains("needs_parent"), "{}", line.text);
    assert!(took > Duration::from_secs(5), "waited for {took:?}");
    assert_eq!((rig.schema.count(&rig.topic).await, rig.stored(1).await), (25, 25));
    rig.schema.execute("INSERT INTO parents SELECT generate_series(25, 59)").await;
    let place = format!("{}/1", rig.topic);
    let (code, lines) = rig.command(&["resume", "ledger", &place]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    eventually_within(PATIENCE, || rig.schema.count(&rig.topic), |rows| *rows == 60).await;
}
