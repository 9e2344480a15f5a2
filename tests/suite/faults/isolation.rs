//! One bad record among many: its partition stops exactly there, everything else is written, and one command goes on.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Process;

use super::metric;
use crate::rig::{PATIENCE, Rig, row};

const MANY: i64 = 300;
const BAD: i64 = 137;

/// Waits for the line of a stop; answers its text.
async fn stop_of(process: &Process, rig: &Rig, partition: i32, offset: i64) -> String {
    let place = format!("{}/{partition}@{offset} stopped: ", rig.topic);
    process.wait_for_line(move |line| line.text.contains(&place), PATIENCE).await.text
}

async fn rows_of(rig: &Rig, partition: i32) -> i64 {
    let sql = format!("SELECT count(*) FROM \"{}\" WHERE partition_id = {partition}", rig.topic);
    rig.schema.value(&sql).await
}

/// Of this partition the records before `offset` are there, each once, and nothing of it or later.
async fn stands_at(rig: &Rig, partition: i32, offset: i64) {
    let sql = format!(
        "SELECT format('%s %s %s', count(*), count(DISTINCT seq), max(seq)) FROM \"{}\" WHERE partition_id = {partition}",
        rig.topic
    );
    assert_eq!(rig.schema.value::<String>(&sql).await, format!("{offset} {offset} {}", offset - 1));
    assert_eq!(rig.stored(partition).await, offset);
}

async fn skip(rig: &Rig, partition: i32, offset: i64) {
    let (place, expect) = (format!("{}/{partition}", rig.topic), offset.to_string());
    let args = ["skip", "ledger", &place, "--expect", &expect, "--reason", "a test"];
    let (code, lines) = rig.command(&args).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
}

async fn resume(rig: &Rig, partition: i32) {
    let place = format!("{}/{partition}", rig.topic);
    let (code, lines) = rig.command(&["resume", "ledger", &place]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
}

/// Stops at the bad record, tells how to go on; `skip` goes on without a restart.
async fn isolated(stem: &str, sabotage: impl Fn(&str) -> String, told: &str) {
    let mut rig = Rig::new(stem, 3).await;
    rig.schema.execute(&sabotage(&rig.topic)).await;
    rig.produce(MANY).await;
    let process = rig.run();
    let line = stop_of(&process, &rig, 1, BAD).await;
    assert!(line.contains(told), "{line}");
    let command = format!("oncesink skip ledger {}/1 --expect {BAD} --reason", rig.topic);
    assert!(line.contains(&command) && line.contains("oncesink resume ledger"), "{line}");
    for partition in [0, 2] {
        eventually_within(PATIENCE, || rows_of(&rig, partition), |rows| *rows == MANY).await;
    }
    stands_at(&rig, 1, BAD).await;
    skip(&rig, 1, BAD).await;
    let skipped = Instant::now();
    eventually_within(PATIENCE, || rows_of(&rig, 1), |rows| *rows == MANY - 1).await;
    let took = skipped.elapsed();
    assert!(took < Duration::from_millis(4_000), "flows on after {took:?}");
    let sql =
        format!("SELECT count(DISTINCT seq) FROM \"{}\" WHERE partition_id = 1 AND seq <> {BAD}", rig.topic);
    assert_eq!(rig.schema.value::<i64>(&sql).await, MANY - 1);
    assert_eq!(rig.stored(1).await, MANY);
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_constraint_stops_its_partition_right_there() {
    let check = |topic: &str| {
        format!("ALTER TABLE \"{topic}\" ADD CONSTRAINT no_such CHECK (partition_id <> 1 OR seq <> {BAD})")
    };
    isolated("checked", check, "constraint no_such").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_raises_stops_its_partition_right_there() {
    let trigger = |topic: &str| {
        format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'not with me'; END $$;
             CREATE TRIGGER refuse AFTER INSERT ON \"{topic}\" FOR EACH ROW
                 WHEN (NEW.partition_id = 1 AND NEW.seq = {BAD}) EXECUTE FUNCTION refuse()"
        )
    };
    isolated("raised", trigger, "raised by a trigger").await;
}

/// The row that is in the way came before: the index is partial, so that the rest of the ledger has no key.
#[tokio::test(flavor = "multi_thread")]
async fn a_unique_index_stops_its_partition_right_there() {
    let index = |topic: &str| {
        format!(
            "CREATE UNIQUE INDEX just_one ON \"{topic}\" ((1)) WHERE partition_id = 1 AND seq IN ({}, {BAD})",
            BAD - 90
        )
    };
    isolated("unique", index, "just_one").await;
}

/// Deferred: found by the guard, with the whole transaction already written.
#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_constraint_stops_its_partition_right_there() {
    let deferred = |topic: &str| {
        format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'too late' USING ERRCODE = '23514'; END $$;
             CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON \"{topic}\" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
                 WHEN (NEW.partition_id = 1 AND NEW.seq = {BAD}) EXECUTE FUNCTION refuse()"
        )
    };
    isolated("deferred", deferred, "check constraint violated").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_bad_records_in_several_partitions_each_stop_their_own() {
    let mut rig = Rig::new("several", 4).await;
    let topic = rig.topic.clone();
    rig.sink_lines = "writers = 1".into();
    rig.schema
        .execute(&format!(
            "ALTER TABLE \"{topic}\" ADD CONSTRAINT mended_later
             CHECK ((partition_id, seq) NOT IN ((0, 0), (1, 50), (1, 51), (1, 299), (3, 299)))"
        ))
        .await;
    rig.produce(MANY).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    for (partition, offset) in [(0, 0), (1, 50), (3, 299)] {
        stop_of(&process, &rig, partition, offset).await;
    }
    eventually_within(PATIENCE, || rows_of(&rig, 2), |rows| *rows == MANY).await;
    assert_eq!((rows_of(&rig, 0).await, rig.stored(0).await), (0, 0));
    stands_at(&rig, 1, 50).await;
    stands_at(&rig, 3, 299).await;
    // Class 23 is no illness of the server: bounded by the search, then silence.
    let retries = metric::sum(&address, "oncesink_retries_total", &["class=\"bad_record\""]).await;
    let others = metric::sum(&address, "oncesink_retries_total", &[]).await - retries;
    assert!(retries < 60.0 && others == 0.0, "{retries} {others}: {}", process.text());
    assert_eq!(metric::sum(&address, "oncesink_partition_state", &["state=\"stopped\""]).await, 3.0);
    // The next bad record of the same partition stops it again.
    skip(&rig, 1, 50).await;
    stop_of(&process, &rig, 1, 51).await;
    assert_eq!((rows_of(&rig, 1).await, rig.stored(1).await), (50, 51));
    rig.schema.execute(&format!("ALTER TABLE \"{topic}\" DROP CONSTRAINT mended_later")).await;
    for partition in [0, 1, 3] {
        resume(&rig, partition).await;
    }
    eventually_within(PATIENCE, || rig.schema.count(&topic), |rows| *rows == 4 * MANY - 1).await;
    let distinct = format!("SELECT count(DISTINCT (partition_id, seq)) FROM \"{topic}\"");
    assert_eq!(rig.schema.value::<i64>(&distinct).await, 4 * MANY - 1);
}

fn with_colour(partition: i32, seq: i64) -> Record {
    let value = row(partition, seq).replace("{\"partition_id\"", "{\"colour\":\"red\",\"partition_id\"");
    Record::to(partition).value(value)
}

/// A record that the encoder refuses, without the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_without_a_column_stops_its_partition_until_the_column_is_there() {
    let mut rig = Rig::new("field", 2).await;
    rig.produce(100).await;
    let process = rig.run();
    rig.all_once().await;
    let _ = rig.records(1, 1);
    rig.kafka.produce(&rig.topic, [with_colour(1, 100)]).await;
    rig.produce(100).await;
    let line = stop_of(&process, &rig, 1, 100).await;
    assert!(line.contains("colour") && line.contains("has no column"), "{line}");
    eventually_within(PATIENCE, || rows_of(&rig, 0), |rows| *rows == 200).await;
    stands_at(&rig, 1, 100).await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD COLUMN colour text", rig.topic)).await;
    resume(&rig, 1).await;
    rig.all_once().await;
    let red = format!("SELECT count(*) FROM \"{}\" WHERE colour = 'red'", rig.topic);
    assert_eq!(rig.schema.value::<i64>(&red).await, 1);
}

/// The catalog is read once more before a field counts as unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_added_while_running_is_found_without_a_stop() {
    let mut rig = Rig::new("column", 2).await;
    rig.produce(100).await;
    let process = rig.run();
    rig.all_once().await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD COLUMN colour text", rig.topic)).await;
    for partition in 0..2 {
        let _ = rig.records(partition, 1);
        rig.kafka.produce(&rig.topic, [with_colour(partition, 100)]).await;
    }
    rig.produce(50).await;
    rig.all_once().await;
    let red = format!("SELECT count(*) FROM \"{}\" WHERE colour = 'red'", rig.topic);
    assert_eq!(rig.schema.value::<i64>(&red).await, 2);
    assert!(!process.text().contains("stopped"), "{}", process.text());
}
