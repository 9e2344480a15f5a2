//! A schema for one test: its name, a URL whose sessions live in it, and the test's own queries.

use sqlx::postgres::{PgPoolOptions, PgRow};
use sqlx::{Executor, PgConnection, PgPool, Postgres as Database, Row, Type};

use super::{Postgres, guard, url};

/// A schema of its own for a test. It stays behind at the end, to be looked at.
///
/// The pool belongs to the runtime of the test that made it.
#[derive(Debug, Clone)]
pub struct Schema {
    name: String,
    url: String,
    pool: PgPool,
}

impl Schema {
    /// Makes the schema.
    pub async fn new(postgres: &Postgres, stem: &str) -> Self {
        let name = crate::unique(stem);
        let mut connection = postgres.connection().await;
        connection.execute(&*format!("CREATE SCHEMA {name}")).await.expect("making a schema");
        let url = url::with_search_path(postgres.url(), &name);
        let pool = PgPoolOptions::new().max_connections(4).connect_lazy(&url).expect("a valid URL");
        Self { name, url, pool }
    }

    /// The schema's name: lower case, needs no quotes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A URL whose sessions have this schema as their search path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connections in this schema.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A connection in this schema that is not pooled.
    pub async fn connection(&self) -> PgConnection {
        Postgres::connect(&self.url).connection().await
    }

    /// Runs statements, several if separated by semicolons.
    pub async fn execute(&self, sql: &str) {
        self.pool.execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }

    /// The one value of a query with one row and one column.
    pub async fn value<T>(&self, sql: &str) -> T
    where
        T: for<'r> sqlx::Decode<'r, Database> + Type<Database> + Send + Unpin,
    {
        let row = self.pool.fetch_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        row.try_get(0).unwrap_or_else(|e| panic!("{sql}: {e}"))
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
    pub async fn rows(&self, sql: &str) -> Vec<PgRow> {
        self.pool.fetch_all(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// `count(*)` of a table.
    pub async fn count(&self, table: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {table}")).await
    }

    /// Runs statements past every trigger, as a restore from a backup would.
    pub async fn execute_unguarded(&self, sql: &str) {
        self.execute(&format!("BEGIN; SET LOCAL session_replication_role = replica; {sql}; COMMIT")).await;
    }

    /// Makes every stored offset that goes back without an event row that says so an error. The tables
    /// `kafka_offsets` and `oncesink_events` must exist.
    pub async fn guard_offsets(&self) {
        self.execute(guard::TRIGGER).await;
    }

    /// How often that error came, whatever became of it. The offsets must be guarded.
    pub async fn silent_rewinds(&self) -> i64 {
        self.value(guard::REFUSED).await
    }
}
