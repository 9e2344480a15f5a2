//! Turns at the file's write lock: within the process in the order of asking, at the lock itself by asking again soon.
//!
//! Why: SQLite has no queue. Who waits looks every tenth of a second whether the lock is free, and a writer that begins again right after its COMMIT leaves gaps
//! of less than a millisecond: a claim, a note or a person's verb would starve beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use sqlx::{Database, SqliteConnection, TransactionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::is_busy;
use crate::error::{Class, Failure};

type Manager = <sqlx::Sqlite as Database>::TransactionManager;

/// How long SQLite itself waits at one attempt, in which it looks after 1, 3 and 5 ms.
pub(super) const ATTEMPT: Duration = Duration::from_millis(5);

/// The queue of a file in this process.
pub(super) type Queue = Arc<Semaphore>;

/// A turn; the next one's begins when it is dropped.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// The queue of this file.
pub(super) fn queue(database: &Path) -> Queue {
    static QUEUES: Mutex<BTreeMap<PathBuf, Weak<Semaphore>>> = Mutex::new(BTreeMap::new());
    // Two names of one file are one queue as soon as it is there.
    let path = std::fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    queues.retain(|_, queue| queue.strong_count() > 0);
    if let Some(queue) = queues.get(&path).and_then(Weak::upgrade) {
        return queue;
    }
    let queue = Arc::new(Semaphore::new(1));
    queues.insert(path, Arc::downgrade(&queue));
    queue
}

/// Waits for a turn, for `patience` at most if that is given; whoever has it is bounded by timers of the framework's.
pub(super) async fn wait(queue: &Queue, patience: Option<Duration>) -> Result<Turn, Failure> {
    let permit = Arc::clone(queue).acquire_owned();
    let permit = match patience {
        None => permit.await,
        Some(patience) => tokio::time::timeout(patience, permit).await.map_err(|_| busy())?,
    };
    // Never closed.
    permit.map(|permit| Turn { _permit: permit }).map_err(|_| busy())
}

/// What SQLite would have answered.
fn busy() -> Failure {
    let mut failure = Failure::new(Class::Transient, "begin: database is locked");
    failure.sql_state = Some("SQLITE_BUSY".to_owned());
    failure
}

/// Begins, asking again until the lock is free or `patience` is over. `begin` takes the write lock.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    begin: &str,
    patience: Duration,
) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let answer = Manager::begin(connection, Some(begin.to_owned().into())).await;
        let Err(error) = answer else { return Ok(()) };
        let failure = Failure::from(error).context("begin");
        if !is_busy(&failure) || began.elapsed() >= patience {
            return Err(failure);
        }
    }
}
