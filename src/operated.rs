//! What the command asks of a store beside what the runtime asks: tables made, looked at, and moved by a person's word.

use async_trait::async_trait;
use oncesink::config::SinkSection;
use oncesink::postgres::{Postgres, PostgresConfig};
use oncesink::sqlite::{Sqlite, SqliteConfig};
use oncesink::store::Store;
use oncesink::store::operate::{Meaning, Moved, Preflight, Reset, StatusRow, VerbError};
use oncesink::{Failure, TopicPartition};

/// A store that people operate from the command line.
///
/// # Errors
/// A [`Failure`] when the database fails or refuses; [`VerbError::Refused`] when things are not as the person expects, then nothing was changed.
#[async_trait]
pub trait Operated: Store + Sized {
    /// Schemes of its URLs, the usual one first.
    const SCHEMES: &'static [&'static str];

    /// A URL as people write it.
    const EXAMPLE: &'static str;

    /// Whether one connection writes at a time, so that more writers would only wait for each other.
    const ONE_WRITER: bool = false;

    /// Looks at a URL as the driver would.
    ///
    /// # Errors
    /// What is wrong with it, without quoting it.
    fn check_url(url: &str) -> Result<(), String>;

    /// The store of a sink's group; nothing is contacted yet. `group` stands in for the sink's own when a table is adopted, `who` acts.
    fn of(sink: &SinkSection, group: &str, who: &str) -> Result<Self, Failure>;

    /// Looks at our tables.
    async fn preflight(&self) -> Result<Preflight, Failure>;

    /// Creates or upgrades our tables; a line for each thing done.
    async fn migrate(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure>;

    /// The same as text.
    async fn migration_text(&self) -> Result<String, Failure>;

    /// The rows of a group.
    async fn status(&self, group: &str) -> Result<Vec<StatusRow>, Failure>;

    /// Leaves out one record.
    async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError>;

    /// Ends a stop or a pause.
    async fn resume(&self, place: &TopicPartition, reason: Option<&str>) -> Result<Moved, VerbError>;

    /// Moves stored offsets and takes over the identity.
    async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError>;
}

#[async_trait]
impl Operated for Postgres {
    const SCHEMES: &'static [&'static str] = &["postgres", "postgresql"];
    const EXAMPLE: &'static str = "postgres://app@localhost/shop";

    fn check_url(url: &str) -> Result<(), String> {
        oncesink::postgres::check_url(url)
    }

    fn of(sink: &SinkSection, group: &str, who: &str) -> Result<Self, Failure> {
        let mut config = PostgresConfig::new(sink.target.url.clone()).with_offsets(&sink.target.offsets);
        config.password.clone_from(&sink.target.password);
        config.timeouts.statement = sink.timeout;
        Ok(Self::new(config, group)?.acting_as(who))
    }

    async fn preflight(&self) -> Result<Preflight, Failure> {
        Self::preflight(self).await
    }

    async fn migrate(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure> {
        self.apply(adopt).await
    }

    async fn migration_text(&self) -> Result<String, Failure> {
        self.print().await
    }

    async fn status(&self, group: &str) -> Result<Vec<StatusRow>, Failure> {
        Self::status(self, Some(group)).await
    }

    async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError> {
        Self::skip(self, place, expect, reason).await
    }

    async fn resume(&self, place: &TopicPartition, reason: Option<&str>) -> Result<Moved, VerbError> {
        Self::resume(self, place, reason).await
    }

    async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError> {
        Self::reset(self, reset).await
    }
}

#[async_trait]
impl Operated for Sqlite {
    const SCHEMES: &'static [&'static str] = &["sqlite"];
    const EXAMPLE: &'static str = "sqlite:shop.db";
    const ONE_WRITER: bool = true;

    fn check_url(url: &str) -> Result<(), String> {
        oncesink::sqlite::check_url(url)
    }

    fn of(sink: &SinkSection, group: &str, who: &str) -> Result<Self, Failure> {
        if sink.target.password.is_some() {
            return Err(Failure::fatal("a SQLite file takes no password: leave the key out"));
        }
        let url = sink.target.url.current().map_err(Failure::fatal)?;
        let config = SqliteConfig::new(url).with_offsets(&sink.target.offsets);
        Ok(Self::new(config, group)?.acting_as(who))
    }

    async fn preflight(&self) -> Result<Preflight, Failure> {
        Self::preflight(self).await
    }

    async fn migrate(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure> {
        self.apply(adopt).await
    }

    async fn migration_text(&self) -> Result<String, Failure> {
        Ok(self.print())
    }

    async fn status(&self, group: &str) -> Result<Vec<StatusRow>, Failure> {
        Self::status(self, Some(group)).await
    }

    async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError> {
        Self::skip(self, place, expect, reason).await
    }

    async fn resume(&self, place: &TopicPartition, reason: Option<&str>) -> Result<Moved, VerbError> {
        Self::resume(self, place, reason).await
    }

    async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError> {
        Self::reset(self, reset).await
    }
}
