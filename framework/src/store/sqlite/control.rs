//! A transaction of our own: claims, settles, looks and verbs, which hold no rows of a sink.
//!
//! Invariant: what writes holds the file's write lock from its first statement on, so that what it reads is what it changes. Dropping one closes the
//! connection, which is a rollback.

use std::sync::Arc;

use sqlx::{Database, SqliteConnection, TransactionManager};

use super::names::Names;
use super::session::Session;
use crate::error::Failure;

type Manager = <sqlx::Sqlite as Database>::TransactionManager;

/// An open transaction of our own.
pub(super) struct Control {
    session: Session,
    names: Arc<Names>,
}

impl Control {
    /// Takes the write lock, waiting for it as long as the session does.
    pub(super) async fn writing(session: Session, names: Arc<Names>) -> Result<Self, Failure> {
        Self::begin(session, names, "BEGIN IMMEDIATE").await
    }

    /// One snapshot, which waits for nobody.
    pub(super) async fn reading(session: Session, names: Arc<Names>) -> Result<Self, Failure> {
        Self::begin(session, names, "BEGIN DEFERRED").await
    }

    async fn begin(mut session: Session, names: Arc<Names>, begin: &'static str) -> Result<Self, Failure> {
        Manager::begin(&mut session.connection, Some(begin.into()))
            .await
            .map_err(|error| Failure::from(error).context("begin"))?;
        Ok(Self { session, names })
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
        done?;
        Ok(self.session)
    }

    /// Rolls back.
    pub(super) async fn rollback(mut self) -> Result<Session, Failure> {
        Manager::rollback(&mut self.session.connection).await?;
        Ok(self.session)
    }
}
