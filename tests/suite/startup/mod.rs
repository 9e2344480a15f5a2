//! Bad input: for each mistake, what the command says and how it ends, before anything is consumed.
//!
//! The rows stand by kind in the modules below. `check` and `run` must agree, and after them no offset is stored and the group is not there.

mod configuration;
mod database;
mod kafka;
mod offsets;
mod stage;
mod target;
mod topic;

use stage::{Row, Stage};

/// Runs all rows of a kind, some at a time.
async fn all(kind: &str, rows: Vec<Row>) {
    let stage = Stage::new(kind).await;
    stage.all(rows).await;
}
