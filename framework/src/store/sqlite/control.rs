//! A transaction of our own: claims, settles, looks and verbs, which hold no rows of a sink.
//!
//! Invariant: what writes holds the file's write lock from its first statement on, so that what it reads is what it changes. Dropping one closes the
//! connection, which is a rollback.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Database, SqliteConnection, TransactionManager};

use super::names::Names;
use super::session::Session;
use super::turn::{self, Turn};
use crate::error::Failure;

type Manager = <sqlx::Sqlite as Database>::TransactionManager;

/// An open transaction of our own.
pub(super) struct Control {
    session: Session,
    names: Arc<Names>,
    /// Of what writes.
    turn: Option<Turn>,
}

impl Control {
    /// Takes the write lock, waiting for it.
    pub(super) async fn writing(
        mut session: Session,
        names: Arc<Names>,
        turn: Turn,
        patience: Duration,
    ) -> Result<Self, Failure> {
        turn::begin(&mut session.connection, "BEGIN IMMEDIATE", patience).await?;
        Ok(Self { session, names, turn: Some(turn) })
    }

    /// One snapshot, which waits for nobody.
    pub(super) async fn reading(mut session: Session, names: Arc<Names>) -> Result<Self, Failure> {
        turn::begin(&mut session.connection, "BEGIN DEFERRED", Duration::ZERO).await?;
        Ok(Self { session, names, turn: None })
    }

    pub(super) fn sql(&mut self) -> &mut SqliteConnection {
        &mut self.session.connection
    }

    pub(super) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    /// Commits. Whoever calls this may call again from the start when it fails: everything done here can be done twice.
    pub(super) async fn commit(mut self) -> Result<Session, Failure> {
        self.session.gate().open();
        let done = Manager::commit(&mut self.session.connection).await;
        self.session.gate().shut();
        drop(self.turn);
        done?;
        Ok(self.session)
    }

    /// Rolls back.
    pub(super) async fn rollback(mut self) -> Result<Session, Failure> {
        Manager::rollback(&mut self.session.connection).await?;
        Ok(self.session)
    }
}
