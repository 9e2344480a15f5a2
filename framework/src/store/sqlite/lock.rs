//! One process per file: a running sink holds an advisory lock on a file beside the database, which the system frees when the process ends, however it ends.
//!
//! Why: the write lock of SQLite belongs to a transaction. Two processes that share a group on one file would fence each other by turns and wait for each other's
//! commits, and a frozen one could not be told from a slow one.
//!
//! Must not: open the database or its log by any other means than SQLite. Closing such a descriptor would drop SQLite's own locks of the whole process.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::error::{Class, Failure};

/// Locks of this process, by the canonical path of the database.
static HELD: Mutex<BTreeMap<PathBuf, Weak<ProcessLock>>> = Mutex::new(BTreeMap::new());

/// Another store of this process may be about to let go.
const OWN_PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Held while it lives.
pub(super) struct ProcessLock {
    /// Closing it frees the lock.
    _file: File,
}

/// The file that is locked.
fn side_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-oncesink");
    name.into()
}

/// What the lock file says of its holder.
pub(super) fn holder(database: &Path) -> Option<String> {
    let path = std::fs::canonicalize(database).ok()?;
    let text = std::fs::read_to_string(side_file(&path)).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// How this process is named there.
fn myself() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map_or("unknown", str::trim);
    format!("process {} on {host}", std::process::id())
}

/// Takes the lock, or joins the other stores of this process that hold it.
pub(super) fn acquire(database: &Path) -> Result<Arc<ProcessLock>, Failure> {
    let path = std::fs::canonicalize(database).map_err(|error| {
        Failure::fatal(format!(
            "{}: {error}. Run: {}, which makes the file",
            database.display(),
            crate::remedy::command("migrate")
        ))
    })?;
    let began = Instant::now();
    loop {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.get(&path).and_then(Weak::upgrade) {
            return Ok(lock);
        }
        if let Some(lock) = attempt(&path)? {
            let lock = Arc::new(lock);
            held.insert(path, Arc::downgrade(&lock));
            return Ok(lock);
        }
        drop(held);
        let holder = holder(&path);
        let mine = holder.as_deref().is_some_and(|holder| holder.starts_with(&myself()));
        if !mine || began.elapsed() > OWN_PATIENCE {
            let holder = holder.as_deref().unwrap_or("a process that has not written its name yet");
            return Err(Failure::fatal(format!(
                "{}: {holder} runs sinks on this file, and one process at a time may. Stop that one first, or write all sinks of this file into \
                 one configuration (the lock is {}; it goes when its process ends)",
                path.display(),
                side_file(&path).display()
            )));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Takes the lock if nobody has it.
fn attempt(database: &Path) -> Result<Option<ProcessLock>, Failure> {
    let path = side_file(database);
    let failed = |error: std::io::Error| {
        let message = format!("{}: {error}. Give this user the right to write the folder", path.display());
        Failure::new(Class::Fatal, message).with_source(error)
    };
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    write_name(&mut file).map_err(failed)?;
    Ok(Some(ProcessLock { _file: file }))
}

fn write_name(file: &mut File) -> std::io::Result<()> {
    let mut present = String::new();
    file.read_to_string(&mut present).ok();
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}, since {}", myself(), jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"))
}
