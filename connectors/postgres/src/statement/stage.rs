//! Many rows by key: COPY into a temporary table that stays with the connection and is empty in every transaction, then one statement from there.

use std::hash::{DefaultHasher, Hash, Hasher};

use oncesink::plan::Chosen;

use super::Statement;
use super::insert::copy_bytes;
use crate::catalog::{Kind, Table};
use crate::quote;

/// Stages rows; `merge` makes the statement that takes them from this source. Lengths and scales are the target's to apply, as for parameters. Labels of enums
/// are staged as text: a table of ours must not stand in the way of whoever drops the type. `nth` is the table's turn in this transaction.
pub(super) fn statement(
    table: &Table,
    chosen: Chosen<'_>,
    nth: usize,
    merge: impl FnOnce(&str) -> String,
) -> Statement {
    let columns = &chosen.group.columns;
    let staged = format!("pg_temp.{}", quote::identifier(&name(table, columns, nth)));
    let (mut described, mut selected, mut cast) = (Vec::new(), Vec::new(), false);
    for (name, sort) in table.names(columns).map(quote::identifier).zip(table.sorts(columns)) {
        if sort.kind == Kind::Label && sort.element.is_none() {
            described.push(format!("{name} pg_catalog.text"));
            selected.push(format!("{name}::{} AS {name}", sort.sql));
            cast = true;
        } else {
            described.push(format!("{name} {}", sort.sql));
            selected.push(name);
        }
    }
    let from = if cast { format!("(SELECT {} FROM {staged})", selected.join(", ")) } else { staged.clone() };
    Statement::Staged {
        create: format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS {staged} ({}) ON COMMIT DELETE ROWS",
            described.join(", ")
        ),
        copy: format!("COPY {staged} ({}) FROM STDIN (FORMAT binary)", quote::list(table.names(columns))),
        bytes: copy_bytes(chosen),
        merge: merge(&from),
    }
}

/// One name for one shape of rows of one table in one state: a table that was altered is staged anew. Two turns of a table in one transaction never share one,
/// since what is staged is emptied by COMMIT only.
fn name(table: &Table, columns: &[usize], nth: usize) -> String {
    let mut hasher = DefaultHasher::new();
    (&table.fingerprint, columns, nth).hash(&mut hasher);
    format!("oncesink stage {:016x}", hasher.finish())
}
