//! Rows that are found by their key: written, changed, deleted.
//!
//! ON CONFLICT always probes the index; a MERGE from a table without statistics can choose another plan and is not safe against concurrent inserts.

use oncesink::plan::{Chosen, Mode, Target};

use super::{Bound, Prepared, Statement, array, stage};
use crate::catalog::Table;
use crate::quote;
use crate::statement::insert::into;

/// Above this many rows a staging table costs less than arrays.
const UNNEST_ROWS_MAX: usize = 1000;

/// Deletes the rows with these keys; a key that has none is no error.
pub(super) fn deletes(table: &Table, chosen: Chosen<'_>) -> Vec<Statement> {
    if chosen.is_empty() {
        return Vec::new();
    }
    let columns = &chosen.group.columns;
    // One statement, however many keys: a key column is narrow.
    let sources = array::arrays(table, chosen, columns, usize::MAX);
    let delete =
        |from: &str| match (columns.as_slice(), columns.first().and_then(|column| table.sort(*column))) {
            ([column], Some(sort)) => {
                let name = quote::list(table.names(&[*column]));
                format!("DELETE FROM {} WHERE {name} = ANY ($1::{}[])", table.sql(), sort.sql)
            }
            _ => format!(
                "DELETE FROM {} AS t USING {from} AS k ({}) WHERE {}",
                table.sql(),
                quote::list(table.names(columns)),
                same_key(table, columns, "k")
            ),
        };
    sources
        .map(|source| {
            let sql = delete(&source.from);
            source.statement(sql)
        })
        .collect()
}

/// New rows, or the carried columns of those that are there; for `insert-ignore` new rows only.
pub(super) fn upsert(
    target: &Target<Table>,
    chosen: Chosen<'_>,
    nth: usize,
    statements: &mut Vec<Statement>,
) {
    let table = &*target.table;
    let columns = &chosen.group.columns;
    let conflict = on_conflict(target, columns);
    if columns.is_empty() {
        // Nothing but defaults: each row for itself, which is rare.
        for _ in chosen.rows {
            let sql = format!("INSERT INTO {} DEFAULT VALUES{conflict}", table.sql());
            statements.push(Statement::Bound(Bound {
                sql,
                parameters: Vec::new(),
                bytes: Vec::new(),
                prepared: Prepared::Named,
            }));
        }
        return;
    }
    if chosen.len() > UNNEST_ROWS_MAX && table.may_stage {
        let merge = |staged: &str| {
            let names = quote::list(table.names(columns));
            format!("INSERT INTO {} SELECT {names} FROM {staged} AS k{conflict}", into(table, columns))
        };
        statements.push(stage::statement(table, chosen, nth, merge));
        return;
    }
    let into = into(table, columns);
    statements.extend(array::usual(table, chosen, columns).map(|source| {
        let sql = format!("INSERT INTO {into} SELECT * FROM {} AS k{conflict}", source.from);
        source.statement(sql)
    }));
}

fn on_conflict(target: &Target<Table>, columns: &[usize]) -> String {
    let table = &*target.table;
    let key = match target.key.as_slice() {
        [] => String::new(),
        key => format!(" ({})", quote::list(table.names(key))),
    };
    let set = match target.mode {
        Mode::InsertIgnore => Vec::new(),
        _ => assignments(table, &target.key, columns, "EXCLUDED"),
    };
    if set.is_empty() {
        return format!(" ON CONFLICT{key} DO NOTHING");
    }
    format!(" ON CONFLICT{key} DO UPDATE SET {}", set.join(", "))
}

/// Which of these keys are there, by their place in the list; their rows are locked. None for no keys.
pub(super) fn probe(table: &Table, key: &[usize], chosen: Chosen<'_>) -> Option<Statement> {
    let source = array::arrays(table, chosen, key, usize::MAX).next()?;
    let sql = format!(
        "SELECT k.\"oncesink place\" FROM {} WITH ORDINALITY AS k ({}, \"oncesink place\") JOIN {} AS t ON {} FOR UPDATE OF t",
        source.from,
        quote::list(table.names(key)),
        table.sql(),
        same_key(table, key, "k")
    );
    Some(Statement::Probe { ask: source.bound(sql), sources: chosen.sources.to_vec() })
}

/// The carried columns of rows that are there.
pub(super) fn update(
    table: &Table,
    key: &[usize],
    chosen: Chosen<'_>,
    nth: usize,
    statements: &mut Vec<Statement>,
) {
    let columns = &chosen.group.columns;
    let set = assignments(table, key, columns, "k");
    if set.is_empty() {
        return;
    }
    let update = |from: &str| {
        format!(
            "UPDATE {} AS t SET {} FROM {from} WHERE {}",
            table.sql(),
            set.join(", "),
            same_key(table, key, "k")
        )
    };
    if chosen.len() > UNNEST_ROWS_MAX && table.may_stage {
        statements.push(stage::statement(table, chosen, nth, |staged| update(&format!("{staged} AS k"))));
        return;
    }
    let names = quote::list(table.names(columns));
    statements.extend(array::usual(table, chosen, columns).map(|source| {
        let sql = update(&format!("{} AS k ({names})", source.from));
        source.statement(sql)
    }));
}

/// Carried columns that a row that is there takes over: neither its key nor an identity.
fn assignments(table: &Table, key: &[usize], columns: &[usize], from: &str) -> Vec<String> {
    columns
        .iter()
        .filter(|index| !key.contains(index))
        .filter_map(|index| table.columns.get(*index))
        .filter(|column| !column.insert_only)
        .map(|column| {
            let name = quote::identifier(&column.name);
            format!("{name} = {from}.{name}")
        })
        .collect()
}

fn same_key(table: &Table, key: &[usize], other: &str) -> String {
    let same = |name: &str| {
        let name = quote::identifier(name);
        format!("t.{name} = {other}.{name}")
    };
    table.names(key).map(same).collect::<Vec<_>>().join(" AND ")
}
