//! The verbs on a SQLite file and a cluster inside this process, from the words of the command line to what stands in the file.

use std::sync::Arc;

use clap::Parser;
use oncesink::config::{Config, Environment, Known, Librdkafka};
use oncesink::kafka::MockCluster;
use oncesink::position::StartPolicy;
use oncesink::sqlite::{Sqlite, SqliteConfig, Tx};
use oncesink::store::{Identity, Starts, Store, TopicIdentity, Wanted};
use oncesink::{Batch, Sink, SinkError, TopicPartition, Written, sqlx};
use oncesink_test_support::sqlite::File;

use super::*;
use crate::arguments::Arguments;
use crate::exit::Exit;

/// A sink that looks whether its table is there.
struct Rows;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[async_trait::async_trait]
impl Sink<Sqlite> for Rows {
    const KIND: &'static str = "rows";
    type Config = Nothing;

    async fn open(Nothing {}: Nothing, _topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        sqlx::query("SELECT 1 FROM rows WHERE false").execute(tx.sql()).await?;
        Ok(Self)
    }

    fn target(&self, _topic: &str) -> String {
        "rows".to_owned()
    }

    async fn write(&self, _tx: &mut Tx, _batch: &Batch) -> Result<Written, SinkError> {
        Ok(Written::records(0))
    }
}

struct Stage {
    file: File,
    kafka: MockCluster,
}

impl Stage {
    /// A topic of two partitions with five records each; no file yet.
    fn new(stem: &str) -> Self {
        let kafka = MockCluster::start().unwrap();
        kafka.create_topic("t", 2).unwrap();
        for n in 0..10 {
            kafka.produce("t", n % 2, None, Some(b"{}")).unwrap();
        }
        kafka.flush().unwrap();
        Self { file: File::new(stem), kafka }
    }

    async fn run(&self, line: &str) -> Result<Exit, Failed> {
        self.run_with("", line).await
    }

    /// `more` are further keys of the target.
    async fn run_with(&self, more: &str, line: &str) -> Result<Exit, Failed> {
        let text = format!(
            "[kafka]\nbrokers = \"{}\"\n[sinks.o]\ntopics = [\"t\"]\n[sinks.o.target]\nkind = \"rows\"\nurl = \"{}\"\n{more}",
            self.kafka.brokers(),
            self.file.url()
        );
        let mut registry = Registry::default();
        registry.add::<Sqlite, Rows>();
        let kinds = registry.kinds();
        let known = Known { kafka: &Librdkafka, kinds: &kinds };
        let config = Config::parse(&text, "oncesink.toml", &Environment::default(), &known)?;
        registry.check(&config)?;
        let words = Arguments::try_parse_from(format!("oncesink {line}").split(' ')).unwrap();
        crate::verb_of(Context { config, registry, output: Output { json: false } }, words.verb).await
    }

    fn store(&self) -> Sqlite {
        Sqlite::new(SqliteConfig::new(self.file.url()), "oncesink-o").unwrap()
    }

    /// As if the sink had claimed partition 0 and stopped there.
    async fn stopped(&self) {
        let store = self.store();
        let text = |text: &str| Arc::<str>::from(text);
        let (group, sink) = (text("oncesink-o"), text("o"));
        let identity = Identity { group, sink, cluster_id: text("before"), owner: text("test") };
        let topic = TopicIdentity { name: text("t"), id: text("before"), target: text("o: rows") };
        let (first, beginning) = (vec![2, 2], vec![0, 0]);
        let starts = Starts { topic: topic.clone(), policy: StartPolicy::Earliest, first, beginning };
        store.register(&identity, &starts).await.unwrap();
        let place = TopicPartition::new("t", 0);
        store.claim(&identity, &[Wanted { place: place.clone(), topic }]).await.unwrap();
        let fence = store.rows(std::slice::from_ref(&place)).await.unwrap()[0].fence;
        store.note_state(&place, fence, "stopped", Some("test")).await.unwrap();
    }

    async fn offsets(&self) -> Vec<i64> {
        self.file.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_is_made_checked_and_looked_at() {
    let stage = Stage::new("verbs_sqlite_new");
    for verb in ["status", "skip t/0 --expect 0 --reason x"] {
        let failed = stage.run(verb).await.unwrap_err();
        assert_eq!(failed.exit, Exit::Preflight, "{failed}");
        assert!(failed.message.contains("there is no such file. Run: oncesink migrate"), "{failed}");
    }
    assert_eq!(stage.run("check").await.unwrap(), Exit::Preflight);
    assert_eq!(stage.run("migrate --print").await.unwrap(), Exit::Done);
    assert!(!stage.file.path().exists());
    assert_eq!(stage.run("migrate").await.unwrap(), Exit::Done);
    assert_eq!(stage.run("migrate").await.unwrap(), Exit::Done);
    assert_eq!(stage.run("check").await.unwrap(), Exit::Preflight, "the table of the rows is not there");
    stage.file.execute("CREATE TABLE rows (n)").await;
    assert_eq!(stage.run("check").await.unwrap(), Exit::Done);
    assert_eq!(stage.run("status").await.unwrap(), Exit::Done);
    let failed = stage.run_with("password = \"x\"", "status").await.unwrap_err();
    assert!(failed.message.contains("takes no password"), "{failed}");
    stage.file.execute("DROP TABLE kafka_offsets").await;
    let failed = stage.run("status").await.unwrap_err();
    assert!(
        failed.message.contains("no such table") && failed.message.contains("Run: oncesink migrate"),
        "{failed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn skip_resume_and_reset_work_on_a_sqlite_file_beside_a_running_sink() {
    let stage = Stage::new("verbs_sqlite_move");
    stage.run("migrate").await.unwrap();
    stage.file.execute("CREATE TABLE rows (n)").await;
    stage.stopped().await;
    let running = stage.store();
    running.take_possession().await.unwrap();

    assert_eq!(stage.run("check").await.unwrap(), Exit::Done);
    let failed = stage.run("skip t/0 --expect 3 --reason x").await.unwrap_err();
    assert_eq!(failed.exit, Exit::Refused, "{failed}");
    assert!(failed.message.contains("t/0 stands at offset 2, not at 3"), "{failed}");
    assert_eq!(stage.run("resume t/0").await.unwrap(), Exit::Done);
    assert_eq!(stage.run("resume t/0").await.unwrap_err().exit, Exit::Refused);
    assert_eq!(stage.run("skip t/0 --expect 2 --reason broken").await.unwrap(), Exit::Done);
    assert_eq!(stage.offsets().await, [3, 2]);
    assert_eq!(stage.run("status").await.unwrap(), Exit::Done);
    assert_eq!(stage.run("reset t/1 --to latest --expect 2 --reason x").await.unwrap(), Exit::Done);
    assert_eq!(stage.offsets().await, [3, 5]);
    assert_eq!(stage.run("reset t --to earliest --reason x").await.unwrap(), Exit::Done);
    assert_eq!(stage.offsets().await, [0, 0]);
    let events: Vec<String> = stage.file.column("SELECT kind FROM oncesink_events ORDER BY id").await;
    assert_eq!(events, ["resumed", "skipped", "reset", "reset", "reset"]);
    let here: Vec<String> = stage.file.column("SELECT DISTINCT topic_id FROM kafka_offsets").await;
    assert_ne!(here, ["before"], "a reset takes over the identity");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipes_table_in_a_sqlite_file_is_adopted() {
    let stage = Stage::new("verbs_sqlite_adopt");
    stage
        .file
        .execute(
            "CREATE TABLE kafka_offsets (topic text, partition_id int, last_offset bigint, PRIMARY KEY (topic, partition_id));
             INSERT INTO kafka_offsets VALUES ('t', 0, 3), ('t', 1, 0)",
        )
        .await;
    let failed = stage.run("migrate").await.unwrap_err();
    assert!(failed.message.contains("--adopt next|processed"), "{failed}");
    assert_eq!(stage.run("migrate --adopt processed --group oncesink-o").await.unwrap(), Exit::Done);
    assert_eq!(stage.offsets().await, [4, 1]);
}
