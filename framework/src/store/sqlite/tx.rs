//! The open transaction: begin, advance, guard, commit. A newtype over its connection, from which no commit can be reached.
//!
//! Invariant: the file's write lock is held from BEGIN on, so that a claim or a settle that gets the lock finds this transaction ended; and COMMIT passes once,
//! only from [`commit`], only for a transaction that the guard has seen.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, Database, Executor, SqliteConnection, TransactionManager};
use uuid::Uuid;

use super::ffi::Quiet;
use super::names::Names;
use super::places::{in_order, list};
use super::session::{Session, SessionId};
use super::turn::{self, Turn};
use super::{NOW, is_busy};
use crate::error::{Class, CommitFailure, DataError, Failure, Reason};
use crate::store::Step;

type Manager = <sqlx::Sqlite as Database>::TransactionManager;

/// An open transaction. Owns its connection: dropping it closes the connection, which is a rollback.
pub struct Tx {
    session: Session,
    pub(super) names: Arc<Names>,
    savepoint: String,
    _turn: Turn,
}

impl Tx {
    /// The connection, for statements. A COMMIT sent through it is refused by SQLite and rolls everything back, no other file can be attached, and the guard
    /// finds a transaction that was ended.
    pub fn sql(&mut self) -> &mut SqliteConnection {
        &mut self.session.connection
    }

    /// The identity by which its statement can be ended.
    pub fn session_id(&self) -> SessionId {
        self.session.id()
    }

    /// How many variables one statement may bind: a matter of how SQLite was built.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn variable_limit(&mut self) -> Result<usize, Failure> {
        Ok(Quiet::of(self.sql()).await?.variable_limit())
    }

    /// Whether no transaction of the connector's own is open inside this one. The driver rolls back a dropped one later, on its thread, which is waited for.
    async fn is_outermost(&mut self) -> bool {
        let connection = &mut self.session.connection;
        connection.ping().await.is_ok() && Manager::get_transaction_depth(connection) == 1
    }
}

/// Begins with the write lock in hand, and a savepoint whose name nobody can guess, by which the guard knows this transaction again.
pub(super) async fn begin(
    mut session: Session,
    names: Arc<Names>,
    turn: Turn,
    patience: Duration,
) -> Result<Tx, Failure> {
    let savepoint = format!("oncesink_{}", Uuid::new_v4().simple());
    session.gate().shut();
    session.stays_in_place()?;
    let begin = format!("BEGIN IMMEDIATE; SAVEPOINT {savepoint}");
    turn::begin(&mut session.connection, &begin, patience).await?;
    Ok(Tx { session, names, savepoint, _turn: turn })
}

/// Moves all offsets in one statement, each where the row is mine and stands at the offset expected.
pub(super) async fn advance(tx: &mut Tx, group: &str, steps: &[Step]) -> Result<Vec<bool>, Failure> {
    let statement = format!(
        "UPDATE {} AS o
         SET last_offset = w.to_offset,
             leader_epoch = w.leader_epoch,
             record_timestamp = COALESCE(strftime('%Y-%m-%dT%H:%M:%fZ', w.milliseconds / 1000.0, 'unixepoch'), o.record_timestamp),
             updated_at = {NOW}
         FROM (SELECT value ->> 0 AS topic, value ->> 1 AS partition_id, value ->> 2 AS epoch, value ->> 3 AS token,
                      value ->> 4 AS from_offset, value ->> 5 AS to_offset, value ->> 6 AS leader_epoch, value ->> 7 AS milliseconds
               FROM json_each(?2)) AS w
         WHERE o.consumer_group = ?1
           AND o.topic = w.topic
           AND o.partition_id = w.partition_id
           AND o.owner_epoch = w.epoch
           AND o.owner_token = w.token
           AND o.last_offset = w.from_offset
         RETURNING topic, partition_id",
        tx.names.offsets
    );
    let wanted = list(steps.iter().map(|step| {
        json!([
            &*step.place.topic,
            step.place.partition,
            step.fence.epoch,
            step.fence.token.to_string(),
            step.interval.from,
            step.interval.to,
            step.end.leader_epoch,
            step.end.timestamp,
        ])
    }));
    let moved =
        sqlx::query(&statement).bind(group).bind(wanted).fetch_all(tx.sql()).await.map_err(|error| {
            let mut failure = Failure::from(error).context("advance");
            // The lock is ours since BEGIN; whatever still holds us up holds all of them.
            if is_busy(&failure) {
                failure.class = Class::SickObject;
            }
            failure
        })?;
    let mut matched = in_order(&moved, |_| Ok(()))?;
    Ok(steps.iter().map(|step| matched.remove(&step.place).is_some()).collect())
}

/// Proves that this is still the transaction that [`begin`] opened, in the file that is still there, and that no deferred foreign key is owed.
pub(super) async fn guard(tx: &mut Tx) -> Result<(), Failure> {
    tx.session.stays_in_place()?;
    if !tx.is_outermost().await {
        return Err(left_open());
    }
    let release = format!("RELEASE SAVEPOINT {}", tx.savepoint);
    let released = tx.sql().execute(&*release).await;
    let mut quiet = Quiet::of(tx.sql()).await?;
    if released.is_err() || !quiet.in_transaction() {
        return Err(Failure::fatal(
            "guard: the connector ended the transaction by itself (COMMIT or ROLLBACK), or swallowed an error by which SQLite rolled it back",
        ));
    }
    if quiet.owes_foreign_keys()? {
        let mut failure =
            Failure::new(Class::BadRecord, "guard: foreign key without its row, deferred until COMMIT");
        failure.sql_state = Some("SQLITE_CONSTRAINT_FOREIGNKEY".to_owned());
        failure.data = Some(Box::new(DataError { reason: Reason::ForeignKey, table: None, column: None }));
        failure.session_alive = true;
        return Err(failure);
    }
    Ok(())
}

/// Sends COMMIT, once. An error that leaves the transaction open is a verdict, once it is rolled back; everything else is in doubt.
pub(super) async fn commit(mut tx: Tx) -> Result<Session, CommitFailure> {
    if !tx.is_outermost().await {
        return Err(CommitFailure::InDoubt(left_open()));
    }
    tx.session.gate().open();
    let answer = Manager::commit(tx.sql()).await;
    tx.session.gate().shut();
    match answer {
        Ok(()) => Ok(tx.session),
        Err(error) => {
            let failure = Failure::from(error).context("commit");
            Err(if undone(&mut tx).await {
                CommitFailure::RolledBack(failure)
            } else {
                CommitFailure::InDoubt(failure)
            })
        }
    }
}

/// Rolls back a transaction whose COMMIT failed. Whether it was still open, and so cannot have been committed.
async fn undone(tx: &mut Tx) -> bool {
    let open = match Quiet::of(tx.sql()).await {
        Ok(mut quiet) => quiet.in_transaction(),
        Err(_) => return false,
    };
    open && Manager::rollback(tx.sql()).await.is_ok()
}

/// Rolls back. The session is given back only if the transaction was still the one that we opened.
pub(super) async fn rollback(mut tx: Tx) -> Option<Session> {
    if !tx.is_outermost().await || !Quiet::of(tx.sql()).await.ok()?.in_transaction() {
        return None;
    }
    Manager::rollback(tx.sql()).await.ok()?;
    Some(tx.session)
}

fn left_open() -> Failure {
    Failure::fatal("the connector left a transaction of its own open inside ours")
}

#[cfg(test)]
mod tests {
    use oncesink_test_support::sqlite::File;

    use super::*;
    use crate::store::sqlite::session::{Opening, open};

    #[tokio::test]
    async fn a_commit_answered_busy_is_still_open_and_its_rollback_is_a_verdict() {
        let file = File::new("commit_busy");
        file.execute("CREATE TABLE rows (n bigint)").await;
        let path = file.path();
        let patience = Duration::from_millis(100);
        let opening = Opening { path: &path, lock: patience, patience, create: false };
        let mut session = open(&opening).await.unwrap();
        // In the mode that every session sets, a reader is never in the way of a COMMIT; with a rollback journal it is.
        session.gate().open();
        session.connection.execute("PRAGMA journal_mode = DELETE").await.unwrap();
        let names = Arc::new(Names::parse(None).unwrap());
        let turn = turn::wait(&turn::queue(&path), None).await.unwrap();
        let mut tx = begin(session, names, turn, patience).await.unwrap();
        tx.sql().execute("INSERT INTO rows VALUES (1)").await.unwrap();
        let mut reader = file.connection().await;
        reader.execute("BEGIN; SELECT * FROM rows").await.unwrap();

        let failure = match commit(tx).await {
            Err(CommitFailure::RolledBack(failure)) => failure,
            other => panic!("no verdict: {:?}", other.err()),
        };
        assert_eq!((failure.class, failure.sql_state.as_deref()), (Class::Transient, Some("SQLITE_BUSY")));
        reader.execute("COMMIT").await.unwrap();
        assert_eq!(file.count("rows").await, 0);
    }
}
