//! The store for Postgres: offsets, claims and the transaction that rows share with them.
//!
//! Invariant: plain connections, never a pool. A session lives in one hand at a time, so that dropping a call in mid-statement closes its connection.

mod config;
pub use config::{PostgresConfig, Timeouts};

mod names;
mod url;
pub use url::check_url;

mod encryption;
mod session;
pub use session::{Session, SessionId};

mod control;
mod places;

mod register;

mod claim;
mod frozen;

mod tx;
pub use tx::Tx;

mod dead_letters;

mod settle;

mod look;

mod events;

mod admin;

mod reset;

mod status;

mod storage;
pub use storage::{Storage, storage_of};

mod check;

mod migrate;

mod adopt;

mod classify;
pub(in crate::store) use classify::answered;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use self::control::Control;
use self::names::{Names, Wanted as Table};
use super::{Claim, EventRow, Fence, Identity, Row, Settled, Starts, Step, Store, Wanted, bookkeeping};
use crate::dead_letter::DeadLetter;
use crate::error::{CommitFailure, Failure};
use crate::record::TopicPartition;
use crate::sink::Statements;

/// Offsets of one group in one Postgres database.
pub struct Postgres {
    config: PostgresConfig,
    timeouts: Timeouts,
    table: Table,
    names: OnceLock<Arc<Names>>,
    group: Arc<str>,
    who: Arc<str>,
    /// A session for looks, which come every second. Taken out while in use, so that a dropped call drops it too.
    spare: Mutex<Option<Session>>,
    sessions_ended: AtomicU64,
}

impl Postgres {
    /// The store of a group. Nothing is contacted yet.
    ///
    /// # Errors
    /// `Fatal` for a URL, a table name or a group that cannot be.
    pub fn new(config: PostgresConfig, group: &str) -> Result<Self, Failure> {
        let table = Table::parse(config.offsets.as_deref())?;
        bookkeeping::check_group(group)?;
        // A flaw is found here; the options themselves are made anew for every connection.
        url::options(&config, group)?;
        Ok(Self {
            timeouts: config.timeouts,
            config,
            table,
            names: OnceLock::new(),
            group: group.into(),
            who: names::application_name(group).into(),
            spare: Mutex::new(None),
            sessions_ended: AtomicU64::new(0),
        })
    }

    /// Names who acts, for `oncesink_events`.
    #[must_use]
    pub fn acting_as(mut self, who: &str) -> Self {
        self.who = who.into();
        self
    }

    /// Frozen sessions of this group that this store has ended.
    pub fn sessions_ended(&self) -> u64 {
        self.sessions_ended.load(Ordering::Relaxed)
    }

    /// `schema.table` of the offsets, for people; connects when no schema is named and none is known yet.
    ///
    /// # Errors
    /// As [`Store::connect`].
    pub async fn offsets_table(&self) -> Result<String, Failure> {
        Ok(self.resolved().await?.display())
    }

    /// Our tables, which need a connection only when no schema is named.
    async fn resolved(&self) -> Result<Arc<Names>, Failure> {
        if let Some(names) = self.names.get() {
            return Ok(Arc::clone(names));
        }
        if let Some(schema) = &self.table.schema {
            return Ok(Arc::new(Names::new(schema, &self.table.table)));
        }
        let session = self.session().await?;
        let names = Arc::clone(&session.names);
        session.close().await;
        Ok(names)
    }

    fn count_ended(&self) {
        self.sessions_ended.fetch_add(1, Ordering::Relaxed);
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn who(&self) -> &str {
        &self.who
    }

    /// One store is one group: its sessions bear the group's name.
    fn same_group(&self, group: &str) -> Result<(), Failure> {
        bookkeeping::same_group(&self.group, group)
    }

    /// A new session. The names are resolved by the first one and stay.
    async fn session(&self) -> Result<Session, Failure> {
        let options = url::options(&self.config, &self.group)?;
        let mut session = session::connect(&options, &self.timeouts, &self.table, self.names.get()).await?;
        session.names = Arc::clone(self.names.get_or_init(|| Arc::clone(&session.names)));
        Ok(session)
    }

    /// A transaction of our own on a new session.
    async fn control(&self) -> Result<Control, Failure> {
        Control::begin(self.session().await?, &self.timeouts.pins()).await
    }

    /// The same with another patience for locks, for what people order.
    async fn patient(&self, lock: Duration) -> Result<Control, Failure> {
        Control::begin(self.session().await?, &self.timeouts.pins_with_lock(lock)).await
    }

    /// A transaction of our own on the spare session, if that still answers.
    async fn light(&self) -> Result<Control, Failure> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = spare
            && let Ok(control) = Control::begin(session, &self.timeouts.pins()).await
        {
            return Ok(control);
        }
        self.control().await
    }

    /// Keeps a session for the next look.
    fn keep(&self, session: Session) {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }
}

#[async_trait]
impl Store for Postgres {
    type Session = Session;
    type SessionId = SessionId;
    type Tx = Tx;

    async fn connect(&self) -> Result<Session, Failure> {
        self.session().await
    }

    async fn verify(&self) -> Result<String, Failure> {
        let found = self.preflight().await?;
        if found.problems.is_empty() {
            return Ok(found.offsets);
        }
        Err(Failure::fatal(found.problems.join("\n")))
    }

    fn session_id(session: &Session) -> SessionId {
        session.id()
    }

    fn tx_session_id(tx: &Tx) -> SessionId {
        tx.session_id()
    }

    async fn end_session(&self, id: SessionId) -> Result<bool, Failure> {
        frozen::end_session(self, id).await
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
        tx::begin(session, &self.timeouts.pins()).await
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
