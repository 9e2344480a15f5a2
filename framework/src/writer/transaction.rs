//! The one function that owns the transaction: begin, advance the offsets, write the rows, keep the dead letters, guard, commit.
//!
//! Invariants: the offsets are advanced first, so that a stale owner stops before it writes and a claim waits for the outcome; COMMIT is sent once and never
//! again; whatever ends otherwise is rolled back, or its connection is closed. A dropped statement ends its session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::config::OnBadRecord;
use crate::error::{BadRecord, Class, CommitFailure, Failure, SinkError};
use crate::record::TopicPartition;
use crate::sink::Sink;
use crate::store::{Step, Store};
use crate::writer::gate::Gate;
use crate::written::{TopicBooks, Written};

/// How long a rollback may take before its connection is closed instead.
const ROLLBACK_MAX: Duration = Duration::from_secs(1);

/// How a transaction ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Rows and offsets are stored; what became of the records, by topic.
    Committed(Vec<TopicBooks>),
    /// Rolled back: some rows were not mine, or not at the expected offset.
    NotMine(Vec<bool>),
    /// Rolled back at the advance: these rows are locked by others.
    Contended(Vec<TopicPartition>),
    /// Rolled back: these records are bad.
    Bad(Vec<BadRecord>),
    /// Rolled back, or refused by the server; the class says what follows.
    RolledBack(Failure),
    /// Given up before COMMIT was sent.
    Withdrawn,
    /// COMMIT was sent; its outcome is unknown. The books are those of the case that it was done.
    InDoubt(Failure, Option<Box<[TopicBooks]>>),
}

/// Seconds by phase, for the histogram.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub(crate) advance: Duration,
    pub(crate) write: Duration,
    pub(crate) guard: Duration,
    pub(crate) commit: Duration,
}

impl Took {
    /// Label and time of every phase.
    pub(crate) fn phases(&self) -> [(&'static str, Duration); 4] {
        [("advance", self.advance), ("write", self.write), ("guard", self.guard), ("commit", self.commit)]
    }
}

/// What one transaction needs.
pub(crate) struct Work<'a, S: Store, K> {
    pub(crate) store: &'a Arc<S>,
    pub(crate) sink: &'a K,
    pub(crate) batch: &'a Batch,
    pub(crate) steps: &'a [Step],
    pub(crate) gate: &'a Gate,
    /// What becomes of the bad records of the batch.
    pub(crate) policy: OnBadRecord,
    /// Our own timer for every call, above the server's statement timeout.
    pub(crate) call_max: Duration,
}

/// Why the body ended before COMMIT.
enum Stop {
    /// A call failed; the transaction can be rolled back.
    Outcome(Outcome),
    /// A call was dropped in its middle: the session is unusable.
    Dropped(Outcome),
    /// Failed after the connector had its turn: rolled back, and the session is closed, since a half-read answer may be left on it; unless data was refused in
    /// an orderly way, and the session answers a question after its rollback.
    Write(Outcome),
}

/// Runs one transaction. Gives the session back when it can be used again.
pub(crate) async fn transaction<S: Store, K: Sink<S>>(
    work: &Work<'_, S, K>,
    session: S::Session,
    took: &mut Took,
) -> (Outcome, Option<S::Session>) {
    let store = work.store;
    let id = S::session_id(&session);
    let mut tx = match work.call("BEGIN", store.begin(session, K::STATEMENTS)).await {
        Ok(Ok(tx)) => tx,
        Ok(Err(failure)) => return (Outcome::RolledBack(failure.context("BEGIN")), None),
        Err(outcome) => return (outcome, abandon(store, id)),
    };
    let books = match work.body(&mut tx, took).await {
        Ok(books) => books,
        Err(Stop::Outcome(outcome)) => {
            let session = roll_back(store, tx).await;
            // A server that may not write any more is left: the next connection looks for one that may.
            let left =
                matches!(&outcome, Outcome::RolledBack(failure) if failure.class == Class::WrongServer);
            return (outcome, session.filter(|_| !left));
        }
        Err(Stop::Write(outcome)) => {
            let orderly = is_orderly(&outcome);
            let session = roll_back(store, tx).await;
            return (outcome, session.filter(|_| orderly));
        }
        Err(Stop::Dropped(outcome)) => {
            drop(tx);
            return (outcome, abandon(store, id));
        }
    };
    if !work.gate.pass() {
        return (Outcome::Withdrawn, roll_back(store, tx).await);
    }
    let began = Instant::now();
    let answer = tokio::time::timeout(work.call_max, store.commit(tx)).await;
    took.commit = began.elapsed();
    match answer {
        Ok(Ok(session)) => (Outcome::Committed(books), Some(session)),
        Ok(Err(CommitFailure::RolledBack(failure))) => (Outcome::RolledBack(failure.context("COMMIT")), None),
        Ok(Err(CommitFailure::InDoubt(failure))) => {
            (Outcome::InDoubt(failure.context("COMMIT"), Some(books.into())), None)
        }
        Err(_) => (Outcome::InDoubt(no_answer("COMMIT", work.call_max), Some(books.into())), None),
    }
}

impl<S: Store, K: Sink<S>> Work<'_, S, K> {
    async fn body(&self, tx: &mut S::Tx, took: &mut Took) -> Result<Vec<TopicBooks>, Stop> {
        let began = Instant::now();
        let matched =
            self.call("advance", self.store.advance(tx, self.steps)).await.map_err(Stop::Dropped)?;
        took.advance = began.elapsed();
        let matched = match matched {
            Ok(matched) => matched,
            Err(failure) if failure.class == Class::SickObject => return Err(self.contended(failure).await),
            // No record is at fault when the offsets table refuses (a trigger or a check that somebody put on it).
            Err(failure) if failure.class == Class::BadRecord => {
                let failure = Failure { class: Class::SickObject, ..failure };
                return Err(Stop::Outcome(Outcome::RolledBack(failure.context("advance"))));
            }
            Err(failure) => return Err(Stop::Outcome(Outcome::RolledBack(failure.context("advance")))),
        };
        if matched.len() != self.steps.len() || matched.contains(&false) {
            return Err(Stop::Outcome(Outcome::NotMine(matched)));
        }

        let began = Instant::now();
        let written =
            match self.call("write", self.sink.write(tx, self.batch)).await.map_err(Stop::Dropped)? {
                Ok(written) => written,
                Err(SinkError::Bad(records)) => return Err(Stop::Write(Outcome::Bad(records))),
                Err(SinkError::Failed(failure)) => {
                    return Err(Stop::Write(Outcome::RolledBack(failure.context("write"))));
                }
            };
        self.keep_dead_letters(tx).await?;
        took.write = began.elapsed();

        let began = Instant::now();
        let guarded = self.call("guard", self.store.guard(tx)).await.map_err(Stop::Dropped)?;
        took.guard = began.elapsed();
        guarded.map_err(|failure| Stop::Write(Outcome::RolledBack(failure.context("guard"))))?;
        self.balance(&written)
    }

    /// The bad records of the batch, on the same transaction. It must take all of them; what it does not take is no record's fault.
    async fn keep_dead_letters(&self, tx: &mut S::Tx) -> Result<(), Stop> {
        let letters = self.batch.dead_letters();
        if self.policy != OnBadRecord::DeadLetter || letters.is_empty() {
            return Ok(());
        }
        let kept = self.store.dead_letters(tx, &letters);
        let kept = self.call("dead letters", kept).await.map_err(Stop::Dropped)?;
        kept.map_err(|failure| {
            let class = match failure.class {
                Class::BadRecord | Class::StaleCatalog => Class::SickObject,
                class => class,
            };
            Stop::Write(Outcome::RolledBack(Failure { class, ..failure.context("dead letters") }))
        })
    }

    /// The books: every record read is accounted for.
    fn balance(&self, written: &Written) -> Result<Vec<TopicBooks>, Stop> {
        written.books(self.batch, self.policy).map_err(|difference| {
            let message = format!(
                "the books do not balance: the connector {:?} {difference}; its write must count each record once",
                K::KIND
            );
            Stop::Write(Outcome::RolledBack(Failure::fatal(message)))
        })
    }

    /// A lock timeout at the advance: which rows are locked is asked outside, so that the others can go on.
    async fn contended(&self, failure: Failure) -> Stop {
        match self.call("looking for locks", self.store.locked(self.steps)).await {
            Ok(Ok(locked)) => Stop::Outcome(Outcome::Contended(locked)),
            Err(Outcome::Withdrawn) => Stop::Outcome(Outcome::Withdrawn),
            _ => Stop::Outcome(Outcome::RolledBack(Failure {
                class: Class::Transient,
                ..failure.context("advance")
            })),
        }
    }

    /// Races a call against our timer and a withdrawal. Either drops the call, and with it the session.
    async fn call<T>(&self, name: &'static str, call: impl Future<Output = T>) -> Result<T, Outcome> {
        tokio::select! {
            biased;
            answer = tokio::time::timeout(self.call_max, call) => {
                answer.map_err(|_| Outcome::RolledBack(no_answer(name, self.call_max)))
            }
            () = self.gate.withdrawn() => Err(Outcome::Withdrawn),
        }
    }
}

/// Whether data was refused by a server, or by a connector, that was heard out: while a bad record is looked for, that comes again and again.
fn is_orderly(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Bad(_) => true,
        Outcome::RolledBack(failure) => failure.class == Class::BadRecord && failure.session_alive,
        _ => false,
    }
}

fn no_answer(name: &str, after: Duration) -> Failure {
    Failure::new(Class::Timeout, format!("{name}: no answer within {} s", after.as_secs()))
}

async fn roll_back<S: Store>(store: &Arc<S>, tx: S::Tx) -> Option<S::Session> {
    tokio::time::timeout(ROLLBACK_MAX, store.rollback(tx)).await.unwrap_or(None)
}

/// A session dropped in mid-statement may go on in the server and hold its locks: it is ended from another one, beside our way.
fn abandon<S: Store>(store: &Arc<S>, id: S::SessionId) -> Option<S::Session> {
    let store = Arc::clone(store);
    tokio::spawn(async move {
        let ended = tokio::time::timeout(Duration::from_secs(10), store.end_session(id)).await;
        if !matches!(ended, Ok(Ok(_))) {
            tracing::debug!("an abandoned session could not be ended; its own timeouts will");
        }
    });
    None
}

#[cfg(test)]
mod tests;
