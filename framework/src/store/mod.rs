//! Where offsets live: claims, and the transaction that rows and offsets share.
//!
//! Invariant: the stored offset moves only in [`Store::advance`] of the transaction that holds the rows of exactly the offsets passed over, and only
//! when the row is *mine* (its epoch and token are those that my last claim or settle wrote) and still stands at the offset expected.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::batch::SliceEnd;
use crate::dead_letter::DeadLetter;
use crate::error::{CommitFailure, Failure};
use crate::position::{Interval, StartPolicy};
use crate::record::TopicPartition;
use crate::sink::Statements;

mod bookkeeping;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod driver;
mod judge;
pub mod operate;

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

/// Who owns a row: written by a claim or a settle, compared by every advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Raised by every claim, settle and verb.
    pub epoch: i64,
    /// Random per claim: epochs can recur after a failover, tokens cannot.
    pub token: Uuid,
}

/// Whose rows these are: written once, compared under the row lock before every claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Kafka group and `kafka_offsets.consumer_group`, at most 255 characters.
    pub group: Arc<str>,
    /// The sink's name.
    pub sink: Arc<str>,
    /// The cluster's id as the brokers tell it.
    pub cluster_id: Arc<str>,
    /// For people: host and process id.
    pub owner: Arc<str>,
}

/// A topic as the brokers know it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicIdentity {
    /// Name, at most 249 characters.
    pub name: Arc<str>,
    /// Kafka's topic id in its base64 form: changes when a topic is deleted and created again, and never recurs. Empty when the brokers tell none, as before
    /// Kafka 2.8: stored as NULL, and later filled by the first claim that knows it. Where an id is stored already, claims wait until it can be compared.
    pub id: Arc<str>,
    /// The sink and the resolved target, for instance `orders: public.orders`; another sink in the same group differs here.
    pub target: Arc<str>,
}

/// A partition to be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The partition.
    pub place: TopicPartition,
    /// Its topic's identity now.
    pub topic: TopicIdentity,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The row is mine now.
    Claimed(Claimed),
    /// Another transaction holds the row; try again, alone.
    Busy,
    /// Identity differs: nothing was touched.
    Refused(Refusal),
    /// No row although the topic's recorded count covers the partition: a position that cannot be.
    Missing,
}

/// A row after its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The fence that this claim wrote.
    pub fence: Fence,
    /// Stored offset: next to read.
    pub offset: i64,
    /// Leader epoch that belongs to the stored offset.
    pub leader_epoch: Option<i32>,
    /// The fence found under the lock, before it was raised: ours, when nobody else has been here.
    pub previous: Fence,
    /// Whose row it was before this claim, for people.
    pub owner: Option<String>,
    /// Set when a person ordered a pause.
    pub paused: bool,
}

/// Why a claim was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What differs: `cluster`, `topic id` or `sink`.
    pub what: &'static str,
    /// The value in the row.
    pub stored: String,
    /// The value here; empty when nothing is told here, and so nothing could be compared.
    pub here: String,
    /// The fence of the row, which was not touched; none when there is no row.
    pub fence: Option<Fence>,
}

impl Refusal {
    /// Whether nothing differs as far as is known: what is stored is not told here now. That may pass, as when brokers are upgraded one by one.
    pub fn is_unknown(&self) -> bool {
        self.here.is_empty()
    }

    /// Compares a stored part of an identity with what it is here. What was never stored, as in a row taken over from the old recipe, is filled by the claim; what
    /// is stored must be met, and that nothing is told here does not meet it.
    pub fn unless_same(what: &'static str, stored: Option<&str>, here: &str) -> Option<Self> {
        let stored = stored.filter(|stored| *stored != here)?;
        Some(Self { what, stored: stored.to_owned(), here: here.to_owned(), fence: None })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, stored, here, .. } = self;
        if self.is_unknown() {
            return write!(
                f,
                "{what} unknown: the stored offset belongs to {stored:?}, and the brokers tell none now; should they never do so again: oncesink reset, partition by \
                 partition, to the offset that oncesink status shows"
            );
        }
        write!(f, "{what} differs: the stored offset belongs to {stored:?}, here it is {here:?}")?;
        if *what == "topic id" {
            f.write_str(" (the topic was deleted and created again)")?;
        }
        Ok(())
    }
}

/// One partition's step in a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The partition.
    pub place: TopicPartition,
    /// The fence that makes the row mine.
    pub fence: Fence,
    /// Expected offset and the one left behind.
    pub interval: Interval,
    /// Stored beside the offset.
    pub end: SliceEnd,
}

/// The verdict of a settle on one step, read after the row was shut for the old session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settled {
    /// Still mine; the offset that stands there, and the fence from now on.
    Mine {
        /// The stored offset.
        offset: i64,
        /// The fence that the settle wrote.
        fence: Fence,
    },
    /// Another owner, or an operator, raised the epoch.
    Fenced,
}

/// A row as the words-from-outside look sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The partition.
    pub place: TopicPartition,
    /// Its fence.
    pub fence: Fence,
    /// Its stored offset.
    pub offset: i64,
}

/// The offsets at which the partitions of a topic begin when they have no row yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starts {
    /// The topic.
    pub topic: TopicIdentity,
    /// The policy that `first` was resolved by.
    pub policy: StartPolicy,
    /// By partition number: for the first claim of the topic, resolved by the policy.
    pub first: Vec<i64>,
    /// By partition number: the log start, for partitions beyond the recorded count.
    pub beginning: Vec<i64>,
}

/// Where offsets live. One implementation per database; `Tx` is the transaction that rows and offsets share, so that an author of a sink cannot forget the offset.
///
/// Every call is raced by a timer of the framework: a dropped future means that its session or transaction is dropped with it, and dropping one **must** close
/// the connection, never return it to a pool.
///
/// # Errors
/// A [`Failure`] whose class tells what the framework does. `session_alive` says whether the session can be used again.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// A connection between transactions.
    type Session: Send + Sync + 'static;
    /// What identifies a session on the server after its connection was dropped.
    type SessionId: Clone + Send + Sync + fmt::Debug + 'static;
    /// An open transaction; owns its connection.
    type Tx: Send + Sync + 'static;

    /// A new session on a writable server, with a connect timeout of its own.
    async fn connect(&self) -> Result<Self::Session, Failure>;

    /// Looks at the store's own tables before a start: they exist in the version needed, keep their rows through a crash, and may be used. Answers the name
    /// of the offsets table for people.
    ///
    /// # Errors
    /// `Fatal`, naming every object that a person must mend and what helps.
    async fn verify(&self) -> Result<String, Failure>;

    /// Makes this process the one that may claim, where a database takes only one: asked once, before a sink joins its group.
    ///
    /// # Errors
    /// `Fatal`, naming the process that has it.
    async fn take_possession(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Identifies a session on the server.
    fn session_id(session: &Self::Session) -> Self::SessionId;

    /// Identifies the session of a transaction on the server.
    fn tx_session_id(tx: &Self::Tx) -> Self::SessionId;

    /// Ends a session on the server whose connection was dropped in mid-statement: the server may not notice before the statement ends, and keeps its
    /// locks. Only if it is still ours; answers whether it was there. Called in the background.
    async fn end_session(&self, id: Self::SessionId) -> Result<bool, Failure>;

    /// The recorded partition count of each topic; none for a topic that was never claimed in this group.
    async fn recorded(&self, topics: &[Arc<str>]) -> Result<Vec<Option<i32>>, Failure>;

    /// Under the topic's row in `oncesink_topics`: at the first claim a row for every partition at `first`; for partitions beyond the recorded count rows
    /// at `beginning`, all at once with the new count. Rows that exist are never touched. Idempotent. A topic that does not exist yet is registered with no
    /// partitions, so that all its partitions begin at their beginning later.
    async fn register(&self, identity: &Identity, starts: &Starts) -> Result<(), Failure>;

    /// Claims rows, in sorted order: locks those that are free (skipping locked ones, reported [`Claim::Busy`]), compares the identity under the lock, raises
    /// epoch and token, commits durably. One answer per wanted partition, in order.
    async fn claim(&self, identity: &Identity, wanted: &[Wanted]) -> Result<Vec<Claim>, Failure>;

    /// Claims one row, waiting for its lock (up to the lock timeout, then [`Claim::Busy`]). With `end_frozen`, a session of our own group that blocks it is
    /// ended; foreign sessions never are.
    async fn claim_waiting(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        end_frozen: bool,
    ) -> Result<Claim, Failure>;

    /// Begins a transaction with the session's pins and the guard's savepoint, in one trip; `statements` says whose will run in it.
    async fn begin(&self, session: Self::Session, statements: Statements) -> Result<Self::Tx, Failure>;

    /// Moves all offsets in one statement, where mine and at the expected offset; answers which steps matched. Steps are sorted.
    async fn advance(&self, tx: &mut Self::Tx, steps: &[Step]) -> Result<Vec<bool>, Failure>;

    /// Keeps bad records within the transaction that passes over them: an upsert on group, topic, partition and offset, so that one that comes again (after a
    /// reset) raises `attempts` and `last_seen` of its row, takes what is wrong with it now, and is new again. In the order of the batch; never empty.
    ///
    /// # Errors
    /// `SickObject`, naming the table, when it takes fewer than all of them or none: no bad record is passed over that is not kept.
    async fn dead_letters(&self, tx: &mut Self::Tx, letters: &[DeadLetter<'_>]) -> Result<(), Failure>;

    /// Fails when the transaction is not the one that [`begin`](Store::begin) opened or is aborted: an error swallowed by the connector, or a COMMIT of its own
    /// (`Fatal`). Checks deferred constraints.
    async fn guard(&self, tx: &mut Self::Tx) -> Result<(), Failure>;

    /// Sends COMMIT once. Never resent.
    async fn commit(&self, tx: Self::Tx) -> Result<Self::Session, CommitFailure>;

    /// Rolls back and gives the session back when it is still usable.
    async fn rollback(&self, tx: Self::Tx) -> Option<Self::Session>;

    /// Which of these rows another transaction holds locked now.
    async fn locked(&self, steps: &[Step]) -> Result<Vec<TopicPartition>, Failure>;

    /// Settles a transaction in doubt on a new session: a conditional write that raises epoch and token where mine, then a read. Waits for the old backend and
    /// shuts it out for good. `token` is the new token of all rows; calling again with the same token after a failure is safe. One answer per step, in order.
    async fn settle(&self, steps: &[Step], token: Uuid) -> Result<Vec<Settled>, Failure>;

    /// The present rows of these partitions, without a lock; partitions without a row are left out.
    async fn rows(&self, places: &[TopicPartition]) -> Result<Vec<Row>, Failure>;

    /// Moves an expired offset forward, where mine and still at `from`, with an event row in the same transaction; answers whether it did.
    async fn forward(
        &self,
        place: &TopicPartition,
        fence: Fence,
        from: i64,
        to: i64,
        reason: &str,
    ) -> Result<bool, Failure>;

    /// Records an event: `rewound`, `stopped`, `reset` and their like, with the offsets before and after.
    async fn record(&self, event: &EventRow) -> Result<(), Failure>;

    /// Writes down for people that a partition stopped or runs, where mine. No decision is ever read from it.
    async fn note_state(
        &self,
        place: &TopicPartition,
        fence: Fence,
        state: &'static str,
        reason: Option<&str>,
    ) -> Result<(), Failure>;
}

/// A line for `oncesink_events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// The partition.
    pub place: TopicPartition,
    /// `rewound`, `stopped`, `skipped`, `reset`, `resumed`.
    pub kind: &'static str,
    /// Offset before.
    pub old_offset: Option<i64>,
    /// Offset after.
    pub new_offset: Option<i64>,
    /// For people.
    pub reason: String,
}
