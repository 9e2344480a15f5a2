//! Many rows by key: COPY into a temporary table that stays with the connection and is empty in every transaction, then one statement from there.

use std::hash::{DefaultHasher, Hash, Hasher};

use oncesink::plan::Chosen;

use super::Statement;
use super::insert::copy_bytes;
use crate::catalog::Table;
use crate::quote;

/// Stages rows; `merge` makes the statement that takes them from the table of this name.
pub(super) fn statement(table: &Table, chosen: Chosen<'_>, merge: impl FnOnce(&str) -> String) -> Statement {
    let columns = &chosen.group.columns;
    let staged = format!("pg_temp.{}", quote::identifier(&name(table, columns)));
    let described: Vec<String> = columns
        .iter()
        .filter_map(|index| table.columns.get(*index))
        .map(|column| format!("{} {}", quote::identifier(&column.name), column.type_name))
        .collect();
    Statement::Staged {
        create: format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS {staged} ({}) ON COMMIT DELETE ROWS",
            described.join(", ")
        ),
        copy: format!("COPY {staged} ({}) FROM STDIN (FORMAT binary)", quote::list(table.names(columns))),
        bytes: copy_bytes(chosen),
        merge: merge(&staged),
    }
}

/// One name for one shape of rows of one table in one state: a table that was altered is staged anew.
fn name(table: &Table, columns: &[usize]) -> String {
    let mut hasher = DefaultHasher::new();
    (&table.fingerprint, columns).hash(&mut hasher);
    format!("oncesink stage {:016x}", hasher.finish())
}
