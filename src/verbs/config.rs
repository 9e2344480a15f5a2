//! `config --resolved`: what is in force, and where each value came from. Contacts nobody.

use std::path::Path;

use oncesink::config::{Environment, Known, Resolved, ResolvedKey};
use serde::Serialize;

use crate::exit::{Exit, Failed};
use crate::output::Output;

/// A key for machines.
#[derive(Debug, Serialize)]
struct Key<'r> {
    path: &'r [String],
    value: &'r serde_json::Value,
    from: &'r str,
}

impl<'r> Key<'r> {
    fn of(key: &'r ResolvedKey) -> Self {
        Self { path: &key.path, value: &key.value, from: &key.from }
    }
}

pub(crate) fn run(
    path: &Path,
    environment: &Environment,
    known: &Known<'_>,
    output: Output,
) -> Result<Exit, Failed> {
    let resolved = Resolved::load(path, environment, known)?;
    let keys: Vec<Key<'_>> = resolved.keys().iter().map(Key::of).collect();
    output.print(&keys, &resolved.toml());
    Ok(Exit::Done)
}
