//! What the store is told: which file, which table holds the offsets, how long the write lock is waited for.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use sqlx::sqlite::SqliteConnectOptions;

use crate::error::Failure;

/// The connection's keys of `[sinks.<name>.target]`.
#[derive(Clone, Debug, Deserialize)]
pub struct SqliteConfig {
    /// `sqlite:///absolute/path.db` or `sqlite:relative.db`.
    pub url: String,
    /// Table of the offsets; default `kafka_offsets`. The tables named `oncesink_...` stand in the same file.
    #[serde(default)]
    pub offsets: Option<String>,
    /// Waiting for the write lock of the file, at most.
    #[serde(skip, default = "lock_patience")]
    pub lock: Duration,
}

/// Below every timer of the framework, so that a contended file is told from one that does not answer.
fn lock_patience() -> Duration {
    Duration::from_secs(1)
}

impl SqliteConfig {
    /// The file behind a URL, everything else by default.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), offsets: None, lock: lock_patience() }
    }

    /// Names the table of the offsets.
    #[must_use]
    pub fn with_offsets(mut self, offsets: impl Into<String>) -> Self {
        self.offsets = Some(offsets.into());
        self
    }

    /// The file.
    pub(super) fn path(&self) -> Result<PathBuf, Failure> {
        path_of(&self.url).map_err(Failure::fatal)
    }
}

/// Looks at a URL without opening anything, so that a flaw is found where it is written.
///
/// # Errors
/// What is wrong with it.
pub fn check_url(url: &str) -> Result<(), String> {
    path_of(url).map(drop)
}

const FORM: &str = "write sqlite:///absolute/path.db or sqlite:relative.db";

/// The file that a URL names, as the driver would read it.
fn path_of(url: &str) -> Result<PathBuf, String> {
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return Err(format!("this is no URL of SQLite; {FORM}"));
    };
    let name = rest.strip_prefix("//").unwrap_or(rest);
    if let Some((name, parameters)) = name.split_once('?') {
        let parameter = parameters.split(['=', '&']).next().unwrap_or_default();
        return Err(if name == ":memory:" || parameters.contains("mode=memory") {
            IN_MEMORY.to_owned()
        } else {
            format!(
                "the url has a parameter {parameter:?}; a SQLite file takes none (a ? in its name is written %3F)"
            )
        });
    }
    if name == ":memory:" {
        return Err(IN_MEMORY.to_owned());
    }
    if name.starts_with("file:") {
        return Err(format!("a name that begins with file: is read as a URI of SQLite's own; {FORM}"));
    }
    let options = SqliteConnectOptions::from_str(url).map_err(|_| format!("this names no file; {FORM}"))?;
    let path = options.get_filename();
    if path == Path::new("") || name.ends_with('/') {
        return Err(format!("this names no file; {FORM}"));
    }
    Ok(path.to_owned())
}

const IN_MEMORY: &str = "a database in memory ends with the process, and its offsets with it: nothing could be read on from; name a file, sqlite:relative.db";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_file_or_are_refused_with_the_form() {
        for (url, path) in [
            ("sqlite:///srv/shop.db", "/srv/shop.db"),
            ("sqlite:shop.db", "shop.db"),
            ("sqlite://shop.db", "shop.db"),
            ("sqlite:../a/shop.db", "../a/shop.db"),
            ("sqlite:///srv/a%3Fb%20c.db", "/srv/a?b c.db"),
        ] {
            assert_eq!(path_of(url).unwrap(), Path::new(path), "{url}");
        }
        for (url, says) in [
            ("sqlite::memory:", "in memory"),
            ("sqlite://:memory:", "in memory"),
            ("sqlite:x?mode=memory", "in memory"),
            ("sqlite:x.db?mode=ro", "parameter \"mode\""),
            ("sqlite:", "names no file"),
            ("sqlite:///", "names no file"),
            ("sqlite:file:x.db", "file:"),
            ("postgres://x", "no URL of SQLite"),
        ] {
            let refused = path_of(url).unwrap_err();
            assert!(refused.contains(says), "{url}: {refused}");
        }
    }
}
