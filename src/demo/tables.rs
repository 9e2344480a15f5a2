//! The SQLite files as the demo looks at them: made, watched, counted. The sink's own way to its file is the store's, and not here.

use std::path::Path;
use std::time::Duration;

use oncesink::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use oncesink::sqlx::{self, ConnectOptions, Connection};
use tokio::runtime::Runtime;

use crate::exit::Failed;

/// Stands in the head of a file that a demo made; `once` in letters.
pub(super) const MARK: i64 = 0x6f6e_6365;

/// No key, on purpose: one would hide a duplicate.
const TABLE: &str =
    "CREATE TABLE orders (order_id TEXT, customer TEXT, amount DECIMAL(12, 2), placed_at TIMESTAMPTZ)";

/// Waits for others' checkpoints; far longer than one takes.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn failed(path: &Path, error: &sqlx::Error) -> Failed {
    Failed::preflight(format!("{}: {error}", path.display()))
}

pub(super) fn runtime() -> Result<Runtime, Failed> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::preflight(format!("cannot start threads: {error}")))
}

/// How a file is opened here.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(PATIENCE).disable_statement_logging()
}

/// Makes a file with its table.
pub(super) fn create(path: &Path) -> Result<(), Failed> {
    let made = runtime()?.block_on(async {
        let mut connection =
            options(path).create_if_missing(true).journal_mode(SqliteJournalMode::Wal).connect().await?;
        sqlx::raw_sql(&format!("PRAGMA application_id = {MARK}; {TABLE}")).execute(&mut connection).await?;
        connection.close().await
    });
    made.map_err(|error| failed(path, &error))
}

/// Whether a file that is there was made by a demo.
pub(super) fn is_marked(path: &Path) -> Result<bool, Failed> {
    let mark = runtime()?.block_on(async {
        let mut connection = options(path).read_only(true).connect().await?;
        let mark: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(mark)
    });
    // Another's file, perhaps none of SQLite's at all.
    Ok(mark.is_ok_and(|mark| mark == MARK))
}

/// The ids of all rows.
pub(super) fn ids(path: &Path) -> Result<Vec<String>, Failed> {
    let ids = runtime()?.block_on(async {
        let mut connection = options(path).read_only(true).connect().await?;
        let ids = sqlx::query_scalar("SELECT order_id FROM orders").fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(ids)
    });
    ids.map_err(|error| failed(path, &error))
}

/// A look at a file while its owner writes.
pub(super) struct Look {
    runtime: Runtime,
    reading: SqliteConnection,
    /// Without patience: a lock that is held is what is looked for.
    trying: SqliteConnection,
}

impl Look {
    pub(super) fn open(path: &Path) -> Result<Self, Failed> {
        let runtime = runtime()?;
        let (reading, trying) = (options(path), options(path).busy_timeout(Duration::ZERO));
        let connected = runtime.block_on(async { Ok((reading.connect().await?, trying.connect().await?)) });
        let (reading, trying) = connected.map_err(|error| failed(path, &error))?;
        Ok(Self { runtime, reading, trying })
    }

    /// Rows that are committed. Nothing is ever deleted, so the last row's number is their count.
    pub(super) fn rows(&mut self) -> Result<i64, Failed> {
        self.number("SELECT COALESCE(MAX(rowid), 0) FROM orders")
    }

    /// Rows beyond the first of each order.
    pub(super) fn doubled(&mut self) -> Result<i64, Failed> {
        self.number("SELECT COUNT(*) - COUNT(DISTINCT order_id) FROM orders")
    }

    fn number(&mut self, sql: &str) -> Result<i64, Failed> {
        let number = self.runtime.block_on(sqlx::query_scalar(sql).fetch_one(&mut self.reading));
        number.map_err(|error| Failed::preflight(format!("looking at the rows: {error}")))
    }

    /// Whether somebody holds the write lock, which is to say: stands inside a transaction that writes.
    pub(super) fn is_locked(&mut self) -> bool {
        self.runtime.block_on(async {
            match sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut self.trying).await {
                Ok(_) => {
                    let _ = sqlx::raw_sql("ROLLBACK").execute(&mut self.trying).await;
                    false
                }
                Err(error) => {
                    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("5"))
                }
            }
        })
    }
}
