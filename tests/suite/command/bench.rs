//! A topic, a schema and a configuration file of a test's own, and the command run on them.

use std::time::Duration;

use oncesink_test_support::Servers;
use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::postgres::Schema;
use oncesink_test_support::process::{Launch, Line, Stream};

/// Ten times what the slowest verb was seen to take.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const PARTITIONS: i32 = 2;
/// In each partition.
pub(crate) const RECORDS: i64 = 5;

pub(crate) struct Bench {
    pub(crate) kafka: &'static Kafka,
    pub(crate) schema: Schema,
    pub(crate) topic: String,
}

/// What a run left behind.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Bench {
    /// A topic with records, a target table of its name, no offsets table.
    pub(crate) async fn new(stem: &str) -> Self {
        let servers = Servers::shared().await;
        let topic = servers.kafka().topic(stem, PARTITIONS).await;
        let records = (0..PARTITIONS).flat_map(|partition| {
            (0..RECORDS).map(move |n| {
                Record::to(partition).value(format!("{{\"n\":{n}}}")).timestamp(1_000_000 + n * 1000)
            })
        });
        servers.kafka().produce(&topic, records).await;
        let schema = servers.postgres().schema(stem).await;
        schema.execute(&format!("CREATE TABLE {topic} (n bigint)")).await;
        Self { kafka: servers.kafka(), schema, topic }
    }

    /// The same with our tables, and a guard over the stored offsets.
    pub(crate) async fn migrated(stem: &str) -> Self {
        let bench = Self::new(stem).await;
        bench.run("migrate").await.done();
        bench.schema.guard_offsets().await;
        bench
    }

    /// The group of the sink; its name is the same everywhere, groups are told apart by the schema.
    pub(crate) fn file(&self) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n[http]\nlisten = \"127.0.0.1:0\"\n[sinks.o]\ntopics = [\"{}\"]\ngroup = \"{}\"\ntarget = {{ kind = \"postgres\", url = \"{}\" }}\n",
            self.kafka.bootstrap(),
            self.topic,
            self.group(),
            self.schema.url()
        )
    }

    pub(crate) fn group(&self) -> String {
        format!("g-{}", self.topic)
    }

    /// Runs the command with this line; `@` stands for the topic.
    pub(crate) async fn run(&self, line: &str) -> Ended {
        run(&self.file(), &line.replace('@', &self.topic)).await
    }

    /// A stored offset of a partition that stopped, as a runtime leaves it.
    pub(crate) async fn stopped_at(&self, partition: i32, offset: i64) {
        let (group, topic) = (self.group(), &self.topic);
        self.schema
            .execute(&format!(
                "INSERT INTO oncesink_topics (consumer_group, topic, partition_count, start_policy)
                 VALUES ('{group}', '{topic}', {PARTITIONS}, 'earliest')
                 ON CONFLICT DO NOTHING;
                 INSERT INTO kafka_offsets (consumer_group, topic, partition_id, last_offset, owner_epoch, state, state_reason)
                 VALUES ('{group}', '{topic}', {partition}, {offset}, 4, 'stopped', 'a bad record')"
            ))
            .await;
    }

    /// `last_offset, owner_epoch, state` of a partition.
    pub(crate) async fn row(&self, partition: i32) -> String {
        self.schema
            .value(&format!(
                "SELECT last_offset || ' ' || owner_epoch || ' ' || state FROM kafka_offsets WHERE partition_id = {partition}"
            ))
            .await
    }

    /// `kind old new reason` of all events.
    pub(crate) async fn events(&self) -> Vec<String> {
        self.schema
            .column(
                "SELECT kind || ' ' || partition_id || ' ' || COALESCE(old_offset::text, '-') || ' ' || COALESCE(new_offset::text, '-') || ' ' || reason
                 FROM oncesink_events ORDER BY id",
            )
            .await
    }
}

/// Runs the command on this file.
pub(crate) async fn run(file: &str, line: &str) -> Ended {
    let launch = Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", file);
    ended(launch.args(line.split(' ')).run(DEADLINE).await)
}

pub(crate) fn ended((code, lines): (i32, Vec<Line>)) -> Ended {
    let of = |stream| {
        let texts = lines.iter().filter(|line| line.stream == stream).map(|line| line.text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    };
    Ended { code, out: of(Stream::Out), err: of(Stream::Err) }
}

impl Ended {
    /// Ended well; gives what was printed.
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self.out
    }

    /// Ended with this code and said this.
    pub(crate) fn failed(self, code: i32, said: &str) {
        let all = format!("{}\n{}", self.out, self.err);
        assert_eq!(self.code, code, "{all}");
        assert!(all.contains(said), "expected: {said}\nfound: {all}");
    }
}
