//! What a case needs of a database.

use oncesink::Sink;
use oncesink::plan::Config;
use oncesink::store::Store;

use super::case::Database;

/// One database with a case's tables.
pub(crate) trait World: Sized {
    const DATABASE: Database;
    type Store: Store;
    type Sink: Sink<Self::Store, Config = Config>;

    /// A new one in which these statements were run.
    async fn new(stem: &str, ddl: &[&str]) -> Self;

    fn store(&self) -> &Self::Store;

    /// Puts the schema in its place.
    fn named(&self, text: &str) -> String {
        text.to_owned()
    }

    /// Runs statements.
    async fn execute(&self, sql: &str);

    /// Rows as text: columns joined by `|`, null as `null`.
    async fn rows(&self, query: &str) -> Vec<String>;
}
