//! Columns of rows as a source that a statement selects from: arrays in binary form for UNNEST, or lists of VALUES.

use oncesink::plan::Chosen;

use super::{Bound, Parameter, Prepared, Statement, UNNEST_CHUNK, VALUES_PARAMETERS_MAX, VALUES_ROWS_MAX};
use crate::catalog::{Table, Type};

/// Some columns of some rows, as parameters of one statement.
#[derive(Debug)]
pub(super) struct Source {
    /// What stands behind FROM, without an alias.
    pub(super) from: String,
    parameters: Vec<Parameter>,
    bytes: Vec<u8>,
    prepared: Prepared,
}

impl Source {
    /// A statement with these parameters.
    pub(super) fn statement(self, sql: String) -> Statement {
        Statement::Bound(self.bound(sql))
    }

    /// The same, not yet called a statement.
    pub(super) fn bound(self, sql: String) -> Bound {
        let Self { parameters, bytes, prepared, .. } = self;
        Bound { sql, parameters, bytes, prepared }
    }
}

/// These columns of all chosen rows, in pieces of the usual size. UNNEST takes arrays of arrays apart down to the last element, so that rows with an array
/// in them go as VALUES.
pub(super) fn usual<'c>(
    table: &'c Table,
    chosen: Chosen<'c>,
    columns: &'c [usize],
) -> Box<dyn Iterator<Item = Source> + 'c> {
    let fit = columns.iter().all(|column| table.sort(*column).is_some_and(|sort| sort.array_oid != 0));
    if fit {
        return Box::new(arrays(table, chosen, columns, UNNEST_CHUNK));
    }
    let chunk = VALUES_ROWS_MAX.min(VALUES_PARAMETERS_MAX / columns.len().max(1)).max(1);
    Box::new(
        (0..chosen.len())
            .step_by(chunk)
            .map(move |first| values(table, chosen, columns, first..(first + chunk).min(chosen.len()))),
    )
}

/// As arrays, in pieces of at most `chunk` rows; the columns are none of arrays.
pub(super) fn arrays<'c>(
    table: &'c Table,
    chosen: Chosen<'c>,
    columns: &'c [usize],
    chunk: usize,
) -> impl Iterator<Item = Source> + 'c {
    (0..chosen.len()).step_by(chunk.max(1)).map(move |first| {
        let rows = first..(first + chunk.max(1)).min(chosen.len());
        let mut parameters = Vec::with_capacity(columns.len());
        let mut bytes = Vec::new();
        for column in columns {
            let Some(sort) = table.sort(*column) else { continue };
            let nth = nth(chosen, *column);
            let cells = rows.clone().map(|row| chosen.cells(row).nth(nth).flatten());
            let start = bytes.len();
            array(sort, cells, &mut bytes);
            parameters.push(Parameter { oid: sort.array_oid, value: Some(start..bytes.len()) });
        }
        Source { from: unnest(table, columns), parameters, bytes, prepared: Prepared::Named }
    })
}

/// `UNNEST($1::type[], ...)` of some columns.
fn unnest(table: &Table, columns: &[usize]) -> String {
    let sorts = columns.iter().filter_map(|column| table.sort(*column));
    let arrays: Vec<_> =
        sorts.enumerate().map(|(nth, sort)| format!("${}::{}[]", nth + 1, sort.sql)).collect();
    format!("UNNEST({})", arrays.join(", "))
}

/// `(VALUES ($1, $2), ...)`; a parameter brings its type with it.
fn values(table: &Table, chosen: Chosen<'_>, columns: &[usize], rows: std::ops::Range<usize>) -> Source {
    let (mut lines, mut parameters, mut bytes) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
    for row in rows {
        let first = parameters.len();
        for column in columns {
            let Some(sort) = table.sort(*column) else { continue };
            let value = chosen.cells(row).nth(nth(chosen, *column)).flatten().map(|cell| {
                let start = bytes.len();
                bytes.extend_from_slice(cell);
                start..bytes.len()
            });
            parameters.push(Parameter { oid: sort.oid, value });
        }
        let names: Vec<_> = (first..parameters.len()).map(|nth| format!("${}", nth + 1)).collect();
        lines.push(format!("({})", names.join(", ")));
    }
    Source { from: format!("(VALUES {})", lines.join(", ")), parameters, bytes, prepared: Prepared::Once }
}

/// Where a column stands in its group.
fn nth(chosen: Chosen<'_>, column: usize) -> usize {
    chosen.group.columns.binary_search(&column).unwrap_or(usize::MAX)
}

/// A one-dimensional array in the wire form of `array_send`: dimensions, whether NULLs occur, element type, length, lower bound, elements.
fn array<'c>(sort: &Type, cells: impl ExactSizeIterator<Item = Option<&'c [u8]>> + Clone, out: &mut Vec<u8>) {
    let nulls = cells.clone().any(|cell| cell.is_none());
    for word in [1, u32::from(nulls), sort.oid, cells.len() as u32, 1] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for cell in cells {
        match cell {
            Some(value) => {
                out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                out.extend_from_slice(value);
            }
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
}
