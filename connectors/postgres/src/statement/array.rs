//! Columns of rows as arrays in binary form.

use oncesink::plan::Chosen;

use super::{Parameter, UNNEST_CHUNK};
use crate::catalog::{Kind, Table};

/// Arrays of some columns of some rows, as parameters of one statement.
#[derive(Debug)]
pub(super) struct Arrays {
    pub(super) parameters: Vec<Parameter>,
    pub(super) bytes: Vec<u8>,
}

/// The columns of a group that are at `columns`, of all its rows, in pieces of at most `chunk` rows.
pub(super) fn chunks<'c>(
    table: &'c Table,
    chosen: Chosen<'c>,
    columns: &'c [usize],
    chunk: usize,
) -> impl Iterator<Item = Arrays> + 'c {
    (0..chosen.len()).step_by(chunk.max(1)).map(move |first| {
        let rows = first..(first + chunk).min(chosen.len());
        let mut arrays = Arrays { parameters: Vec::with_capacity(columns.len()), bytes: Vec::new() };
        for column in columns {
            let Some(kind) = table.kind(*column) else { continue };
            let nth = chosen.group.columns.binary_search(column).unwrap_or(usize::MAX);
            let cells = rows.clone().map(|row| chosen.cells(row).nth(nth).flatten());
            let start = arrays.bytes.len();
            array(kind, cells, &mut arrays.bytes);
            arrays
                .parameters
                .push(Parameter { oid: kind.array_oid(), value: Some(start..arrays.bytes.len()) });
        }
        arrays
    })
}

/// The same in pieces of the usual size.
pub(super) fn usual<'c>(
    table: &'c Table,
    chosen: Chosen<'c>,
    columns: &'c [usize],
) -> impl Iterator<Item = Arrays> + 'c {
    chunks(table, chosen, columns, UNNEST_CHUNK)
}

/// `UNNEST($1::type[], ...)` of some columns.
pub(super) fn unnest(table: &Table, columns: &[usize]) -> String {
    let kinds = columns.iter().filter_map(|column| table.kind(*column));
    let arrays: Vec<_> =
        kinds.enumerate().map(|(nth, kind)| format!("${}::{}[]", nth + 1, kind.sql())).collect();
    format!("UNNEST({})", arrays.join(", "))
}

/// A one-dimensional array in the wire form of `array_send`: dimensions, whether NULLs occur, element type, length, lower bound, elements.
fn array<'c>(kind: Kind, cells: impl ExactSizeIterator<Item = Option<&'c [u8]>> + Clone, out: &mut Vec<u8>) {
    let nulls = cells.clone().any(|cell| cell.is_none());
    for word in [1, u32::from(nulls), kind.oid(), cells.len() as u32, 1] {
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
