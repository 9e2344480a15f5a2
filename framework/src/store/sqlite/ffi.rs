//! The one place for unsafe code here: what SQLite tells of a connection in C only.
//!
//! Invariant: a call is made only while the driver's handle is locked out of its worker thread, so that nobody else uses the connection, and never with a
//! pointer that outlives the lock.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use libsqlite3_sys as native;
use sqlx::SqliteConnection;
use sqlx::sqlite::LockedSqliteHandle;

use crate::error::Failure;

/// A connection whose worker waits.
pub(super) struct Quiet<'a>(LockedSqliteHandle<'a>);

impl<'a> Quiet<'a> {
    /// Waits for the statement under way.
    pub(super) async fn of(connection: &'a mut SqliteConnection) -> Result<Self, Failure> {
        Ok(Self(connection.lock_handle().await?))
    }

    fn raw(&mut self) -> NonNull<native::sqlite3> {
        self.0.as_raw_handle()
    }

    /// The driver's own calls on the handle.
    pub(super) fn handle(&mut self) -> &mut LockedSqliteHandle<'a> {
        &mut self.0
    }

    /// Whether a transaction is open.
    pub(super) fn in_transaction(&mut self) -> bool {
        // SAFETY: the handle is open, and ours alone while `self` lives.
        let autocommit = unsafe { native::sqlite3_get_autocommit(self.raw().as_ptr()) };
        autocommit == 0
    }

    /// How many variables a statement may bind.
    pub(super) fn variable_limit(&mut self) -> usize {
        // SAFETY: as above; a negative value asks and changes nothing.
        let limit =
            unsafe { native::sqlite3_limit(self.raw().as_ptr(), native::SQLITE_LIMIT_VARIABLE_NUMBER, -1) };
        usize::try_from(limit).unwrap_or(0)
    }

    /// From now on no other file can be attached: a commit over two files is not one commit after a crash.
    pub(super) fn refuse_attach(&mut self) {
        // SAFETY: as above; the limit may be lowered at any time.
        unsafe { native::sqlite3_limit(self.raw().as_ptr(), native::SQLITE_LIMIT_ATTACHED, 0) };
    }

    /// Whether a row refers to one that is not there, by a foreign key whose check is deferred.
    ///
    /// # Errors
    /// When the library does not know the question.
    pub(super) fn owes_foreign_keys(&mut self) -> Result<bool, Failure> {
        let (mut owed, mut most) = (0, 0);
        // SAFETY: as above; both numbers outlive the call.
        let status = unsafe {
            native::sqlite3_db_status(
                self.raw().as_ptr(),
                native::SQLITE_DBSTATUS_DEFERRED_FKS,
                &raw mut owed,
                &raw mut most,
                0,
            )
        };
        if status == native::SQLITE_OK {
            Ok(owed != 0)
        } else {
            Err(Failure::fatal("this SQLite does not tell whether foreign keys are owed"))
        }
    }
}
