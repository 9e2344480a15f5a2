//! What a connector author writes: rows into the open transaction.

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use crate::batch::{Batch, Encoded};
use crate::error::SinkError;
use crate::plan::{Outlook, Preview};
use crate::record::Record;
use crate::store::Store;
use crate::written::Written;

/// Whose statements run in a sink's transactions, beside the framework's own: how closely a store has to watch over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statements {
    /// Statements of a fixed, known form: none ends the transaction, none is run whose error is passed over. Said by the bundled sinks of tables.
    Known,
    /// Whatever an author wrote or calls: a procedure may COMMIT, a swallowed deadlock may have ended the transaction. A store that can refuse this beforehand
    /// does so, where a guard before COMMIT would find it only afterwards.
    Foreign,
}

/// Writes the rows of a batch into the transaction that also moves the stored offsets.
///
/// The contract, in the order in which things happen on a writer's connection:
/// 1. [`open`](Sink::open) on every new connection, and again when the catalog seems to have changed: each writer has its own instance.
/// 2. [`encode`](Sink::encode) before the transaction begins, on the writer's own thread while the previous batch commits.
/// 3. [`write`](Sink::write) between the advance of the offsets and the guard before COMMIT.
///
/// `encode` and `write` may be called again with the same batch, or with a part of it, in a fresh transaction: they are functions of the batch and the
/// transaction, and keep no state elsewhere. A sink never commits, rolls back, retries, sleeps, spawns or emits metrics; offset, COMMIT, retry and
/// settling are the framework's.
///
/// # Errors
/// By class, see [`crate::Class`]. A record that is known to be bad is reported with its coordinates ([`SinkError::Bad`]); for a data error of the
/// server whose record is unknown, a failure of class `BadRecord` makes the framework search by prefix.
#[async_trait]
pub trait Sink<S: Store>: Sized + Send + Sync + 'static {
    /// The `kind` in `[sinks.<name>.target]`.
    const KIND: &'static str;

    /// Whose statements [`open`](Sink::open) and [`write`](Sink::write) run. Only a sink whose statements are all of a known form, and whose every error it
    /// returns, may say [`Statements::Known`].
    const STATEMENTS: Statements = Statements::Foreign;

    /// Keys of `[sinks.<name>.target]` beside the connection's; unknown ones are refused with the nearest known. A sink that also takes
    /// `[sinks.<name>.table]` and `[sinks.<name>.tables."topic"]` names these keys `table` and `tables`.
    type Config: DeserializeOwned + Send;

    /// Looks at the target within `tx`, which is rolled back afterwards: a missing table stops the start, by name. `topics` are those that the sink reads.
    ///
    /// # Errors
    /// `Fatal` for what a person must mend (missing table, column, grant), transient classes for what waiting mends.
    async fn open(config: Self::Config, topics: &[String], tx: &mut S::Tx) -> Result<Self, SinkError>;

    /// The target that a topic's rows go to, as people write it; part of the sink's identity beside its name.
    fn target(&self, topic: &str) -> String;

    /// Whether the target of a topic holds rows before anything of it was written here, so that a first claim would write them twice. Not asked when the
    /// file says `into_rows = "accept"`. The default suits sinks that write the same record twice without harm.
    ///
    /// # Errors
    /// The database's, by class: `Fatal` for a missing grant.
    async fn holds_rows(&self, tx: &mut S::Tx, topic: &str) -> Result<bool, SinkError> {
        let _ = (tx, topic);
        Ok(false)
    }

    /// What a record would become, for people who look before they run; none for one that is skipped. Nothing is written.
    ///
    /// # Errors
    /// Why the record is bad; `Fatal` where a sink cannot say.
    fn preview(&self, record: &Record<'_>) -> Result<Option<Preview>, SinkError> {
        let _ = record;
        let message = format!("the connector {:?} cannot show what a record becomes", Self::KIND);
        Err(crate::Failure::fatal(message).into())
    }

    /// Which of these top-level fields of values the mapping of a topic knows, and how its records are written, for people who look before they run; none where
    /// a sink cannot say.
    fn outlook(&self, topic: &str, fields: &[&str]) -> Option<Outlook> {
        let _ = (topic, fields);
        None
    }

    /// Turns the batch into whatever `write` needs, without the database.
    ///
    /// # Errors
    /// Bad records, all that the batch holds.
    fn encode(&self, batch: &Batch) -> Result<Encoded, SinkError> {
        let _ = batch;
        Ok(Encoded::default())
    }

    /// Writes the rows. The offsets have been advanced in the same transaction.
    ///
    /// # Errors
    /// See the trait. After any error the transaction is rolled back.
    async fn write(&self, tx: &mut S::Tx, batch: &Batch) -> Result<Written, SinkError>;
}
