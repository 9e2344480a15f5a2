//! End to end: a topic that is full already, the released command, a table without a key; against psql's COPY of the same rows.
//!
//! What is measured: rows after the first commit, divided by the time from the first commit to the last, by the commit times that the server keeps of
//! every row's transaction. So neither the start of the process nor the join of the group counts, for neither side: of psql's `\copy` it is the time that psql gives for the
//! command, from its beginning to its commit, without its start and connection.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use oncesink::sqlx::Row;
use oncesink_test_support::kafka::{KafkaCluster, Record};
use oncesink_test_support::postgres::{PostgresServer, Schema};

use crate::report::{Figure, least, median, most, span};
use crate::{cost, data, process, psql};

const PARTITIONS: i32 = 6;
/// Records that are made at once.
const PRODUCE_CHUNK: u64 = 50_000;

/// One run of the command.
struct Run {
    rows_per_second: f64,
    transactions: usize,
    rows_median: f64,
    cpu: f64,
    threads: Vec<(String, f64)>,
    postgres_cpu: f64,
    kafka_cpu: f64,
    peak_mb: f64,
    first_commit: f64,
    phases: Vec<(&'static str, f64)>,
}

/// One load by psql.
struct Loaded {
    rows_per_second: f64,
    postgres_cpu: f64,
}

struct Insert<'s> {
    kafka: &'s KafkaCluster,
    postgres: &'s PostgresServer,
    schema: Schema,
    topic: String,
    rows: u64,
    runs: usize,
}

/// What to run: each round psql, then every side.
pub(crate) struct Plan {
    pub(crate) rows: u64,
    pub(crate) rounds: usize,
    pub(crate) sides: Vec<Side>,
}

/// A build of the command and its number of writers.
pub(crate) struct Side {
    pub(crate) writers: usize,
    pub(crate) binary: PathBuf,
}

pub(crate) async fn insert(kafka: &KafkaCluster, postgres: &PostgresServer, plan: &Plan) -> Vec<Figure> {
    eprintln!("insert: {} records in {PARTITIONS} partitions ...", plan.rows);
    let mut insert = Insert::new(kafka, postgres, plan.rows).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("orders.copy");
    // Warms the servers up, and gives the rows that psql is to write.
    insert.run(&Side { writers: 1, binary: process::built() }).await;
    psql::dump(insert.schema.url(), &file);

    let mut by_psql = Vec::new();
    let mut runs: Vec<Vec<Run>> = plan.sides.iter().map(|_| Vec::new()).collect();
    for round in 1..=plan.rounds {
        let psql = insert.psql(&file).await;
        let mut line = format!("round {round}: psql {:.0} rows/s", psql.rows_per_second);
        by_psql.push(psql);
        let mut turns: Vec<_> = plan.sides.iter().zip(&mut runs).collect();
        if round % 2 == 0 {
            // No side always comes right behind the same other one.
            turns.reverse();
        }
        for (side, runs) in turns {
            let run = insert.run(side).await;
            let _ = write!(
                line,
                "; {} writers{} {:.0}, {:.2} µs",
                side.writers,
                if side.binary == process::built() { "" } else { " (base)" },
                run.rows_per_second,
                run.cpu
            );
            runs.push(run);
        }
        eprintln!("{line}");
    }
    let figures = plan.sides.iter().zip(&runs).map(|(side, runs)| figure(side, runs, &by_psql));
    figures.collect()
}

fn figure(side: &Side, runs: &[Run], by_psql: &[Loaded]) -> Figure {
    let ratios = runs.iter().zip(by_psql).map(|(run, psql)| run.rows_per_second / psql.rows_per_second);
    let all = |of: fn(&Run) -> f64| runs.iter().map(of).collect::<Vec<_>>();
    let psql = |of: fn(&Loaded) -> f64| by_psql.iter().map(of).collect::<Vec<_>>();
    let mut note = format!(
        "{} rows/s, psql {} rows/s\n\
         {:.0} transactions of {:.0} rows (median); first commit {:.2} s after the start; peak memory {:.0} MB\n\
         CPU a row: sink {:.2} ({:.2}..{:.2}) µs between first and last commit; over the whole run postgres {:.2} µs (psql's rows {:.2} µs), kafka {:.2} µs",
        span(&all(|run| run.rows_per_second)),
        span(&psql(|psql| psql.rows_per_second)),
        median(&all(|run| run.transactions as f64)),
        median(&all(|run| run.rows_median)),
        median(&all(|run| run.first_commit)),
        median(&all(|run| run.peak_mb)),
        median(&all(|run| run.cpu)),
        least(&all(|run| run.cpu)),
        most(&all(|run| run.cpu)),
        median(&all(|run| run.postgres_cpu)),
        median(&psql(|psql| psql.postgres_cpu)),
        median(&all(|run| run.kafka_cpu)),
    );
    if let Some(last) = runs.last() {
        let threads = last.threads.iter().map(|(name, cpu)| format!("{name} {cpu:.2}"));
        let phases = last.phases.iter().map(|(phase, took)| format!("{phase} {:.1}", took * 1000.0));
        let (threads, phases) =
            (threads.collect::<Vec<_>>().join(", "), phases.collect::<Vec<_>>().join(", "));
        let _ = write!(note, "\nlast run: µs a row by thread: {threads}; ms a transaction: {phases}");
    }
    let base = side.binary != process::built();
    if base {
        let _ = write!(note, "\nby {}", side.binary.display());
    }
    let (name, target) =
        if side.writers == 1 { ("insert_one_writer", ">= 0.9") } else { ("insert_two_writers", ">= 1.2") };
    let against = "one psql binary \\copy of the same rows (rows/s)";
    Figure { name, against, ratios: ratios.collect(), target, base, note }
}

impl<'s> Insert<'s> {
    async fn new(kafka: &'s KafkaCluster, postgres: &'s PostgresServer, rows: u64) -> Self {
        let topic = kafka.topic("bench_orders", PARTITIONS).await;
        let mut first = 0;
        while first < rows {
            let last = rows.min(first + PRODUCE_CHUNK);
            let records =
                (first..last).map(|n| Record::to((n % PARTITIONS as u64) as i32).value(data::order(n)));
            kafka.produce(&topic, records).await;
            first = last;
        }
        let schema = postgres.schema("bench_insert").await;
        let insert = Self { kafka, postgres, schema, topic, rows, runs: 0 };
        process::run(&process::built(), &insert.config(1), &["migrate"]).await;
        insert
    }

    /// The defaults, but for the number of writers.
    fn config(&self, writers: usize) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.orders]\ntopics = [\"{}\"]\ngroup = \"bench-{}\"\n\
             writers = {writers}\ntable = {{ table = \"orders\" }}\ntarget = {{ kind = \"postgres\", url = \"{}\" }}\n",
            self.kafka.bootstrap(),
            self.topic,
            self.runs,
            self.schema.url(),
        )
    }

    /// An empty table, and no checkpoint due that the side before left behind.
    async fn fresh(&mut self) {
        self.runs += 1;
        let columns = data::COLUMNS;
        let sql = format!(
            "DROP TABLE IF EXISTS orders; CREATE TABLE orders ({columns}) WITH (autovacuum_enabled = off)"
        );
        self.schema.execute(&sql).await;
        self.schema.execute("CHECKPOINT").await;
    }

    async fn psql(&mut self, file: &Path) -> Loaded {
        self.fresh().await;
        let before = cost::family(self.postgres.pid());
        let (url, path) = (self.schema.url().to_owned(), file.to_owned());
        let seconds = tokio::task::spawn_blocking(move || psql::load(&url, &path)).await.expect("psql");
        let spent = cost::family(self.postgres.pid()) - before;
        let rows = self.rows as f64;
        assert_eq!(self.schema.count("orders").await as u64, self.rows);
        Loaded { rows_per_second: rows / seconds, postgres_cpu: spent * 1e6 / rows }
    }

    async fn run(&mut self, side: &Side) -> Run {
        self.fresh().await;
        let broker = self.kafka.broker(1).pid();
        let before = (cost::family(self.postgres.pid()), cost::family(broker));
        let started = cost::now();
        let watched = process::run(&side.binary, &self.config(side.writers), &["run", "--until-end"]).await;
        let after = (cost::family(self.postgres.pid()), cost::family(broker));
        let commits = self.commits().await;
        let (Some(first), Some(last)) = (commits.first().copied(), commits.last().copied()) else {
            panic!("no commit");
        };
        let a_row = |seconds: f64, rows: f64| seconds * 1e6 / rows;
        let counted = self.rows as f64 - first.1;
        let threads = cost::within(&watched.samples, first.0, last.0);
        let mut threads: Vec<_> =
            threads.into_iter().map(|(name, cpu)| (name, a_row(cpu, counted))).collect();
        threads.sort_by(|a, b| b.1.total_cmp(&a.1));
        threads.retain(|(_, cpu)| *cpu >= 0.005);
        let phases = ["advance", "write", "guard", "commit"].map(|phase| {
            let value = |part: &str| {
                let name = format!(
                    "oncesink_transaction_seconds_{part}{{group=\"bench-{}\",phase=\"{phase}\"}}",
                    self.runs
                );
                watched.metrics.get(&name).copied().unwrap_or(f64::NAN)
            };
            (phase, value("sum") / value("count"))
        });
        Run {
            rows_per_second: counted / (last.0 - first.0),
            transactions: commits.len(),
            rows_median: median(&commits.iter().map(|(_, rows)| *rows).collect::<Vec<_>>()),
            cpu: threads.iter().map(|(_, cpu)| cpu).sum(),
            threads,
            postgres_cpu: a_row(after.0 - before.0, self.rows as f64),
            kafka_cpu: a_row(after.1 - before.1, self.rows as f64),
            peak_mb: watched.samples.last().map_or(0.0, |sample| sample.peak_mb),
            first_commit: first.0 - started,
            phases: phases.to_vec(),
        }
    }

    /// Time and rows of every transaction, in the order of their commits; every record is there once.
    async fn commits(&self) -> Vec<(f64, f64)> {
        let distinct: i64 = self.schema.value("SELECT count(DISTINCT order_id) FROM orders").await;
        assert_eq!((distinct as u64, self.schema.count("orders").await as u64), (self.rows, self.rows));
        let sql = "SELECT extract(epoch FROM pg_xact_commit_timestamp(id))::float8, rows::float8
             FROM (SELECT xmin AS id, count(*) AS rows FROM orders GROUP BY xmin) AS t ORDER BY 1";
        let rows = self.schema.rows(sql).await;
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}
