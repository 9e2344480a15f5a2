//! One side with its file: killed along its way, most often in a transaction that was seen from outside while the process was stopped.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oncesink_test_support::process::{Launch, Process};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions, Executor, Row};

use crate::books::{Books, Sequence};
use crate::contender::{Kind, ROWS, sibling};
use crate::damage::Damage;
use crate::orders::{Mode, Orders, TOPIC};

/// Three in four of them hit a transaction.
const KILLS: usize = 22;
/// The instance's name in its group, by which it has its partitions back at once.
const INSTANCE: &str = "a";
const SESSION_MS: &str = "6000";
const PAUSE: Duration = Duration::from_millis(3);
/// Far more than the way between two kills needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// One side.
pub(crate) struct Side {
    kind: Kind,
    orders: Orders,
    mode: Mode,
    brokers: String,
    /// Keeps the folder; the file in it is the database.
    folder: Launch,
    path: PathBuf,
}

impl Side {
    pub(crate) async fn new(brokers: &str, orders: Orders, mode: Mode, kind: Kind) -> Self {
        let folder = Launch::new(sibling("million"));
        let path = folder.path("million.db");
        let side = Self { kind, orders, mode, brokers: brokers.to_owned(), folder, path };
        let mut file =
            side.options().create_if_missing(true).journal_mode(SqliteJournalMode::Wal).connect().await;
        file.as_mut().expect("a file").execute(mode.file_tables()).await.expect("the tables");
        if kind == Kind::Oncesink {
            let (code, lines) = side.launch("migrate").run(PATIENCE).await;
            assert_eq!(code, 0, "migrate: {lines:#?}");
        }
        side
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new().filename(&self.path).busy_timeout(PATIENCE).disable_statement_logging()
    }

    /// The command with a verb, or the control.
    fn launch(&self, verb: &str) -> Launch {
        let path = self.path.to_str().expect("a path in UTF-8");
        if self.kind == Kind::Naive {
            let words =
                ["file-control", "--mode", self.mode.name(), "--brokers", &self.brokers, "--path", path];
            return Launch::new(sibling("million")).args(words).args([
                "--session",
                SESSION_MS,
                "--instance",
                INSTANCE,
            ]);
        }
        let file = format!(
            "[kafka]\nbrokers = \"{}\"\nsession.timeout.ms = {SESSION_MS}\ngroup.instance.id = \"{INSTANCE}\"\n\n\
             [http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.orders]\ntopics = [\"{TOPIC}\"]\ngroup = \"million\"\n\
             batch = {{ rows = {ROWS} }}\ntarget = {{ kind = \"sqlite\", url = \"sqlite://{path}\" }}\n{}",
            self.brokers,
            self.mode.keys()
        );
        let mut words = vec!["--config", "oncesink.toml", verb];
        words.extend((verb == "run").then_some("--until-end"));
        Launch::new(sibling("oncesink")).file("oncesink.toml", &file).args(words)
    }

    /// Kills it all along its way and lets it run to its end.
    pub(crate) async fn inflict(&self) -> Damage {
        let mut damage = Damage::default();
        let mut look = Look::open(self).await;
        // The last fifth is for after the damage.
        let step = self.orders.total_good() * 4 / 5 / KILLS as i64;
        for kill in 0..KILLS {
            let process = self.launch("run").start();
            // Uneven, or a kill might always come when just as much was written as is fetched at a time.
            let target = look.rows().await + step * (80 + kill as i64 * 37 % 40) / 100;
            look.reach(target, &process).await;
            let in_transaction = kill % 4 > 0;
            if in_transaction {
                look.hold(&process).await;
            }
            process.kill9();
            damage.killed(in_transaction);
        }
        let process = self.launch("run").start();
        let code = process.wait_exit(PATIENCE).await;
        assert_eq!(code, 0, "{}: {}", self.kind, process.text());
        damage
    }

    /// The account of the table.
    pub(crate) async fn books(&self) -> Books {
        let mut file = self.options().connect().await.expect("the file");
        let sequences = "SELECT partition_id, SUM(times) AS rows, COUNT(*) AS different, MIN(seq) AS first, MAX(seq) AS last,
                                CAST(ROUND(SUM(amount) * 100) AS INTEGER) AS cents
                         FROM written GROUP BY partition_id ORDER BY partition_id";
        let found = sqlx::query(sequences).fetch_all(&mut file).await.expect("the sequences");
        let sequences = found.iter().map(|row| {
            let [rows, different, first, last, cents] =
                ["rows", "different", "first", "last", "cents"].map(|name| row.get::<i64, _>(name));
            Sequence { partition: row.get("partition_id"), rows, different, first, last, cents }
        });
        Books::of(self.orders, &sequences.collect::<Vec<_>>())
    }

    /// Copies the file to where it stays, and tells where.
    pub(crate) fn keep(&self) -> String {
        let kept = std::env::temp_dir().join(format!("oncesink-million-{}.db", std::process::id()));
        std::fs::copy(&self.path, &kept).expect("keeping the file");
        let _ = &self.folder;
        kept.display().to_string()
    }
}

/// Looks at a file while a process writes it.
struct Look {
    reading: SqliteConnection,
    /// Without patience: a lock that is held is what is looked for.
    trying: SqliteConnection,
}

impl Look {
    async fn open(side: &Side) -> Self {
        let trying = side.options().busy_timeout(Duration::ZERO).connect().await.expect("the file");
        Self { reading: side.options().connect().await.expect("the file"), trying }
    }

    /// Nothing is ever deleted, so the last row's number is their count.
    async fn rows(&mut self) -> i64 {
        let rows = sqlx::query_scalar("SELECT COALESCE(MAX(rowid), 0) FROM orders");
        rows.fetch_one(&mut self.reading).await.expect("the rows")
    }

    async fn reach(&mut self, target: i64, process: &Process) {
        let begin = Instant::now();
        while self.rows().await < target {
            assert!(process.is_running(), "ended by itself: {}", process.text());
            assert!(begin.elapsed() < PATIENCE, "{target} rows were not reached: {}", process.text());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops the process (SIGSTOP) in the midst of a transaction, as the file's write lock shows while it is stopped.
    async fn hold(&mut self, process: &Process) {
        let begin = Instant::now();
        loop {
            process.freeze();
            until_stopped(process).await;
            if self.is_locked().await {
                return;
            }
            process.thaw();
            assert!(begin.elapsed() < PATIENCE, "no transaction was hit: {}", process.text());
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn is_locked(&mut self) -> bool {
        let begun = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut self.trying).await;
        match begun {
            Ok(_) => {
                sqlx::raw_sql("ROLLBACK").execute(&mut self.trying).await.expect("letting go");
                false
            }
            Err(error) => {
                let code = error.as_database_error().and_then(|error| error.code()).map(String::from);
                assert_eq!(code.as_deref(), Some("5"), "{error}");
                true
            }
        }
    }
}

/// A signal is sent at once and obeyed a little later, by each thread for itself.
async fn until_stopped(process: &Process) {
    let tasks = Path::new("/proc").join(process.pid().to_string()).join("task");
    let stopped = |task: &Path| {
        // What the kernel tells of a thread that has ended meanwhile does not matter.
        let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    };
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let mut tasks = std::fs::read_dir(&tasks).expect("the process's threads").filter_map(Result::ok);
        if tasks.all(|task| stopped(&task.path())) {
            return;
        }
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    panic!("it was not stopped: {}", process.text());
}
