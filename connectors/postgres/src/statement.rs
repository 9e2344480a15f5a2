//! From groups of rows to statements: binary COPY for many rows, UNNEST for few, multi-row VALUES with DEFAULT for a batch of many shapes.
//!
//! Invariant: the text of a statement is made of quoted catalog names, names of built-in types and parameter numbers, of nothing else.

use std::fmt::Write;
use std::ops::Range;

use crate::catalog::{Kind, Table};
use crate::quote;
use crate::rows::{Group, Groups};

/// Above this many rows a group goes by COPY: below, COPY's own round trips cost more than they save.
const UNNEST_ROWS_MAX: usize = 200;
/// Rows of one UNNEST where COPY is not to be had: longer arrays were slower.
const UNNEST_CHUNK: usize = 1000;
/// Beyond this many groups in a batch, all rows of the table go by VALUES.
const GROUPS_MAX: usize = 16;
/// Rows of one VALUES statement.
const VALUES_ROWS_MAX: usize = 500;
/// Parameters of one VALUES statement; the protocol counts them in 16 bits.
const VALUES_PARAMETERS_MAX: usize = 32_000;

/// One statement, ready to be sent.
#[derive(Debug)]
pub(crate) enum Statement {
    /// A COPY ... FROM STDIN and its whole stream.
    Copy { sql: String, bytes: Vec<u8> },
    /// An INSERT with parameters in binary form.
    Insert { sql: String, parameters: Vec<Parameter>, bytes: Vec<u8>, prepared: Prepared },
}

/// Whether a statement's text will come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Named,
    Once,
}

/// A parameter: its type, and where its bytes are; none is NULL.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) oid: u32,
    pub(crate) value: Option<Range<usize>>,
}

/// The statements that write a table's rows.
pub(crate) fn plan(table: &Table, rows: Groups) -> Vec<Statement> {
    let groups = rows.groups.into_iter().filter(|group| group.rows > 0).collect::<Vec<_>>();
    if groups.len() > GROUPS_MAX {
        return values(table, &groups);
    }
    let mut statements = Vec::new();
    for group in groups {
        if group.columns.is_empty() {
            statements.extend(values(table, std::slice::from_ref(&group)));
        } else if group.rows > UNNEST_ROWS_MAX && !table.row_security {
            statements.push(copy(table, group));
        } else {
            statements.extend(unnest(table, &group));
        }
    }
    statements
}

fn copy(table: &Table, group: Group) -> Statement {
    let sql =
        format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.sql(), quote::list(group.names(table)));
    Statement::Copy { sql, bytes: group.into_copy() }
}

fn unnest(table: &Table, group: &Group) -> Vec<Statement> {
    let kinds: Vec<_> = group.kinds(table).collect();
    let arrays: Vec<_> =
        kinds.iter().enumerate().map(|(index, kind)| format!("${}::{}[]", index + 1, kind.sql())).collect();
    let sql = format!(
        "INSERT INTO {} ({}) SELECT * FROM UNNEST({})",
        table.sql(),
        quote::list(group.names(table)),
        arrays.join(", ")
    );
    let cells = group.cells();
    cells
        .chunks(UNNEST_CHUNK * kinds.len())
        .map(|chunk| unnest_chunk(sql.clone(), &kinds, chunk, group.bytes()))
        .collect()
}

fn unnest_chunk(sql: String, kinds: &[Kind], cells: &[Option<Range<usize>>], source: &[u8]) -> Statement {
    let mut bytes = Vec::new();
    let mut parameters = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate() {
        let start = bytes.len();
        array(*kind, cells.iter().skip(index).step_by(kinds.len()), source, &mut bytes);
        parameters.push(Parameter { oid: kind.array_oid(), value: Some(start..bytes.len()) });
    }
    Statement::Insert { sql, parameters, bytes, prepared: Prepared::Named }
}

/// A one-dimensional array in the wire form of `array_send`: dimensions, whether NULLs occur, element type, length, lower bound, elements.
fn array<'c>(
    kind: Kind,
    cells: impl ExactSizeIterator<Item = &'c Option<Range<usize>>> + Clone,
    source: &[u8],
    out: &mut Vec<u8>,
) {
    let nulls = cells.clone().any(Option::is_none);
    for word in [1, u32::from(nulls), kind.oid(), cells.len() as u32, 1] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for cell in cells {
        match cell.clone().and_then(|range| source.get(range)) {
            Some(value) => {
                out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                out.extend_from_slice(value);
            }
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
}

/// Rows of any shape: every column that some row carries, DEFAULT where a row does not.
fn values(table: &Table, groups: &[Group]) -> Vec<Statement> {
    let mut columns: Vec<usize> = groups.iter().flat_map(|group| group.columns.iter().copied()).collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.is_empty() {
        // Rows of defaults only: any column that may be named will do.
        columns.extend(table.columns.iter().position(|column| column.insertable));
    }
    let mut statements = Vec::new();
    let mut chunk = Values::new(table, &columns);
    for group in groups {
        let kinds: Vec<_> = group.kinds(table).collect();
        let cells = group.cells();
        for row in 0..group.rows {
            let cells = cells.get(row * kinds.len()..(row + 1) * kinds.len()).unwrap_or_default();
            if chunk.is_full(cells.len()) {
                statements.push(std::mem::replace(&mut chunk, Values::new(table, &columns)).finish());
            }
            chunk.row(&columns, group, &kinds, cells);
        }
    }
    if chunk.rows > 0 {
        statements.push(chunk.finish());
    }
    statements
}

struct Values {
    sql: String,
    rows: usize,
    parameters: Vec<Parameter>,
    bytes: Vec<u8>,
}

impl Values {
    fn new(table: &Table, columns: &[usize]) -> Self {
        let names =
            columns.iter().filter_map(|index| table.columns.get(*index)).map(|column| column.name.as_str());
        let sql = format!("INSERT INTO {} ({}) VALUES ", table.sql(), quote::list(names));
        Self { sql, rows: 0, parameters: Vec::new(), bytes: Vec::new() }
    }

    fn is_full(&self, next: usize) -> bool {
        self.rows == VALUES_ROWS_MAX || self.parameters.len() + next > VALUES_PARAMETERS_MAX
    }

    fn row(&mut self, columns: &[usize], group: &Group, kinds: &[Kind], cells: &[Option<Range<usize>>]) {
        self.sql.push_str(if self.rows == 0 { "(" } else { ", (" });
        let mut carried = group.columns.iter().zip(kinds.iter().zip(cells)).peekable();
        for (nth, column) in columns.iter().enumerate() {
            if nth > 0 {
                self.sql.push_str(", ");
            }
            match carried.next_if(|(index, _)| *index == column) {
                Some((_, (kind, cell))) => {
                    let value = cell.clone().and_then(|range| group.bytes().get(range));
                    self.parameter(*kind, value);
                }
                None => self.sql.push_str("DEFAULT"),
            }
        }
        self.sql.push(')');
        self.rows += 1;
    }

    fn parameter(&mut self, kind: Kind, value: Option<&[u8]>) {
        let start = self.bytes.len();
        let value = value.map(|value| {
            self.bytes.extend_from_slice(value);
            start..self.bytes.len()
        });
        self.parameters.push(Parameter { oid: kind.oid(), value });
        // Writing to a String cannot fail.
        let _ = write!(self.sql, "${}", self.parameters.len());
    }

    fn finish(self) -> Statement {
        Statement::Insert {
            sql: self.sql,
            parameters: self.parameters,
            bytes: self.bytes,
            prepared: Prepared::Once,
        }
    }
}
