//! A topic, a schema with a table that no key protects, and the command between them.
//!
//! The table is a ledger: each record says its partition and its place in it, so that missing, doubled and reordered rows all show.

use std::time::Duration;

use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::postgres::{Postgres, Schema};
use oncesink_test_support::process::{Launch, Process};
use oncesink_test_support::{Servers, eventually_within};

/// Ten times what anything here needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a test works with.
pub(crate) struct Rig {
    pub(crate) kafka: &'static Kafka,
    pub(crate) schema: Schema,
    pub(crate) topic: String,
    pub(crate) partitions: i32,
    /// Where the sink finds Kafka, when not where the tests do.
    pub(crate) brokers: String,
    /// Where the sink finds the database; a proxy's URL replaces it.
    pub(crate) url: String,
    /// Further lines for `[kafka]` and for `[sinks.ledger]`.
    pub(crate) kafka_lines: String,
    pub(crate) sink_lines: String,
    /// Further elements of the list of topics, with a comma in front.
    pub(crate) more_topics: String,
    produced: Vec<i64>,
}

impl Rig {
    /// A topic, a schema with the ledger table, and the tables of the command, guarded against a stored offset that goes back in silence.
    pub(crate) async fn new(stem: &str, partitions: i32) -> Self {
        Self::on(Servers::shared().await.postgres(), stem, partitions).await
    }

    /// The same on a database server of the test's own.
    pub(crate) async fn on(postgres: &Postgres, stem: &str, partitions: i32) -> Self {
        Self::between(Servers::shared().await.kafka(), postgres, stem, partitions).await
    }

    /// The same between these two servers.
    pub(crate) async fn between(
        kafka: &'static Kafka,
        postgres: &Postgres,
        stem: &str,
        partitions: i32,
    ) -> Self {
        let schema = postgres.schema(stem).await;
        let topic = kafka.topic(stem, partitions).await;
        schema
            .execute(&format!(
                "CREATE TABLE \"{topic}\" (partition_id integer, seq bigint, note text, amount numeric(12,2))"
            ))
            .await;
        let url = schema.url().to_owned();
        let rig = Self {
            kafka,
            schema,
            topic,
            partitions,
            brokers: kafka.bootstrap().to_owned(),
            url,
            kafka_lines: String::new(),
            sink_lines: String::new(),
            more_topics: String::new(),
            produced: vec![0; partitions as usize],
        };
        rig.migrate().await;
        rig
    }

    async fn migrate(&self) {
        let (code, lines) = self.command(&["migrate"]).run(PATIENCE).await;
        assert_eq!(code, 0, "migrate: {lines:?}");
        self.schema.guard_offsets().await;
    }

    /// The configuration file.
    pub(crate) fn config(&self) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n{}\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.ledger]\ntopics = [\"{}\"{}]\ngroup = \"{}\"\n{}\n\
             target = {{ kind = \"postgres\", url = \"{}\" }}\n",
            self.brokers,
            self.kafka_lines,
            self.topic,
            self.more_topics,
            self.topic,
            self.sink_lines,
            self.url,
        )
    }

    /// The command with this rig's file.
    pub(crate) fn command(&self, args: &[&str]) -> Launch {
        let mut all = vec!["--config", "oncesink.toml"];
        all.extend(args);
        Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &self.config()).args(all)
    }

    /// A running sink.
    pub(crate) fn run(&self) -> Process {
        self.command(&["run"]).env("RUST_LOG", "info").start()
    }

    /// Runs to the end of the topic and expects success.
    pub(crate) async fn run_until_end(&self) {
        let (code, lines) = self.command(&["run", "--until-end"]).run(PATIENCE).await;
        assert_eq!(code, 0, "run --until-end: {lines:#?}");
    }

    /// `count` records more for each partition.
    pub(crate) async fn produce(&mut self, count: i64) {
        let mut records = Vec::new();
        for partition in 0..self.partitions {
            records.extend(self.records(partition, count));
        }
        self.kafka.produce(&self.topic, records).await;
    }

    /// The next `count` records of a partition.
    pub(crate) fn records(&mut self, partition: i32, count: i64) -> Vec<Record> {
        let next = &mut self.produced[partition as usize];
        let first = *next;
        *next += count;
        (first..first + count).map(|seq| Record::to(partition).value(row(partition, seq))).collect()
    }

    /// How many records each partition has been sent.
    pub(crate) fn produced_each(&self) -> Vec<i64> {
        self.produced.clone()
    }

    /// Counts records that somebody else has sent, the same number to each partition.
    pub(crate) fn add_produced(&mut self, each: i64) {
        self.produced.iter_mut().for_each(|produced| *produced += each);
    }

    /// Rows that must be there.
    pub(crate) fn expected(&self) -> i64 {
        self.produced.iter().sum()
    }

    /// Waits until the table has as many rows as were produced, then looks at each of them.
    pub(crate) async fn all_once(&self) {
        self.rows_reach(self.expected()).await;
        self.each_once().await;
    }

    /// Waits for a number of rows in a table.
    pub(crate) async fn rows_reach_in(&self, table: &str, rows: i64) {
        eventually_within(PATIENCE, || self.schema.count(table), |count| *count >= rows).await;
    }

    /// Waits for a number of rows.
    pub(crate) async fn rows_reach(&self, rows: i64) {
        eventually_within(PATIENCE, || self.schema.count(&self.topic), |count| *count >= rows).await;
    }

    /// No record missing, doubled or out of a partition's sequence, and no attempt at it that only the tests' guard over the offsets refused.
    pub(crate) async fn each_once(&self) {
        let sql = format!(
            "SELECT COALESCE(string_agg(format('p%s: %s rows, %s distinct, %s..%s', partition_id, n, d, lo, hi), '; '), '') FROM (
                 SELECT partition_id, count(*) n, count(DISTINCT seq) d, min(seq) lo, max(seq) hi FROM \"{}\" GROUP BY partition_id) s
             WHERE n <> d OR lo <> 0 OR hi <> n - 1",
            self.topic
        );
        let wrong: String = self.schema.value(&sql).await;
        assert_eq!(wrong, "", "missing or doubled rows");
        assert_eq!(self.schema.silent_rewinds().await, 0, "a stored offset would have gone back in silence");
        assert_eq!(self.schema.count(&self.topic).await, self.expected());
    }

    /// Stored offset of a partition.
    pub(crate) async fn stored(&self, partition: i32) -> i64 {
        let sql = format!(
            "SELECT last_offset FROM kafka_offsets WHERE topic = '{}' AND partition_id = {partition}",
            self.topic
        );
        self.schema.value(&sql).await
    }
}

/// A record's value.
pub(crate) fn row(partition: i32, seq: i64) -> String {
    format!(
        "{{\"partition_id\":{partition},\"seq\":{seq},\"note\":\"n-{seq}\",\"amount\":{}.25}}",
        seq % 1000
    )
}
