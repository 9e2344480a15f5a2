//! What a row works with: a topic that all share, and a schema and a group of its own.

use std::sync::Arc;

use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::postgres::{Postgres, Schema};
use oncesink_test_support::process::{Launch, Line};
use oncesink_test_support::{Servers, eventually};
use tokio::sync::Semaphore;

use crate::rig::PATIENCE;

/// How `run` ends where `check` ends with 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Run {
    /// In the same way, with the same words.
    Ends,
    /// What does not answer is waited for.
    Waits,
}

/// An input and its message.
pub(super) struct Row {
    pub(super) what: &'static str,
    /// Runs in the schema, which has the target and our tables. `@t` is the topic and its table, `@s` the schema, `@r` a role of the row's own that may
    /// do all that is needed.
    pub(super) sql: &'static str,
    /// Replacements in the file, with the same names; `@url` is the URL of the database, `@role` the same URL for the row's role.
    pub(super) file: &'static [(&'static str, &'static str)],
    pub(super) exit: i32,
    /// What the message contains: file and key or the object, and the remedy.
    pub(super) says: &'static [&'static str],
    pub(super) run: Run,
}

/// A row in which both verbs end with 3.
pub(super) const fn refused(
    what: &'static str,
    sql: &'static str,
    file: &'static [(&'static str, &'static str)],
    says: &'static [&'static str],
) -> Row {
    Row { what, sql, file, exit: 3, says, run: Run::Ends }
}

/// What all rows of a kind share.
pub(super) struct Stage {
    kafka: &'static Kafka,
    postgres: &'static Postgres,
    topic: String,
    /// `migrate --print` for this schema.
    tables: (String, String),
}

impl Stage {
    pub(super) async fn new(kind: &str) -> Self {
        let servers = Servers::shared().await;
        let (kafka, postgres) = (servers.kafka(), servers.postgres());
        let topic = kafka.topic(&format!("start_{kind}"), 1).await;
        kafka.produce(&topic, [Record::to(0).value("{\"n\":1}")]).await;
        let schema = postgres.schema("printed").await;
        let stage = Self { kafka, postgres, topic, tables: (schema.name().to_owned(), String::new()) };
        let file = stage.file(&schema, &[]);
        let (code, lines) = launch(&file, &["migrate", "--print"]).run(PATIENCE).await;
        assert_eq!(code, 0, "{lines:?}");
        let text = lines.iter().filter(|line| line.stream == oncesink_test_support::process::Stream::Out);
        let text: Vec<&str> = text.map(|line| line.text.as_str()).collect();
        Self { tables: (schema.name().to_owned(), text.join("\n")), ..stage }
    }

    pub(super) async fn all(self, rows: Vec<Row>) {
        let (stage, few) = (Arc::new(self), Arc::new(Semaphore::new(3)));
        let mut running = tokio::task::JoinSet::new();
        for row in rows {
            let (stage, few) = (Arc::clone(&stage), Arc::clone(&few));
            running.spawn(async move {
                let _turn = few.acquire().await.unwrap();
                stage.row(&row).await
            });
        }
        let problems: Vec<String> = running.join_all().await.into_iter().flatten().collect();
        assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    }

    fn file(&self, schema: &Schema, changes: &[(&str, &str)]) -> String {
        let mut file = String::from(
            "[kafka]\nbrokers = \"@kafka\"\n\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.s]\ntopics = [\"@t\"]\ngroup = \"@s\"\n\n\
             [sinks.s.target]\nkind = \"postgres\"\nurl = \"@url\"\n\n[sinks.s.table]\ntable = \"@t\"\n",
        );
        for (from, to) in changes {
            assert!(file.contains(from), "{from} is in the file");
            file = file.replace(from, to);
        }
        self.named(schema, &file)
    }

    fn named(&self, schema: &Schema, text: &str) -> String {
        let role = schema.url().replacen("postgres@", &format!("r_{}@", schema.name()), 1);
        let server = self.postgres.address();
        text.replace("@role", &role)
            .replace("@url", schema.url())
            .replace("@t", &self.topic)
            .replace("@s", schema.name())
            .replace("@r", &format!("r_{}", schema.name()))
            .replace("@postgres", server)
            .replace("@kafka", self.kafka.bootstrap())
    }

    async fn schema(&self, row: &Row) -> Schema {
        let schema = self.postgres.schema("start").await;
        let (printed_for, text) = &self.tables;
        schema.execute(&text.replace(printed_for, schema.name())).await;
        let role = "CREATE TABLE \"@t\" (n bigint, doc jsonb, note text);
             CREATE ROLE @r LOGIN; GRANT USAGE ON SCHEMA @s TO @r; GRANT INSERT ON \"@t\" TO @r;
             GRANT SELECT, INSERT, UPDATE ON kafka_offsets, oncesink_topics, oncesink_events, oncesink_dead_letters, oncesink_migrations TO @r";
        schema.execute(&self.named(&schema, role)).await;
        schema.execute(&self.named(&schema, row.sql)).await;
        schema
    }

    /// What is wrong with a row's outcome, for people.
    async fn row(&self, row: &Row) -> Option<String> {
        let schema = self.schema(row).await;
        let file = self.file(&schema, row.file);
        let mut problems = Vec::new();
        let (code, lines) = launch(&file, &["check"]).run(PATIENCE).await;
        self.look(row, &schema, "check", code, row.exit, &lines, &mut problems);
        let (code, lines) = match row.run {
            Run::Ends => launch(&file, &["run"]).run(PATIENCE).await,
            Run::Waits => waits(&file).await,
        };
        let exit = if row.run == Run::Waits { 0 } else { row.exit };
        self.look(row, &schema, "run", code, exit, &lines, &mut problems);
        if self.kafka.has_group(schema.name()).await {
            problems.push("a group was made".to_owned());
        }
        let stored: i64 = schema
            .value("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema AND tablename = 'kafka_offsets'")
            .await;
        if stored == 1 && schema.count("kafka_offsets").await > 0 && !row.sql.contains("INTO kafka_offsets") {
            problems.push("an offset was stored".to_owned());
        }
        (!problems.is_empty()).then(|| format!("## {}\n{}", row.what, problems.join("\n")))
    }

    #[allow(clippy::too_many_arguments)]
    fn look(
        &self,
        row: &Row,
        schema: &Schema,
        verb: &str,
        code: i32,
        expected: i32,
        lines: &[Line],
        problems: &mut Vec<String>,
    ) {
        let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let text = text.join("\n");
        // In a line of JSON a quote is escaped.
        let plain = text.replace("\\\"", "\"").replace("\\\\", "\\");
        let missing: Vec<String> = row
            .says
            .iter()
            .map(|part| self.named(schema, part))
            .filter(|part| !plain.contains(part.as_str()))
            .collect();
        if plain.contains("hunter2") {
            problems.push(format!("{verb} tells a secret:\n{text}"));
        }
        if code != expected || !missing.is_empty() || row.says.is_empty() {
            problems
                .push(format!("{verb}: exit {code}, expected {expected}; does not say {missing:?}:\n{text}"));
        }
    }
}

fn launch(file: &str, verb: &[&str]) -> Launch {
    Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", file).args(verb.iter().copied())
}

/// `run` until it says that it waits; then it is told to stop.
async fn waits(file: &str) -> (i32, Vec<Line>) {
    let process = launch(file, &["run"]).start();
    eventually(PATIENCE, || async {
        (process.text().contains("waiting for ") || !process.is_running()).then_some(())
    })
    .await;
    if process.is_running() {
        process.terminate();
    }
    let code = process.wait_exit(PATIENCE).await;
    (code, process.lines())
}
