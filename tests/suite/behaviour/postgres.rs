//! Cases on Postgres: a schema of their own.

use oncesink::postgres::{Postgres as Store, PostgresConfig};
use oncesink::sqlx::{Executor, Row, ValueRef};
use oncesink_test_support::Servers;
use oncesink_test_support::postgres::Schema;

use super::case::Database;
use super::world::World;

pub(crate) struct Postgres {
    pub(crate) schema: Schema,
    store: Store,
}

impl World for Postgres {
    const DATABASE: Database = Database::Postgres;
    type Store = Store;
    type Sink = oncesink_postgres::Tables;

    async fn new(stem: &str, ddl: &[&str]) -> Self {
        let schema = Servers::shared().await.postgres().schema(stem).await;
        for sql in ddl {
            schema.execute(&sql.replace("{schema}", schema.name())).await;
        }
        let store = Store::new(PostgresConfig::new(schema.url()), "behaviour").unwrap();
        Self { schema, store }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn named(&self, text: &str) -> String {
        text.replace("{schema}", self.schema.name())
    }

    async fn execute(&self, sql: &str) {
        self.schema.execute(sql).await;
    }

    async fn rows(&self, query: &str) -> Vec<String> {
        let query = self.named(query);
        let mut connection = self.schema.connection().await;
        connection.execute("SET TIME ZONE 'UTC'").await.unwrap();
        // Without parameters the server answers in text.
        let rows = connection.fetch_all(&*query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let cell = |row: &oncesink::sqlx::postgres::PgRow, column| {
            let value = row.try_get_raw(column).unwrap();
            if value.is_null() { "null".to_owned() } else { value.as_str().unwrap().to_owned() }
        };
        rows.iter()
            .map(|row| (0..row.len()).map(|column| cell(row, column)).collect::<Vec<_>>().join("|"))
            .collect()
    }
}
