//! What the store is told: where the database is, which table holds the offsets, how long anything may take.
//!
//! Must not: let a URL or a password reach a log line.

use std::fmt;
use std::time::Duration;

use crate::config::Secret;

/// The connection's keys of `[sinks.<name>.target]`. Secrets from files are read again at every connect, so that a rotated password needs no restart.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user@host:port/database?sslmode=...`.
    pub url: Secret,
    /// Instead of a password in the URL.
    pub password: Option<Secret>,
    /// `schema.table`, or a table in the first schema of the search path, as the catalog spells them; default `kafka_offsets`. The tables named
    /// `oncesink_...` stand in the same schema.
    pub offsets: Option<String>,
    /// Time limits.
    pub timeouts: Timeouts,
}

impl PostgresConfig {
    /// The database behind a URL, everything else by default.
    pub fn new(url: impl Into<Secret>) -> Self {
        Self { url: url.into(), password: None, offsets: None, timeouts: Timeouts::default() }
    }

    /// Names the table of the offsets, see [`offsets`](Self::offsets).
    #[must_use]
    pub fn with_offsets(mut self, offsets: impl Into<String>) -> Self {
        self.offsets = Some(offsets.into());
        self
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("offsets", &self.offsets)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Time limits. All but `connect` are kept by the server, so that they hold for a frozen client too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// One statement.
    pub statement: Duration,
    /// Waiting for a lock: below the statement's, so that a contended row is told from a slow server.
    pub lock: Duration,
    /// Connecting, TLS and the first question.
    pub connect: Duration,
    /// A transaction in which nothing is sent: what a frozen client leaves behind.
    pub idle_in_transaction: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            statement: Duration::from_secs(30),
            lock: Duration::from_secs(1),
            connect: Duration::from_secs(5),
            idle_in_transaction: Duration::from_secs(10),
        }
    }
}

impl Timeouts {
    /// The pins of every transaction, to stand behind its BEGIN. `SET LOCAL`, so that nothing leaks through a pooler.
    pub(super) fn pins(&self) -> String {
        self.pins_with_lock(self.lock)
    }

    /// The same with another patience for locks.
    pub(super) fn pins_with_lock(&self, lock: Duration) -> String {
        format!(
            "SET LOCAL lock_timeout = {}; \
             SET LOCAL statement_timeout = {}; \
             SET LOCAL idle_in_transaction_session_timeout = {}; \
             SET LOCAL synchronous_commit = on; \
             SET LOCAL timezone = 'UTC'; \
             SET LOCAL client_encoding = 'UTF8'; \
             SET LOCAL standard_conforming_strings = on",
            lock.as_millis(),
            self.statement.as_millis(),
            self.idle_in_transaction.as_millis(),
        )
    }
}
