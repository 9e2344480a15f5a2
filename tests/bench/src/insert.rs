//! End to end: a topic that is full already, the released command, a table without a key; against psql's COPY of the same rows.
//!
//! What is measured: rows after the first commit, divided by the time from the first commit to the last, by the commit times that the server keeps of
//! every row's transaction. So neither the start of the process nor the join of the group counts, for neither side: of psql's `\copy` it is the time that psql gives for the
//! command, from its beginning to its commit, without its start and connection.

use std::fmt::Write;
use std::path::Path;

use oncesink::sqlx::Row;
use oncesink_test_support::kafka::{KafkaCluster, Record};
use oncesink_test_support::postgres::{PostgresServer, Schema};

use crate::report::{Figure, median, span};
use crate::{cost, data, process, psql};

const PARTITIONS: i32 = 6;
/// Records of the run that warms the servers up and checks the path.
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

struct Insert<'s> {
    kafka: &'s KafkaCluster,
    postgres: &'s PostgresServer,
    schema: Schema,
    topic: String,
    rows: u64,
    runs: usize,
}

pub(crate) async fn insert(
    kafka: &KafkaCluster,
    postgres: &PostgresServer,
    rows: u64,
    writers: &[usize],
    rounds: usize,
) -> Vec<Figure> {
    eprintln!("insert: {rows} records into {PARTITIONS} partitions ...");
    let mut insert = Insert::new(kafka, postgres, rows).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("orders.copy");
    insert.run(1).await;
    psql::dump(insert.schema.url(), &file);

    let mut by_psql = Vec::new();
    let mut runs: Vec<Vec<Run>> = writers.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        let mut line = format!("round {round}:");
        by_psql.push(insert.psql(&file).await);
        let _ = write!(line, " psql {:.0}", by_psql.last().expect("a run"));
        for (writers, runs) in writers.iter().zip(&mut runs) {
            let run = insert.run(*writers).await;
            let _ = write!(line, ", {writers} writers {:.0}", run.rows_per_second);
            runs.push(run);
        }
        eprintln!("{line} rows/s");
    }
    let psql_cpu = insert.psql_server_cpu(&file).await;
    let figures = writers.iter().zip(&runs).map(|(writers, runs)| figure(*writers, runs, &by_psql, psql_cpu));
    figures.collect()
}

fn figure(writers: usize, runs: &[Run], by_psql: &[f64], psql_cpu: f64) -> Figure {
    let ratios = runs.iter().zip(by_psql).map(|(run, psql)| run.rows_per_second / psql).collect();
    let all = |of: fn(&Run) -> f64| runs.iter().map(of).collect::<Vec<_>>();
    let mut note = format!(
        "{} rows/s, psql {} rows/s\n\
         {:.0} transactions of {:.0} rows (median); first commit {:.2} s after the start; peak memory {:.0} MB\n\
         CPU a row: sink {:.2} µs between first and last commit; over the whole run postgres {:.2} µs (psql's rows {psql_cpu:.2} µs), kafka {:.2} µs",
        span(&all(|run| run.rows_per_second)),
        span(by_psql),
        median(&all(|run| run.transactions as f64)),
        median(&all(|run| run.rows_median)),
        median(&all(|run| run.first_commit)),
        median(&all(|run| run.peak_mb)),
        median(&all(|run| run.cpu)),
        median(&all(|run| run.postgres_cpu)),
        median(&all(|run| run.kafka_cpu)),
    );
    if let Some(last) = runs.last() {
        let threads: Vec<_> = last.threads.iter().map(|(name, cpu)| format!("{name} {cpu:.2}")).collect();
        let phases: Vec<_> =
            last.phases.iter().map(|(phase, took)| format!("{phase} {:.1} ms", took * 1000.0)).collect();
        let _ = write!(
            note,
            "\nlast run: µs a row by thread: {}; a transaction: {}",
            threads.join(", "),
            phases.join(", ")
        );
    }
    let (name, target) =
        if writers == 1 { ("insert_one_writer", ">= 0.9") } else { ("insert_two_writers", ">= 1.2") };
    let against = "one psql binary \\copy of the same rows (rows/s)";
    Figure { name, against, ratios, target, note }
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
        process::run(&insert.config(1), &["migrate"]).await;
        insert
    }

    /// The defaults, but for the number of writers.
    fn config(&self, writers: usize) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.orders]\ntopics = [\"{}\"]\ngroup = \"bench-{}\"\n\
             writers = {writers}\ntable = \"orders\"\ntarget = {{ kind = \"postgres\", url = \"{}\" }}\n",
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

    async fn psql(&mut self, file: &Path) -> f64 {
        self.fresh().await;
        let (url, path) = (self.schema.url().to_owned(), file.to_owned());
        let seconds = tokio::task::spawn_blocking(move || psql::load(&url, &path)).await.expect("psql");
        assert_eq!(self.schema.count("orders").await as u64, self.rows);
        self.rows as f64 / seconds
    }

    /// Microseconds of the server's CPU a row, for one more run of psql.
    async fn psql_server_cpu(&mut self, file: &Path) -> f64 {
        self.fresh().await;
        let before = cost::family(self.postgres.pid());
        let (url, path) = (self.schema.url().to_owned(), file.to_owned());
        tokio::task::spawn_blocking(move || psql::load(&url, &path)).await.expect("psql");
        (cost::family(self.postgres.pid()) - before) * 1e6 / self.rows as f64
    }

    async fn run(&mut self, writers: usize) -> Run {
        self.fresh().await;
        let broker = self.kafka.broker(1).pid();
        let before = (cost::family(self.postgres.pid()), cost::family(broker));
        let started = cost::now();
        let watched = process::run(&self.config(writers), &["run", "--until-end"]).await;
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
