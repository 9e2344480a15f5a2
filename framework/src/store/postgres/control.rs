//! A transaction of our own: claims, settles, looks and verbs, which hold no rows of a sink.
//!
//! Invariant: every statement runs inside an explicit transaction with the pins. Dropping one closes the connection, which the server takes for a rollback.

use std::sync::Arc;

use sqlx::{Executor, PgConnection};

use super::names::Names;
use super::session::{Session, SessionId};
use crate::error::{Class, Failure};

/// An open transaction of our own.
pub(super) struct Control {
    session: Session,
}

impl Control {
    /// Begins in one trip, pins included.
    pub(super) async fn begin(mut session: Session, pins: &str) -> Result<Self, Failure> {
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {pins}");
        session.connection.execute(&*begin).await.map_err(begin_failed)?;
        Ok(Self { session })
    }

    pub(super) fn sql(&mut self) -> &mut PgConnection {
        &mut self.session.connection
    }

    pub(super) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.session.names)
    }

    pub(super) fn id(&self) -> SessionId {
        self.session.id
    }

    pub(super) fn version(&self) -> &str {
        &self.session.version
    }

    /// Commits. Whoever calls this may call again from the start when it fails: everything done here can be done twice.
    pub(super) async fn commit(mut self) -> Result<Session, Failure> {
        self.session.connection.execute("COMMIT").await?;
        Ok(self.session)
    }

    /// Rolls back.
    pub(super) async fn rollback(mut self) -> Result<Session, Failure> {
        self.session.connection.execute("ROLLBACK").await?;
        Ok(self.session)
    }
}

/// `BEGIN .. READ WRITE` on a standby says "feature not supported", which elsewhere means a stale plan.
pub(super) fn begin_failed(error: sqlx::Error) -> Failure {
    let mut failure = Failure::from(error);
    if failure.sql_state.as_deref() == Some("0A000") {
        failure.class = Class::WrongServer;
    }
    failure.context("begin")
}
