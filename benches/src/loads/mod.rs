//! End to end into the other databases: the released command on a topic that is full already, against the loader that comes with the database, by rows a second.
//!
//! These servers keep no commit times. So the stored offsets are read every few milliseconds while the command runs: what was written between the first and the
//! last change that was seen is divided by the time between them, and neither the start of the process nor the join of the group counts.

mod sqlite;

use std::path::Path;
use std::time::Duration;

use oncesink_test_support::kafka::{KafkaCluster, Record};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::report::{Figure, median, most, span};
use crate::{cost, data, process};

const PARTITIONS: i32 = 6;
/// Records that are made at once.
const PRODUCE_CHUNK: u64 = 50_000;
/// Between two looks at the stored offsets.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How rows are written, and by hand loaded: into a table without a key, or into one whose keys are all new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Insert,
    Upsert,
}

impl Mode {
    /// The command's keys for it.
    fn keys(self) -> &'static str {
        match self {
            Self::Insert => "",
            Self::Upsert => {
                "mode = \"upsert\"\nkey = [\"order_id\"]\nkey_from = \"value\"\ndelete = \"none\"\n"
            }
        }
    }
}

/// A database of our own, as both sides use it.
pub(crate) trait Target {
    /// An empty table and our own tables, with nothing left to do of the side before.
    async fn fresh(&mut self, mode: Mode);

    /// `[sinks.orders.target]`, in one line.
    fn section(&self) -> String;

    /// Prepares the loader's files.
    fn lay_out(&mut self, folder: &Path, rows: u64);

    /// Loads all rows by the database's own loader; seconds.
    async fn load(&mut self) -> f64;

    /// The sum of the stored offsets of a group.
    async fn stored(&mut self, group: &str) -> i64;

    /// Different orders in the table, and rows.
    async fn counted(&mut self) -> (i64, i64);
}

/// What is measured: one side by hand, the other by the command.
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    mode: Mode,
    writers: usize,
    against: &'static str,
    target: &'static str,
}

const IMPORT: &str = "the sqlite3 shell's .import of the same rows into the same table (rows/s)";

/// In the order in which they are measured.
pub(crate) const ASKED: [Asked; 2] = [
    Asked { name: "sqlite_insert", mode: Mode::Insert, writers: 1, against: IMPORT, target: ">= 1.1" },
    Asked { name: "sqlite_upsert_new", mode: Mode::Upsert, writers: 1, against: IMPORT, target: ">= 1.1" },
];

/// One run of the command.
struct Run {
    rows_per_second: f64,
    cpu: f64,
    peak_mb: f64,
}

/// A topic of orders.
pub(crate) struct Topic<'k> {
    kafka: &'k KafkaCluster,
    name: String,
    rows: u64,
}

impl<'k> Topic<'k> {
    pub(crate) async fn new(kafka: &'k KafkaCluster, rows: u64) -> Self {
        let name = kafka.topic("bench_loads", PARTITIONS).await;
        let mut first = 0;
        while first < rows {
            let last = rows.min(first + PRODUCE_CHUNK);
            let records =
                (first..last).map(|n| Record::to((n % PARTITIONS as u64) as i32).value(data::order(n)));
            kafka.produce(&name, records).await;
            first = last;
        }
        Self { kafka, name, rows }
    }

    /// One figure, on a server or file of its own.
    pub(crate) async fn measure(&self, asked: &Asked, rounds: usize) -> Figure {
        self.compare(&mut sqlite::Sqlite::new(), asked, rounds).await
    }

    /// Takes turns: the loader, the command; a round gives one ratio.
    async fn compare<T: Target>(&self, target: &mut T, asked: &Asked, rounds: usize) -> Figure {
        eprintln!("{}: {} records in {PARTITIONS} partitions ...", asked.name, self.rows);
        let folder = tempfile::tempdir().expect("a folder");
        target.lay_out(folder.path(), self.rows);
        // Warms both up.
        self.load(target, asked).await;
        self.run(target, asked, 0).await;
        let (mut by_hand, mut runs) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            let loaded = self.load(target, asked).await;
            let run = self.run(target, asked, round).await;
            eprintln!(
                "round {round}: by hand {loaded:.0} rows/s; {:.0}, {:.2} µs",
                run.rows_per_second, run.cpu
            );
            by_hand.push(loaded);
            runs.push(run);
        }
        let all = |of: fn(&Run) -> f64| runs.iter().map(of).collect::<Vec<_>>();
        let note = format!(
            "{} rows/s, by hand {} rows/s; {} writer{}; CPU of the process {:.2} µs a row; peak memory {:.0} MB",
            span(&all(|run| run.rows_per_second)),
            span(&by_hand),
            asked.writers,
            if asked.writers == 1 { "" } else { "s" },
            median(&all(|run| run.cpu)),
            most(&all(|run| run.peak_mb)),
        );
        let ratios = runs.iter().zip(&by_hand).map(|(run, by_hand)| run.rows_per_second / by_hand).collect();
        Figure { name: asked.name, against: asked.against, ratios, target: asked.target, base: false, note }
    }

    async fn load<T: Target>(&self, target: &mut T, asked: &Asked) -> f64 {
        target.fresh(asked.mode).await;
        let seconds = target.load().await;
        let rows = self.rows as i64;
        assert_eq!(target.counted().await, (rows, rows));
        self.rows as f64 / seconds
    }

    async fn run<T: Target>(&self, target: &mut T, asked: &Asked, round: usize) -> Run {
        let binary = process::built();
        target.fresh(asked.mode).await;
        let group = format!("bench-{}-{round}", asked.name);
        let config = self.config(target, asked, &group);
        process::run(&binary, &config, &["migrate"]).await;
        let mut seen: Vec<(f64, i64)> = Vec::new();
        let watched = tokio::select! {
            watched = process::run(&binary, &config, &["run", "--until-end"]) => watched,
            never = watch(target, &group, &mut seen) => match never {},
        };
        let rows = self.rows as i64;
        assert_eq!(target.counted().await, (rows, rows));
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { panic!("no commit was seen") };
        // The last commits may have come after the last look.
        let counted = (last.1 - first.1) as f64;
        assert!(counted > 0.5 * rows as f64, "only {counted} of {rows} rows were seen to come");
        let threads = cost::within(&watched.samples, first.0, last.0);
        Run {
            rows_per_second: counted / (last.0 - first.0),
            cpu: threads.values().sum::<f64>() * 1e6 / counted,
            peak_mb: watched.samples.last().map_or(0.0, |sample| sample.peak_mb),
        }
    }

    /// The defaults, but for the number of writers.
    fn config<T: Target>(&self, target: &T, asked: &Asked, group: &str) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.orders]\ntopics = [\"{}\"]\ngroup = \"{group}\"\nwriters = {}\ntarget = {{ {} }}\n\n\
             [sinks.orders.table]\ntable = \"orders\"\n{}",
            self.kafka.bootstrap(),
            self.name,
            asked.writers,
            target.section(),
            asked.mode.keys(),
        )
    }
}

/// Keeps each change of the stored offsets, with its time.
async fn watch<T: Target>(
    target: &mut T,
    group: &str,
    seen: &mut Vec<(f64, i64)>,
) -> std::convert::Infallible {
    loop {
        let stored = target.stored(group).await;
        if stored > seen.last().map_or(0, |(_, stored)| *stored) {
            seen.push((cost::now(), stored));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A record's value, as the loaders' files have it.
#[derive(Deserialize)]
struct Order<'o> {
    order_id: &'o str,
    customer_id: i64,
    #[serde(borrow)]
    amount: &'o RawValue,
    status: &'o str,
    #[serde(borrow)]
    payload: &'o RawValue,
    created_at: &'o str,
}

/// The n-th order as a line of comma-separated values; `time` puts the time into the database's form.
fn csv(n: u64, time: impl Fn(&str) -> String) -> String {
    let json = data::order(n);
    let order: Order<'_> = serde_json::from_str(&json).expect("an order");
    let payload = order.payload.get().replace('"', "\"\"");
    format!(
        "{},{},{},{},\"{payload}\",{}\n",
        order.order_id,
        order.customer_id,
        order.amount,
        order.status,
        time(order.created_at)
    )
}
