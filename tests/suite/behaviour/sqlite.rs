//! Cases on SQLite: a file of their own.

use std::path::PathBuf;

use oncesink::sqlite::{Sqlite as Store, SqliteConfig};
use oncesink::sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use oncesink::sqlx::{ConnectOptions, Executor, Row, SqliteConnection, TypeInfo, ValueRef};

use super::case::Database;
use super::world::World;

pub(crate) struct Sqlite {
    file: PathBuf,
    store: Store,
}

impl World for Sqlite {
    const DATABASE: Database = Database::Sqlite;
    type Store = Store;
    type Sink = oncesink_sqlite::Tables;

    async fn new(stem: &str, ddl: &[&str]) -> Self {
        let name = format!("{}.db", oncesink_test_support::unique(stem));
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let store =
            Store::new(SqliteConfig::new(format!("sqlite://{}", file.display())), "behaviour").unwrap();
        let world = Self { file, store };
        for sql in ddl {
            world.execute(sql).await;
        }
        world
    }

    fn store(&self) -> &Store {
        &self.store
    }

    async fn execute(&self, sql: &str) {
        self.connection().await.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    async fn rows(&self, query: &str) -> Vec<String> {
        let rows = self.connection().await.fetch_all(query).await;
        let rows = rows.unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.iter()
            .map(|row| (0..row.len()).map(|column| cell(row, column)).collect::<Vec<_>>().join("|"))
            .collect()
    }
}

impl Sqlite {
    async fn connection(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(&self.file).create_if_missing(true).connect().await.unwrap()
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", self.file.display()));
        }
    }
}

fn cell(row: &SqliteRow, column: usize) -> String {
    let value = row.try_get_raw(column).unwrap();
    if value.is_null() {
        return "null".to_owned();
    }
    match value.type_info().name() {
        "INTEGER" => row.get_unchecked::<i64, _>(column).to_string(),
        "REAL" => row.get_unchecked::<f64, _>(column).to_string(),
        "BLOB" => {
            let bytes: Vec<u8> = row.get_unchecked(column);
            format!("\\x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        _ => row.get_unchecked(column),
    }
}
