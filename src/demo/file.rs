//! The demo's files, all in the working folder: two databases, the sink's configuration, and what the children said.
//!
//! Invariant: a file that is there is replaced only if a demo made it, and no two demos work in one folder.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::tables;
use crate::exit::Failed;

/// Where the sink writes.
pub(super) const DATABASE: &str = "demo.db";
/// Where the naive loop writes.
pub(super) const NAIVE_DATABASE: &str = "demo-naive.db";
/// The sink's configuration.
pub(super) const CONFIGURATION: &str = "demo.toml";
/// What the children said.
pub(super) const LOG: &str = "demo.log";

/// How long the group waits for a member that was killed, in milliseconds.
pub(super) const SESSION_MS: u32 = 500;

/// What SQLite and the sink put beside a database.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-oncesink"];
const HEAD: &str = "# Written by `oncesink demo`, and by the next one again.";

/// The files of one demo; nobody else has them as long as this lives.
pub(super) struct Files {
    _lock: File,
}

fn failed(name: &str, error: &std::io::Error) -> Failed {
    Failed::preflight(format!("{name}: {error}"))
}

fn foreign(name: &str) -> Failed {
    Failed::preflight(format!("{name} is there already and no demo made it: run the demo in another folder"))
}

impl Files {
    /// Makes new ones in the place of an earlier demo's.
    pub(super) fn prepare() -> Result<Self, Failed> {
        let text = match std::fs::read_to_string(CONFIGURATION) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(CONFIGURATION, &error)),
        };
        if !text.is_empty() && !text.starts_with(HEAD) {
            return Err(foreign(CONFIGURATION));
        }
        for name in [DATABASE, NAIVE_DATABASE] {
            if Path::new(name).exists() && !tables::is_marked(Path::new(name))? {
                return Err(foreign(name));
            }
        }
        let lock = OpenOptions::new().create(true).append(true).open(CONFIGURATION);
        let lock = lock.map_err(|error| failed(CONFIGURATION, &error))?;
        lock.try_lock().map_err(|_| Failed::preflight("another demo runs in this folder"))?;
        for name in [DATABASE, NAIVE_DATABASE] {
            for beside in BESIDE {
                remove(&format!("{name}{beside}"))?;
            }
            tables::create(Path::new(name))?;
        }
        remove(LOG)?;
        Ok(Self { _lock: lock })
    }

    /// Writes the sink's configuration.
    pub(super) fn configure(&self, brokers: &str, batch: i64) -> Result<(), Failed> {
        let text = format!(
            "{HEAD}
[kafka]
brokers = \"{brokers}\"
# The demo kills every second or two; by default a group waits 10 s for a member that died.
session.timeout.ms = \"{SESSION_MS}\"
# The mock holds back an answer without records for as long as it is allowed to.
fetch.wait.max.ms = \"20\"

[http]
listen = \"127.0.0.1:0\"

[sinks.orders]
topics = [\"orders\"]
batch = {{ rows = {batch} }}
target = {{ kind = \"sqlite\", url = \"sqlite:{DATABASE}\" }}
"
        );
        // In place: the lock is on this very file.
        let written = OpenOptions::new().write(true).truncate(true).open(CONFIGURATION);
        written
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| failed(CONFIGURATION, &error))
    }

    /// The log, for a child to write behind what is there.
    pub(super) fn log(&self) -> Result<File, Failed> {
        OpenOptions::new().create(true).append(true).open(LOG).map_err(|error| failed(LOG, &error))
    }
}

fn remove(name: &str) -> Result<(), Failed> {
    match std::fs::remove_file(name) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(name, &error)),
        _ => Ok(()),
    }
}
