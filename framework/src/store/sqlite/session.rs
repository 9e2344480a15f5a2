//! A connection to the file, and what keeps it honest: no COMMIT but ours, no second file, none that has left its path, no statement that outlives its caller.
//!
//! Invariant: a transaction commits only while its gate is open, and only [`super::tx::commit`] and [`super::control::Control`] open it. Dropping a session
//! closes its connection; the driver's thread ends the statement under way, and the file is rolled back.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor, Row, SqliteConnection};

use super::ffi::Quiet;
use super::is_busy;
use crate::error::{Class, Failure};

/// How often a running statement looks whether its caller has gone, in steps of SQLite's virtual machine: some tenths of a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;
/// Pages of the log before a commit copies them into the file: fewer and larger copies than SQLite's 1,000.
const CHECKPOINT_PAGES: &str = "10000";
/// Cache of a connection, as SQLite writes kibibytes: 64 MiB.
const CACHE: &str = "-65536";
/// Pause before another try while others open, recover or close the file; SQLite does not wait for all of that by itself.
const MODE_PAUSE: Duration = Duration::from_millis(10);

/// What of a session its driver's thread looks at.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Whether COMMIT may pass. A connector's own, or a statement after SQLite rolled the transaction back, finds it closed.
    open: AtomicBool,
    /// Whether its caller has gone.
    abandoned: AtomicBool,
}

impl Gate {
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    pub(super) fn shut(&self) {
        self.open.store(false, Ordering::SeqCst);
    }
}

/// Closes behind a session however it ends.
struct Ending(Arc<Gate>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::SeqCst);
    }
}

/// A session of this process, by which a statement that goes on after its caller can be ended.
#[derive(Clone)]
pub struct SessionId {
    number: u64,
    gate: Weak<Gate>,
}

impl SessionId {
    /// Ends the statement under way; answers whether the session was there.
    pub(super) fn end(&self) -> bool {
        match self.gate.upgrade() {
            Some(gate) => {
                gate.abandoned.store(true, Ordering::SeqCst);
                true
            }
            None => false,
        }
    }
}

impl PartialEq for SessionId {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for SessionId {}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.number)
    }
}

/// A file as the system knows it: what stays the same when it is moved, and changes when another takes its path.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Of the file at this path; none without one.
    fn at(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}

/// A connection between transactions.
pub struct Session {
    ending: Ending,
    number: u64,
    path: PathBuf,
    file: Option<FileId>,
    pub(super) connection: SqliteConnection,
}

impl Session {
    /// The identity by which its statement can be ended.
    pub fn id(&self) -> SessionId {
        SessionId { number: self.number, gate: Arc::downgrade(&self.ending.0) }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.ending.0
    }

    /// Refuses a connection whose file is not the one at its path any more. SQLite itself does not look: into a file that was deleted, or replaced by a backup
    /// or a compacted copy, it goes on to commit what nobody will ever read.
    pub(super) fn stays_in_place(&self) -> Result<(), Failure> {
        if FileId::at(&self.path) == self.file {
            return Ok(());
        }
        let message = format!(
            "{}: the file was deleted, moved or replaced while it was open; going on with the one at this path. Stop the sink before a file is exchanged, \
             together with its -wal and -shm",
            self.path.display()
        );
        Err(Failure::new(Class::Transient, message))
    }

    /// Closes, and waits until the connection's thread has let go of the file.
    pub(super) async fn close(self) {
        let Self { ending: _ending, connection, .. } = self;
        // The connection is gone either way.
        let _ = connection.close().await;
    }
}

/// How a file is opened.
pub(super) struct Opening<'a> {
    pub(super) path: &'a Path,
    /// How long SQLite itself waits at each lock.
    pub(super) lock: Duration,
    /// How long opening may wait for others who open, recover or close the file.
    pub(super) patience: Duration,
    /// Whether a file that is not there is made.
    pub(super) create: bool,
}

/// Opens the file, pins the connection, and accepts it only in the mode that the protocol rests on.
pub(super) async fn open(opening: &Opening<'_>) -> Result<Session, Failure> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let path = opening.path;
    if !opening.create && !path.exists() {
        return Err(Failure::fatal(format!(
            "{}: there is no such file. Run: {}, which makes it",
            path.display(),
            crate::remedy::command("migrate")
        )));
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(opening.create)
        .busy_timeout(opening.lock)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .pragma("trusted_schema", "OFF")
        .pragma("cache_size", CACHE)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .disable_statement_logging();
    let began = Instant::now();
    // Before the file is opened: one that is exchanged in between is found to be another, not taken for the one that was opened.
    let found = FileId::at(path);
    let connection = loop {
        match options.connect().await.map_err(Failure::from) {
            Ok(connection) => break connection,
            Err(failure) if is_busy(&failure) && began.elapsed() < opening.patience => {
                tokio::time::sleep(MODE_PAUSE).await;
            }
            Err(failure) => return Err(refused(failure, path)),
        }
    };
    let gate = Arc::new(Gate::default());
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = found.or_else(|| FileId::at(path));
    let mut session =
        Session { ending: Ending(Arc::clone(&gate)), number, path: path.to_owned(), file, connection };
    log_ahead(&mut session.connection, opening).await?;
    let mut quiet = Quiet::of(&mut session.connection).await?;
    quiet.refuse_attach();
    let commits = Arc::clone(&gate);
    quiet.handle().set_commit_hook(move || commits.open.load(Ordering::SeqCst));
    quiet.handle().set_progress_handler(STEPS_BETWEEN_LOOKS, move || !gate.abandoned.load(Ordering::SeqCst));
    drop(quiet);
    Ok(session)
}

/// Write-ahead logging: readers never stand in the way of a COMMIT, so that it is not answered BUSY. The mode is the file's; it is set again in case
/// that somebody changed it.
async fn log_ahead(connection: &mut SqliteConnection, opening: &Opening<'_>) -> Result<(), Failure> {
    let path = opening.path;
    let began = Instant::now();
    let mode: String = loop {
        match connection.fetch_one("PRAGMA journal_mode = WAL").await {
            Ok(row) => break row.try_get(0)?,
            Err(error) => {
                let failure = Failure::from(error);
                if !is_busy(&failure) || began.elapsed() >= opening.patience {
                    return Err(refused(failure, path));
                }
                tokio::time::sleep(MODE_PAUSE).await;
            }
        }
    };
    if mode == "wal" {
        return Ok(());
    }
    Err(Failure::fatal(format!(
        "{}: SQLite cannot keep a write-ahead log here (journal mode {mode:?}): put the file onto a local disk, not onto a network share",
        path.display()
    )))
}

/// What opening refused, with the remedy. The file is there, so that waiting mends nothing.
fn refused(mut failure: Failure, path: &Path) -> Failure {
    let remedy = match failure.sql_state.as_deref() {
        Some(state) if state.starts_with("SQLITE_CANTOPEN") || state.starts_with("SQLITE_PERM") => {
            "Check that its folder is there, and that file and folder may be read and written by this user"
        }
        Some(state) if state.starts_with("SQLITE_READONLY") => {
            "Give this user the right to write the file and its folder, where the log stands beside it"
        }
        Some("SQLITE_NOTADB") => "Name another file, or check what this one is",
        _ => return failure.context(&path.display().to_string()),
    };
    failure.class = Class::Fatal;
    failure.message = format!("{}: {}. {remedy}", path.display(), failure.message);
    failure
}
