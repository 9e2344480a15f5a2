//! Postgres for tests: a server of our own, and schemas in it or in a foreign one.

mod guard;
mod schema;
mod secured;
mod server;
mod url;

pub use schema::Schema;
pub use secured::SecuredPostgres;
pub use server::PostgresServer;
pub use url::with_address;

use sqlx::{Connection, PgConnection};

/// A reachable server, ours or a foreign one.
#[derive(Debug, Clone)]
pub struct Postgres {
    url: String,
}

impl Postgres {
    /// The server behind a `postgres://` URL. Nothing is contacted yet.
    pub fn connect(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    /// The URL of the server's database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `host:port` of the URL.
    pub fn address(&self) -> &str {
        url::address(&self.url)
    }

    /// A new connection, not pooled.
    pub async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("connecting to Postgres")
    }

    /// A schema that no other test has; `stem` is for people.
    pub async fn schema(&self, stem: &str) -> Schema {
        Schema::new(self, stem).await
    }

    /// The server's version, such as `15.18`.
    pub async fn version(&self) -> String {
        let mut connection = self.connection().await;
        let full: String = sqlx::query_scalar("SHOW server_version")
            .fetch_one(&mut connection)
            .await
            .expect("the server's version");
        full.split_whitespace().next().unwrap_or_default().to_owned()
    }
}
