//! A SQLite file for one test, and the test's own queries to it, each on a connection of its own.
//!
//! Must not: open the file by other means than SQLite while a store of this process has it open; closing such a descriptor drops SQLite's locks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Executor, Row, Sqlite as Database, SqliteConnection, Type};

use crate::workdir::Workdir;

/// A stored offset that goes back without an event row that says so is an error. SQLite does not tell which rows are of the same transaction: the last event of
/// the partition must name the offset. What is refused is also counted, by a file of its own that no rollback undoes: none here, so the error must be seen.
const GUARD: &str = "
CREATE TRIGGER refuse_silent_rewind BEFORE UPDATE ON kafka_offsets
WHEN NEW.last_offset < OLD.last_offset
 AND NOT EXISTS (
    SELECT 1 FROM oncesink_events AS e
    WHERE e.consumer_group = NEW.consumer_group AND e.topic = NEW.topic AND e.partition_id = NEW.partition_id
      AND e.new_offset = NEW.last_offset
      AND e.id = (SELECT max(id) FROM oncesink_events AS m
                  WHERE m.consumer_group = NEW.consumer_group AND m.topic = NEW.topic AND m.partition_id = NEW.partition_id))
BEGIN
    SELECT RAISE(ABORT, 'silent rewind');
END";

/// A file in a folder of its own; it goes with the last clone.
#[derive(Debug, Clone)]
pub struct File {
    folder: Arc<Workdir>,
}

impl File {
    /// A folder in which the file can be made.
    pub fn new(stem: &str) -> Self {
        Self { folder: Arc::new(Workdir::new(stem)) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the file is, or will be.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("rows.db")
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("sqlite://{}", self.path().display())
    }

    /// A connection, which makes the file if it is not there.
    pub async fn connection(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(20))
            .connect()
            .await
            .expect("opening the file")
    }

    /// Runs statements, several if separated by semicolons.
    pub async fn execute(&self, sql: &str) {
        let mut connection = self.connection().await;
        connection.execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        close(connection).await;
    }

    /// The one value of a query with one row and one column.
    pub async fn value<T>(&self, sql: &str) -> T
    where
        T: for<'r> sqlx::Decode<'r, Database> + Type<Database> + Send + Unpin,
    {
        let mut values = self.column(sql).await;
        assert_eq!(values.len(), 1, "{sql}");
        values.remove(0)
    }

    /// The values of the first column.
    pub async fn column<T>(&self, sql: &str) -> Vec<T>
    where
        T: for<'r> sqlx::Decode<'r, Database> + Type<Database> + Send + Unpin,
    {
        self.rows(sql)
            .await
            .iter()
            .map(|row| row.try_get(0).unwrap_or_else(|e| panic!("{sql}: {e}")))
            .collect()
    }

    /// All rows of a query.
    pub async fn rows(&self, sql: &str) -> Vec<SqliteRow> {
        let mut connection = self.connection().await;
        let rows = connection.fetch_all(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        close(connection).await;
        rows
    }

    /// `count(*)` of a table.
    pub async fn count(&self, table: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {table}")).await
    }

    /// Makes every stored offset that goes back without an event row that says so an error. The tables `kafka_offsets` and `oncesink_events` must exist.
    pub async fn guard_offsets(&self) {
        self.execute(GUARD).await;
    }
}

async fn close(connection: SqliteConnection) {
    sqlx::Connection::close(connection).await.expect("closing the file");
}
