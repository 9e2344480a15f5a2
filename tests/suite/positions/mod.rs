//! Where a partition begins, which positions cannot be, and what happens at each of them.

mod damaged;
mod expired;
mod into_rows;
mod leaderless;
mod progress;
mod recreated;
mod rewound;
mod start;
mod unidentified;
mod until_end;
mod words;

use std::io::{Read, Write};
use std::net::TcpStream;

use oncesink_test_support::eventually_within;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::{Launch, Line, Process};

use crate::rig::{PATIENCE, Rig, row};

/// New partitions and topics are found within a second.
const QUICK_METADATA: &str = "\"topic.metadata.refresh.interval.ms\" = \"1000\"\n";

/// The command with another file than the rig's.
fn command_with(config: &str, args: &[&str]) -> Launch {
    let mut all = vec!["--config", "oncesink.toml"];
    all.extend(args);
    Launch::new(env!("CARGO_BIN_EXE_oncesink"))
        .file("oncesink.toml", config)
        .args(all)
        .env("RUST_LOG", "info")
}

/// The rig's file with one more topic.
fn with_topic(rig: &Rig, other: &str) -> String {
    let (one, two) =
        (format!("topics = [\"{}\"]", rig.topic), format!("topics = [\"{}\", \"{other}\"]", rig.topic));
    rig.config().replace(&one, &two)
}

/// A ledger table of this name.
async fn ledger(rig: &Rig, name: &str) {
    rig.schema
        .execute(&format!(
            "CREATE TABLE \"{name}\" (partition_id integer, seq bigint, note text, amount numeric(12,2))"
        ))
        .await;
}

/// Runs a verb and expects success.
async fn verb(rig: &Rig, args: &[&str]) {
    let (code, lines) = rig.command(args).run(PATIENCE).await;
    assert_eq!(code, 0, "{args:?}: {lines:#?}");
}

/// Records of a ledger with these numbers.
fn numbered(partition: i32, seqs: std::ops::Range<i64>) -> Vec<Record> {
    seqs.map(|seq| Record::to(partition).value(row(partition, seq))).collect()
}

/// One column of an offset row, as text; none without the row.
async fn column(rig: &Rig, topic: &str, partition: i32, column: &str) -> Option<String> {
    let sql = format!(
        "SELECT max({column}::text) FROM kafka_offsets WHERE topic = '{topic}' AND partition_id = {partition}"
    );
    rig.schema.value(&sql).await
}

/// Waits until a partition stands at this offset.
async fn stands_at(rig: &Rig, topic: &str, partition: i32, offset: i64) {
    let wanted = Some(offset.to_string());
    eventually_within(PATIENCE, || column(rig, topic, partition, "last_offset"), |found| *found == wanted)
        .await;
}

/// Waits until the row of a partition says that it stopped; gives the reason.
async fn stops(rig: &Rig, topic: &str, partition: i32) -> String {
    let stopped = Some("stopped".to_owned());
    eventually_within(PATIENCE, || column(rig, topic, partition, "state"), |found| *found == stopped).await;
    column(rig, topic, partition, "state_reason").await.expect("a stopped partition has a reason")
}

/// The numbers in a ledger, in order, doubles included.
async fn seqs(rig: &Rig, table: &str, partition: i32) -> Vec<i64> {
    rig.schema
        .column(&format!("SELECT seq FROM \"{table}\" WHERE partition_id = {partition} ORDER BY seq"))
        .await
}

/// Waits for a number of rows in a ledger.
async fn rows_reach(rig: &Rig, table: &str, rows: i64) {
    let table = format!("\"{table}\"");
    eventually_within(PATIENCE, || rig.schema.count(&table), |count| *count >= rows).await;
}

/// Event rows: kind, old and new offset.
async fn events(rig: &Rig) -> Vec<String> {
    let sql = "SELECT format('%s %s/%s %s->%s', kind, topic, partition_id, old_offset, new_offset) FROM oncesink_events ORDER BY id";
    let all: Vec<String> = rig.schema.column(sql).await;
    all.into_iter().map(|event| event.replace(&rig.topic, "T")).collect()
}

/// Waits for an error or information line that contains all of these.
async fn says(process: &Process, parts: &[&str]) -> Line {
    let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
    process.wait_for_line(move |line| parts.iter().all(|part| line.text.contains(part)), PATIENCE).await
}

/// Ends a process in good order.
async fn end(process: Process) {
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0, "{}", process.text());
}

/// The sum of a metric's samples whose line contains all of these; none when there is no such sample.
async fn metric(process: &Process, parts: &[&str]) -> Option<f64> {
    let line = says(process, &["metrics and health at http://"]).await;
    let address = line.text.rsplit("http://").next().expect("an address");
    let address: String = address.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
    let text = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("connecting to the metrics");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            .expect("asking for the metrics");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("reading the metrics");
        text
    })
    .await
    .expect("reading the metrics");
    let samples: Vec<f64> = text
        .lines()
        .filter(|line| !line.starts_with('#') && parts.iter().all(|part| line.contains(part)))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect();
    (!samples.is_empty()).then(|| samples.iter().sum())
}
