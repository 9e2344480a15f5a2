//! SQLite, and the shell's `.import`: one file of comma-separated values, one transaction.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use oncesink::sqlx::{self, SqliteConnection};
use oncesink_test_support::sqlite::File;

use super::{Mode, Target};

/// A file of its own for every run.
pub(crate) struct Sqlite {
    file: File,
    looking: Option<SqliteConnection>,
    csv: PathBuf,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self { file: File::new("bench"), looking: None, csv: PathBuf::new() }
    }
}

impl Target for Sqlite {
    async fn fresh(&mut self, mode: Mode) {
        self.looking = None;
        self.file = File::new("bench");
        let key = if mode == Mode::Upsert { " PRIMARY KEY" } else { "" };
        // As the sink sets it, so that both sides write ahead.
        self.file
            .execute(&format!(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE orders (order_id TEXT NOT NULL{key}, customer_id BIGINT, amount DECIMAL(12,2), status TEXT, payload JSON, created_at TIMESTAMPTZ)"
            ))
            .await;
    }

    fn section(&self) -> String {
        format!("kind = \"sqlite\", url = \"{}\"", self.file.url())
    }

    fn lay_out(&mut self, folder: &Path, rows: u64) {
        self.csv = folder.join("orders.csv");
        let text: String = (0..rows).map(|n| super::csv(n, ToOwned::to_owned)).collect();
        std::fs::write(&self.csv, text).expect("writing the rows");
    }

    async fn load(&mut self) -> f64 {
        let (path, csv) = (self.file.path(), self.csv.clone());
        let begun = Instant::now();
        let output = tokio::task::spawn_blocking(move || {
            Command::new("sqlite3")
                .arg("-bail")
                .arg(path)
                .arg(format!(".import --csv \"{}\" orders", csv.display()))
                .stdin(Stdio::null())
                .output()
                .expect("running sqlite3")
        });
        let output = output.await.expect("sqlite3");
        assert!(output.status.success(), "sqlite3: {}", String::from_utf8_lossy(&output.stderr));
        begun.elapsed().as_secs_f64()
    }

    async fn stored(&mut self, group: &str) -> i64 {
        if self.looking.is_none() {
            self.looking = Some(self.file.connection().await);
        }
        let sql = "SELECT COALESCE(sum(last_offset), 0) FROM kafka_offsets WHERE consumer_group = ?1";
        let connection = self.looking.as_mut().expect("a connection");
        sqlx::query_scalar(sql).bind(group).fetch_one(connection).await.expect("the stored offsets")
    }

    async fn counted(&mut self) -> (i64, i64) {
        (
            self.file.value("SELECT count(DISTINCT order_id) FROM orders").await,
            self.file.count("orders").await,
        )
    }
}
