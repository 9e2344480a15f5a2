//! The store for SQLite: offsets, claims and the transaction that rows share with them, in one file of one process.
//!
//! Invariant: whoever writes holds the file's write lock from his first statement on, so that a claim or a settle that gets it finds every earlier transaction
//! ended. Plain connections, never a pool: dropping a call in mid-statement closes its connection.

mod config;
pub use config::{SqliteConfig, check_url};

mod ffi;
mod names;

mod session;
pub use session::{Session, SessionId};

mod turn;

mod control;
mod dead_letters;
mod lock;
mod places;

mod register;

mod claim;
mod holder;

mod tx;
pub use tx::Tx;

mod settle;

mod look;

mod events;

mod verbs;

mod storage;
pub use storage::unfit;

mod migrate;

mod classify;
pub(in crate::store) use classify::answered;
use classify::is_busy;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use uuid::Uuid;

use self::control::Control;
use self::lock::ProcessLock;
use self::names::Names;
use self::session::Opening;
use self::turn::Queue;
use super::{Claim, EventRow, Fence, Identity, Row, Settled, Starts, Step, Store, Wanted, bookkeeping};
use crate::dead_letter::DeadLetter;
use crate::error::{CommitFailure, Failure};
use crate::record::TopicPartition;
use crate::sink::Statements;

/// The present time as it stands in columns: UTC, with milliseconds.
const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
/// A verb waits for a transaction under way for this long.
const VERB_PATIENCE: Duration = Duration::from_secs(10);
/// Another migration is waited for this long.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(15);
/// How often a holder of the write lock is named.
const NAME_AGAIN: Duration = Duration::from_secs(30);

/// Offsets of one group in one SQLite file.
pub struct Sqlite {
    path: PathBuf,
    patience: Duration,
    names: Arc<Names>,
    group: Arc<str>,
    who: Arc<str>,
    /// From the first claim on, or what comes before it, until the store is dropped.
    process: OnceLock<Arc<ProcessLock>>,
    queue: OnceLock<Queue>,
    /// A session for looks, which come every second. Taken out while in use, so that a dropped call drops it too.
    spare: Mutex<Option<Session>>,
    named: Mutex<Option<Instant>>,
}

impl Sqlite {
    /// The store of a group. Nothing is opened yet.
    ///
    /// # Errors
    /// `Fatal` for a URL, a table name or a group that cannot be.
    pub fn new(config: SqliteConfig, group: &str) -> Result<Self, Failure> {
        let names = Arc::new(Names::parse(config.offsets.as_deref())?);
        bookkeeping::check_group(group)?;
        Ok(Self {
            path: config.path()?,
            patience: config.lock,
            names,
            group: group.into(),
            who: format!("oncesink {group}").into(),
            process: OnceLock::new(),
            queue: OnceLock::new(),
            spare: Mutex::new(None),
            named: Mutex::new(None),
        })
    }

    /// Names who acts, for `oncesink_events`.
    #[must_use]
    pub fn acting_as(mut self, who: &str) -> Self {
        self.who = who.into();
        self
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn who(&self) -> &str {
        &self.who
    }

    /// One store is one group, and from here on this process is the one that claims in this file.
    fn enter(&self, group: &str) -> Result<(), Failure> {
        bookkeeping::same_group(&self.group, group)?;
        if self.process.get().is_none() {
            // A lock taken twice at the same time is one lock.
            let _ = self.process.set(lock::acquire(&self.path)?);
        }
        Ok(())
    }

    async fn open(&self, lock: Duration, patience: Duration, create: bool) -> Result<Session, Failure> {
        session::open(&Opening { path: &self.path, lock, patience, create }).await
    }

    /// A transaction of our own that writes, on a new session.
    async fn control(&self) -> Result<Control, Failure> {
        self.writing(self.patience, false).await
    }

    /// The same with more patience for the write lock, for what people order.
    async fn patient(&self) -> Result<Control, Failure> {
        self.writing(VERB_PATIENCE, false).await
    }

    /// The same, in a file that may not be there yet.
    async fn making(&self) -> Result<Control, Failure> {
        self.writing(MIGRATION_PATIENCE, true).await
    }

    async fn writing(&self, patience: Duration, create: bool) -> Result<Control, Failure> {
        let session = self.open(turn::ATTEMPT, patience, create).await?;
        let waiting = async {
            let turn = turn::wait(self.queue(), Some(patience)).await?;
            Control::writing(session, Arc::clone(&self.names), turn, patience).await
        };
        waiting.await.map_err(|failure| self.held(failure))
    }

    /// The queue at the write lock; asked for when the file is there.
    fn queue(&self) -> &Queue {
        self.queue.get_or_init(|| turn::queue(&self.path))
    }

    /// A look of our own: one snapshot, on the spare session if that still answers.
    async fn look(&self) -> Result<Control, Failure> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = spare
            && let Ok(control) = Control::reading(session, Arc::clone(&self.names)).await
        {
            return Ok(control);
        }
        let session = self.open(self.patience, self.patience, false).await?;
        Control::reading(session, Arc::clone(&self.names)).await
    }

    /// Keeps a session for the next look.
    fn keep(&self, session: Session) {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Says of a lock that was not to be had who has it.
    fn held(&self, mut failure: Failure) -> Failure {
        if is_busy(&failure) {
            failure.message = format!("{}: held by {}", failure.message, self.holder());
        }
        failure
    }

    fn holder(&self) -> String {
        holder::write_lock_holder(&self.path)
            .or_else(|| lock::holder(&self.path))
            .unwrap_or_else(|| "an unknown process".to_owned())
    }

    /// Says who holds the write lock and does not let go, now and then.
    fn name_holder(&self) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.is_some_and(|named| named.elapsed() < NAME_AGAIN) {
            return;
        }
        *named = Some(Instant::now());
        drop(named);
        tracing::warn!(
            "{}: {} holds the write lock and does not let go; it is waited for. End its transaction, or the process if it hangs",
            self.path.display(),
            self.holder()
        );
    }
}

#[async_trait]
impl Store for Sqlite {
    type Session = Session;
    type SessionId = SessionId;
    type Tx = Tx;

    async fn connect(&self) -> Result<Session, Failure> {
        self.open(turn::ATTEMPT, self.patience, false).await
    }

    async fn verify(&self) -> Result<String, Failure> {
        let found = self.preflight().await?;
        if found.problems.is_empty() {
            return Ok(found.offsets);
        }
        Err(Failure::fatal(found.problems.join("\n")))
    }

    async fn take_possession(&self) -> Result<(), Failure> {
        self.enter(&self.group)
    }

    fn session_id(session: &Session) -> SessionId {
        session.id()
    }

    fn tx_session_id(tx: &Tx) -> SessionId {
        tx.session_id()
    }

    async fn end_session(&self, id: SessionId) -> Result<bool, Failure> {
        Ok(id.end())
    }

    async fn recorded(&self, topics: &[Arc<str>]) -> Result<Vec<Option<i32>>, Failure> {
        register::recorded(self, topics).await
    }

    async fn register(&self, identity: &Identity, starts: &Starts) -> Result<(), Failure> {
        register::register(self, identity, starts).await
    }

    async fn claim(&self, identity: &Identity, wanted: &[Wanted]) -> Result<Vec<Claim>, Failure> {
        claim::claim(self, identity, wanted).await
    }

    async fn claim_waiting(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        end_frozen: bool,
    ) -> Result<Claim, Failure> {
        claim::claim_waiting(self, identity, wanted, end_frozen).await
    }

    async fn begin(&self, session: Session, _: Statements) -> Result<Tx, Failure> {
        let turn = turn::wait(self.queue(), None).await?;
        let begun = tx::begin(session, Arc::clone(&self.names), turn, self.patience).await;
        begun.map_err(|failure| self.held(failure))
    }

    async fn advance(&self, tx: &mut Tx, steps: &[Step]) -> Result<Vec<bool>, Failure> {
        tx::advance(tx, &self.group, steps).await
    }

    async fn dead_letters(&self, tx: &mut Tx, letters: &[DeadLetter<'_>]) -> Result<(), Failure> {
        dead_letters::keep(tx, &self.group, letters).await
    }

    async fn guard(&self, tx: &mut Tx) -> Result<(), Failure> {
        tx::guard(tx).await
    }

    async fn commit(&self, tx: Tx) -> Result<Session, CommitFailure> {
        tx::commit(tx).await
    }

    async fn rollback(&self, tx: Tx) -> Option<Session> {
        tx::rollback(tx).await
    }

    async fn locked(&self, steps: &[Step]) -> Result<Vec<TopicPartition>, Failure> {
        settle::locked(self, steps).await
    }

    async fn settle(&self, steps: &[Step], token: Uuid) -> Result<Vec<Settled>, Failure> {
        settle::settle(self, steps, token).await
    }

    async fn rows(&self, places: &[TopicPartition]) -> Result<Vec<Row>, Failure> {
        look::rows(self, places).await
    }

    async fn forward(
        &self,
        place: &TopicPartition,
        fence: Fence,
        from: i64,
        to: i64,
        reason: &str,
    ) -> Result<bool, Failure> {
        look::forward(self, place, fence, from, to, reason).await
    }

    async fn record(&self, event: &EventRow) -> Result<(), Failure> {
        look::record(self, event).await
    }

    async fn note_state(
        &self,
        place: &TopicPartition,
        fence: Fence,
        state: &'static str,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        look::note_state(self, place, fence, state, reason).await
    }
}
