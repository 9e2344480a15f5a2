//! Who writes the rows: the command, or one of the controls; each with its own tables and group, on the same topic.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use oncesink_test_support::postgres::Postgres;
use oncesink_test_support::process::{Launch, Process};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgPool};

use crate::orders::{Mode, Orders, TOPIC};
use crate::throttle;

/// How long a dead or frozen member keeps its partitions: short, yet longer than a busy machine delays a heartbeat.
const SESSION: Duration = Duration::from_secs(3);
/// Rows of one transaction, of every contender: more than the 200 from which the command takes COPY.
pub(crate) const ROWS: usize = 250;

/// Lets the command fetch some thousands of orders ahead for each writer. With tens of thousands a partition that is taken over would wait behind those of the
/// others for longer than anybody wants to look at, since the rows are held up.
const MEMORY: &str = "18MB";
/// As many as an instance has partitions while another one is frozen.
const WRITERS: usize = 3;

/// What all contenders share.
pub(crate) struct Arena {
    pub(crate) kafka: String,
    pub(crate) postgres: String,
    pub(crate) orders: Orders,
    pub(crate) mode: Mode,
}

/// The programs that contend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows first, then the offsets to Kafka.
    Naive,
    /// The offset in the rows' transaction, by an unconditional upsert.
    Unfenced,
    /// The command.
    Oncesink,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Naive => "naive",
            Self::Unfenced => "unfenced",
            Self::Oncesink => "oncesink",
        })
    }
}

/// One contender with its tables.
pub(crate) struct Contender {
    pub(crate) kind: Kind,
    pub(crate) orders: Orders,
    pub(crate) pool: PgPool,
    pub(crate) url: String,
    kafka: String,
    mode: Mode,
}

impl Contender {
    /// Makes the tables: the command's in the schema `public`, where they stay to be looked at, a control's in a schema of its own.
    pub(crate) async fn new(arena: &Arena, kind: Kind) -> Self {
        let postgres = Postgres::connect(&arena.postgres);
        let url = match kind {
            Kind::Oncesink => arena.postgres.clone(),
            _ => postgres.schema(&format!("control_{kind}")).await.url().to_owned(),
        };
        let pool = PgPoolOptions::new().max_connections(4).connect(&url).await.expect("connecting");
        let contender =
            Self { kind, orders: arena.orders, pool, url, kafka: arena.kafka.clone(), mode: arena.mode };
        contender.execute(arena.mode.tables()).await;
        contender.execute(throttle::TABLE).await;
        if kind == Kind::Oncesink {
            let (code, lines) =
                contender.command("", &contender.url, "migrate").run(Duration::from_secs(60)).await;
            assert_eq!(code, 0, "migrate: {lines:#?}");
        } else {
            contender.execute(crate::control::TABLES).await;
        }
        contender
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.pool.execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }

    pub(crate) async fn integers(&self, sql: &str) -> Vec<i64> {
        sqlx::query_scalar(sql).fetch_all(&self.pool).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// One integer.
    pub(crate) async fn integer(&self, sql: &str) -> i64 {
        self.integers(sql).await.first().copied().unwrap_or(0)
    }

    /// Starts an instance, with a `group.instance.id` unless that is empty.
    pub(crate) fn start(&self, instance: &str, url: &str) -> Process {
        match self.kind {
            Kind::Oncesink => self.command(instance, url, "run").start(),
            _ => self.control(instance, url).start(),
        }
    }

    fn command(&self, instance: &str, url: &str, verb: &str) -> Launch {
        let named =
            if instance.is_empty() { String::new() } else { format!("group.instance.id = \"{instance}\"\n") };
        let file = format!(
            "[kafka]\nbrokers = \"{}\"\nsession.timeout.ms = {}\n{named}\n[http]\nlisten = \"127.0.0.1:0\"\n\n\
             [sinks.orders]\ntopics = [\"{TOPIC}\"]\ngroup = \"million\"\nmemory = \"{MEMORY}\"\nwriters = {WRITERS}\nbatch = {{ rows = {ROWS} }}\n\
             target = {{ kind = \"postgres\", url = \"{url}\" }}\n{}",
            self.kafka,
            SESSION.as_millis(),
            self.mode.keys()
        );
        let file = match self.orders.with_bad() {
            true => file
                .replace("group = \"million\"\n", "group = \"million\"\non_bad_record = \"dead-letter\"\n"),
            false => file,
        };
        let launch = Launch::new(sibling("oncesink")).file("oncesink.toml", &file).env("RUST_LOG", "info");
        launch.args(["--config", "oncesink.toml", verb])
    }

    fn control(&self, instance: &str, url: &str) -> Launch {
        let (kind, session) = (self.kind.to_string(), SESSION.as_millis().to_string());
        let words =
            ["control", "--kind", &kind, "--mode", self.mode.name(), "--brokers", &self.kafka, "--url", url];
        let launch = Launch::new(sibling("million")).args(words).args(["--session", &session]);
        launch.args(["--instance", instance])
    }

    /// Partitions that an instance with this pid was given last.
    pub(crate) async fn owned_by(&self, pid: u32) -> Vec<i64> {
        let sql = format!(
            "SELECT partition_id::bigint FROM kafka_offsets WHERE owner LIKE '%/{pid}' ORDER BY partition_id"
        );
        self.integers(&sql).await
    }

    /// Whether the successors of a frozen owner wait for the rows of its open transaction: where rows have a key, a control does, since nothing fences the old
    /// session; what it does once that is woken up shows the harm all the same.
    pub(crate) async fn wait_for_frozen_rows(&self) -> bool {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE wait_event = 'transactionid' AND state = 'active' AND query LIKE 'INSERT INTO orders%'";
        self.mode == Mode::Upsert && self.kind != Kind::Oncesink && self.integer(waiting).await > 0
    }

    /// The next place in every partition, by the rows that are there.
    pub(crate) async fn written(&self) -> Vec<i64> {
        let sql = "SELECT COALESCE(max(seq) + 1, 0) FROM generate_series(0, 5) AS p (id)
                   LEFT JOIN orders ON partition_id = p.id GROUP BY p.id ORDER BY p.id";
        self.integers(sql).await
    }
}

/// A program that was built beside this one.
pub(crate) fn sibling(name: &str) -> PathBuf {
    let path = std::env::current_exe().expect("our own path").with_file_name(name);
    assert!(path.exists(), "{} is missing: build it first", path.display());
    path
}
