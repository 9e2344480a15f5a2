//! The open transaction: begin, advance, guard, commit. A newtype over its connection, from which no commit can be reached.
//!
//! Invariant: the driver counts this transaction as its outermost, so that a transaction begun by a connector on top of it is a savepoint; and COMMIT is sent once,
//! only by [`commit`], only for a transaction that the guard has seen.

use std::sync::Arc;

use sqlx::{Database, Executor, PgConnection, Row, TransactionManager};
use uuid::Uuid;

use super::control::begin_failed;
use super::names::Names;
use super::places::{Places, in_order};
use super::session::{Session, SessionId};
use crate::error::{Class, CommitFailure, Failure};
use crate::store::Step;

type Manager = <sqlx::Postgres as Database>::TransactionManager;

/// An open transaction. Owns its connection: dropping it closes the connection, which the server takes for a rollback. It never goes back to a pool.
pub struct Tx {
    session: Session,
    savepoint: String,
}

impl Tx {
    /// The connection, for statements. A COMMIT or ROLLBACK sent through it is found by the guard and ends the sink.
    pub fn sql(&mut self) -> &mut PgConnection {
        &mut self.session.connection
    }

    /// The identity by which the server's backend can be ended.
    pub fn session_id(&self) -> SessionId {
        self.session.id
    }

    pub(super) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.session.names)
    }

    fn depth(&self) -> usize {
        Manager::get_transaction_depth(&self.session.connection)
    }
}

/// Begins in one trip: pins, and a savepoint whose name nobody can guess, by which the guard knows this transaction again. Not READ WRITE: a server that was
/// made read-only while we are connected (`default_transaction_read_only`) is obeyed, and left.
pub(super) async fn begin(mut session: Session, pins: &str) -> Result<Tx, Failure> {
    let savepoint = format!("oncesink_{}", Uuid::new_v4().simple());
    let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {pins}; SAVEPOINT {savepoint}");
    Manager::begin(&mut session.connection, Some(begin.into())).await.map_err(begin_failed)?;
    Ok(Tx { session, savepoint })
}

/// Moves all offsets in one statement, each where the row is mine and stands at the offset expected.
pub(super) async fn advance(tx: &mut Tx, group: &str, steps: &[Step]) -> Result<Vec<bool>, Failure> {
    let names = tx.names();
    let statement = format!(
        "UPDATE {} AS o
         SET last_offset = w.to_offset,
             leader_epoch = w.leader_epoch,
             record_timestamp = COALESCE(TIMESTAMPTZ 'epoch' + w.milliseconds * INTERVAL '1 millisecond', o.record_timestamp),
             updated_at = CURRENT_TIMESTAMP
         FROM UNNEST($2::text[], $3::integer[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::integer[], $9::bigint[])
              AS w (topic, partition_id, epoch, token, from_offset, to_offset, leader_epoch, milliseconds)
         WHERE o.consumer_group = $1
           AND o.topic = w.topic
           AND o.partition_id = w.partition_id
           AND o.owner_epoch = w.epoch
           AND o.owner_token = w.token
           AND o.last_offset = w.from_offset
         RETURNING o.topic, o.partition_id",
        names.offsets
    );
    let places = Places::of(steps.iter().map(|step| &step.place));
    let moved = sqlx::query(&statement)
        .bind(group)
        .bind(&places.topics)
        .bind(&places.partitions)
        .bind(steps.iter().map(|step| step.fence.epoch).collect::<Vec<_>>())
        .bind(steps.iter().map(|step| step.fence.token).collect::<Vec<_>>())
        .bind(steps.iter().map(|step| step.interval.from).collect::<Vec<_>>())
        .bind(steps.iter().map(|step| step.interval.to).collect::<Vec<_>>())
        .bind(steps.iter().map(|step| step.end.leader_epoch).collect::<Vec<_>>())
        .bind(steps.iter().map(|step| step.end.timestamp.and_then(storable)).collect::<Vec<_>>())
        .fetch_all(tx.sql())
        .await
        .map_err(|error| Failure::from(error).context("advance"))?;
    let mut matched = in_order(&moved, |row| Ok((row.try_get(0)?, row.try_get(1)?, ())))?;
    Ok(steps.iter().map(|step| matched.remove(&step.place).is_some()).collect())
}

/// A record's time within what `timestamptz` holds, from 4713 BC to 294276 AD; producers may write any number, and that must not stop an offset.
pub(super) fn storable(milliseconds: i64) -> Option<i64> {
    (-210_866_803_200_000..9_224_318_016_000).contains(&milliseconds).then_some(milliseconds)
}

/// Proves that this is still the transaction that [`begin`] opened and that no statement of it failed, and checks deferred constraints while their
/// error still has a class of its own.
pub(super) async fn guard(tx: &mut Tx) -> Result<(), Failure> {
    if tx.depth() != 1 {
        return Err(Failure::fatal("the connector left a transaction of its own open inside ours"));
    }
    let guard = format!("RELEASE SAVEPOINT {}; SET CONSTRAINTS ALL IMMEDIATE", tx.savepoint);
    match tx.sql().execute(&*guard).await {
        Ok(_) => Ok(()),
        Err(error) => Err(of_the_connector(error.into()).context("guard")),
    }
}

/// What a statement of ours finds that the connector did to the transaction.
pub(super) fn of_the_connector(mut failure: Failure) -> Failure {
    let broken = match failure.sql_state.as_deref() {
        Some("25P02") => Some("the connector swallowed an error of a statement and went on"),
        Some("25P01" | "3B001") => Some("the connector ended the transaction by itself (COMMIT or ROLLBACK)"),
        _ => None,
    };
    if let Some(broken) = broken {
        failure.class = Class::Fatal;
        failure.message = format!("{broken}: {}", failure.message);
    }
    failure
}

/// Sends COMMIT, once. Only the server's own verdicts count as rolled back; everything else is in doubt.
pub(super) async fn commit(mut tx: Tx) -> Result<Session, CommitFailure> {
    if tx.depth() != 1 {
        let failure = Failure::fatal("the connector left a transaction of its own open inside ours");
        return Err(CommitFailure::InDoubt(failure));
    }
    match Manager::commit(tx.sql()).await {
        Ok(()) => Ok(tx.session),
        Err(error) => {
            let failure = Failure::from(error).context("commit");
            let verdict = failure.sql_state.as_deref().is_some_and(is_rollback);
            Err(if verdict && failure.session_alive {
                CommitFailure::RolledBack(failure)
            } else {
                CommitFailure::InDoubt(failure)
            })
        }
    }
}

/// States by which the server says that it rolled back instead of committing.
fn is_rollback(state: &str) -> bool {
    state.starts_with("23") || matches!(state, "40001" | "40P01" | "P0001")
}

/// Rolls back. The session is given back only if it answers a question of ours with the right answer: a COPY that was dropped half-way leaves the
/// previous answer in the line.
pub(super) async fn rollback(mut tx: Tx) -> Option<Session> {
    if tx.depth() != 1 {
        return None;
    }
    Manager::rollback(tx.sql()).await.ok()?;
    let question = Uuid::new_v4();
    let row = tx.sql().fetch_one(&*format!("SELECT '{question}'")).await.ok()?;
    let answer: String = row.try_get(0).ok()?;
    (answer == question.to_string()).then_some(tx.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_verdicts_are_rollbacks() {
        let states = ["23505", "23503", "40001", "40P01", "P0001"];
        assert!(states.iter().all(|state| is_rollback(state)));
        let doubts = ["08006", "57P01", "57014", "40003", "25P02", "XX000", "53100", "P0002"];
        assert!(!doubts.iter().any(|state| is_rollback(state)));
    }

    #[test]
    fn times_beyond_the_columns_range_are_left_out() {
        assert_eq!(storable(0), Some(0));
        assert_eq!(storable(i64::MAX), None);
        assert_eq!(storable(i64::MIN), None);
        assert_eq!(storable(9_224_318_015_999), Some(9_224_318_015_999));
        assert_eq!(storable(9_224_318_016_000), None);
    }
}
