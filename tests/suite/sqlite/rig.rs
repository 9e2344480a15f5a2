//! A topic, a file with a table that no key protects, and the command between them.

use std::time::Duration;

use oncesink::sqlx::{Connection, Executor};
use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::process::{Launch, Process};
use oncesink_test_support::sqlite::File;
use oncesink_test_support::{Servers, eventually_within};

use crate::command::{Ended, ended};
use crate::rig::{PATIENCE, row};

/// What a test works with.
pub(super) struct Rig {
    pub(super) kafka: &'static Kafka,
    pub(super) file: File,
    pub(super) topic: String,
    partitions: i32,
    /// Further lines for `[kafka]` and for `[sinks.ledger]`.
    pub(super) kafka_lines: String,
    pub(super) sink_lines: String,
    produced: i64,
}

impl Rig {
    /// A topic and a file with the ledger, before `migrate`.
    pub(super) async fn bare(stem: &str, partitions: i32) -> Self {
        let kafka = Servers::shared().await.kafka();
        let topic = kafka.topic(stem, partitions).await;
        let file = File::new(stem);
        file.execute(&format!(
            "CREATE TABLE \"{topic}\" (partition_id INTEGER, seq INTEGER, note TEXT, amount DECIMAL(12, 2))"
        ))
        .await;
        let (kafka_lines, sink_lines) = (String::new(), String::new());
        Self { kafka, file, topic, partitions, kafka_lines, sink_lines, produced: 0 }
    }

    /// The same with our tables, and a guard over the stored offsets.
    pub(super) async fn new(stem: &str, partitions: i32) -> Self {
        let rig = Self::bare(stem, partitions).await;
        rig.verb("migrate").await.done();
        rig.file.guard_offsets().await;
        rig
    }

    /// The configuration file.
    pub(super) fn config(&self) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n{}\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.ledger]\ntopics = [\"{}\"]\ngroup = \"{}\"\n{}\n\
             target = {{ kind = \"sqlite\", url = \"{}\" }}\n",
            self.kafka.bootstrap(),
            self.kafka_lines,
            self.topic,
            self.topic,
            self.sink_lines,
            self.file.url(),
        )
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Launch {
        Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &self.config()).args(arguments)
    }

    /// Runs the command with this line to its end; `@` stands for the topic.
    pub(super) async fn verb(&self, line: &str) -> Ended {
        let line = line.replace('@', &self.topic);
        ended(self.command(line.split(' ')).run(PATIENCE).await)
    }

    /// A running sink.
    pub(super) fn run(&self) -> Process {
        self.command(["run"]).env("RUST_LOG", "info").start()
    }

    /// `count` records more for each partition.
    pub(super) async fn produce(&mut self, count: i64) {
        let (first, partitions) = (self.produced, self.partitions);
        self.produced += count;
        let records = (0..partitions).flat_map(|partition| {
            (first..first + count).map(move |seq| Record::to(partition).value(row(partition, seq)))
        });
        self.kafka.produce(&self.topic, records).await;
    }

    /// Rows of the ledger.
    pub(super) async fn count(&self) -> i64 {
        self.file.count(&format!("\"{}\"", self.topic)).await
    }

    /// Waits for a number of rows.
    pub(super) async fn rows_reach(&self, rows: i64) {
        eventually_within(PATIENCE, || self.count(), |count| *count >= rows).await;
    }

    /// Whether somebody is inside a transaction that writes.
    pub(super) async fn is_locked(&self) -> bool {
        let mut connection = self.file.connection().await;
        connection.execute("PRAGMA busy_timeout = 0").await.unwrap();
        let locked = connection.execute("BEGIN IMMEDIATE; ROLLBACK").await.is_err();
        connection.close().await.unwrap();
        locked
    }

    /// No record missing, doubled or out of its partition's sequence.
    pub(super) async fn each_once(&self) {
        let wrong: Vec<String> = self
            .file
            .column(&format!(
                "SELECT concat_ws(' ', 'partition', partition_id, 'rows', count(*), 'different', count(DISTINCT seq), min(seq), max(seq))
                 FROM \"{}\" GROUP BY partition_id
                 HAVING count(*) <> count(DISTINCT seq) OR min(seq) <> 0 OR max(seq) <> count(*) - 1",
                self.topic
            ))
            .await;
        assert!(wrong.is_empty(), "missing or doubled rows: {wrong:?}");
        assert_eq!(self.count().await, self.produced * i64::from(self.partitions));
    }

    /// Offset and state of a partition.
    pub(super) async fn stored(&self, partition: i32) -> String {
        let sql = "SELECT last_offset || ' ' || state FROM kafka_offsets WHERE partition_id";
        self.file.value(&format!("{sql} = {partition}")).await
    }
}

/// Waits until a process has said this.
pub(super) async fn says(process: &Process, words: &str) {
    let words = words.to_owned();
    process.wait_for_line(move |line| line.text.contains(&words), PATIENCE).await;
}

/// So long a poll for a moment inside a transaction takes at most; then the kill comes anyway.
pub(super) const MOMENT: Duration = Duration::from_secs(5);
