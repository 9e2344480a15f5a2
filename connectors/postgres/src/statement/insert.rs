//! New rows without a key: COPY for many, UNNEST for few, multi-row VALUES with DEFAULT for a batch of many shapes.

use std::fmt::Write;

use oncesink::plan::{Changes, Chosen, Group};

use super::{Bound, Parameter, Prepared, Statement, VALUES_PARAMETERS_MAX, VALUES_ROWS_MAX, array};
use crate::catalog::{Table, Type};
use crate::quote;

/// What a binary COPY begins with: signature, no flags, no extension (Postgres documentation, COPY, "Binary Format").
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// And ends with: a field count of -1.
const COPY_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// Above this many rows a group goes by COPY: below, COPY's own round trips cost more than they save.
const UNNEST_ROWS_MAX: usize = 200;
/// Beyond this many groups in a batch, all rows of the table go by VALUES.
const GROUPS_MAX: usize = 16;

pub(super) fn plan(table: &Table, changes: &Changes, statements: &mut Vec<Statement>) {
    let groups: Vec<Chosen<'_>> = changes.groups().collect();
    if groups.len() > GROUPS_MAX {
        return values(table, &groups, statements);
    }
    for chosen in groups {
        let columns = &chosen.group.columns;
        if columns.is_empty() {
            values(table, &[chosen], statements);
        } else if chosen.len() > UNNEST_ROWS_MAX && !table.row_security {
            let sql = format!(
                "COPY {} ({}) FROM STDIN (FORMAT binary)",
                table.sql(),
                quote::list(table.names(columns))
            );
            statements.push(Statement::Copy { sql, bytes: copy_bytes(chosen) });
        } else {
            let into = into(table, columns);
            statements.extend(array::usual(table, chosen, columns).map(|source| {
                let sql = format!("INSERT INTO {into} SELECT * FROM {} AS k", source.from);
                source.statement(sql)
            }));
        }
    }
}

/// Table, columns, and what lets an identity column take our values.
pub(super) fn into(table: &Table, columns: &[usize]) -> String {
    let overriding = if table.overriding { " OVERRIDING SYSTEM VALUE" } else { "" };
    format!("{} ({}){overriding}", table.sql(), quote::list(table.names(columns)))
}

/// A whole binary COPY of some rows.
pub(super) fn copy_bytes(chosen: Chosen<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(COPY_HEADER.len() + chosen.group.bytes().len() + COPY_TRAILER.len());
    bytes.extend_from_slice(COPY_HEADER);
    if chosen.len() == chosen.group.len() && chosen.rows.is_sorted() {
        bytes.extend_from_slice(chosen.group.bytes());
    } else {
        chosen.rows.iter().for_each(|row| bytes.extend_from_slice(chosen.group.row(*row)));
    }
    bytes.extend_from_slice(&COPY_TRAILER);
    bytes
}

/// Rows of any shape, group by group.
fn values(table: &Table, groups: &[Chosen<'_>], statements: &mut Vec<Statement>) {
    let shapes = groups.iter().map(|chosen| chosen.group.columns.as_slice());
    let rows = groups.iter().flat_map(|chosen| chosen.rows.iter().map(|row| (chosen.group, *row)));
    each_row(table, shapes, rows, "", statements);
}

/// Rows of any shape in the order of their records, with a clause behind them.
pub(super) fn in_order(
    table: &Table,
    changes: &Changes,
    clause: &'static str,
    statements: &mut Vec<Statement>,
) {
    let groups: Vec<Chosen<'_>> = changes.groups().collect();
    let shapes = groups.iter().map(|chosen| chosen.group.columns.as_slice());
    each_row(table, shapes, changes.in_order(), clause, statements);
}

/// Rows of these shapes: every column that some row carries, DEFAULT where a row does not.
fn each_row<'c>(
    table: &Table,
    shapes: impl Iterator<Item = &'c [usize]>,
    rows: impl Iterator<Item = (&'c Group, usize)>,
    clause: &'static str,
    statements: &mut Vec<Statement>,
) {
    let mut columns: Vec<usize> = shapes.flatten().copied().collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.is_empty() {
        // Rows of defaults only: any column that may be named will do.
        columns.extend(table.columns.iter().position(|column| column.insertable));
    }
    let mut chunk = Values::new(table, &columns);
    for (group, row) in rows {
        if chunk.is_full(group.columns.len()) {
            let full = std::mem::replace(&mut chunk, Values::new(table, &columns));
            statements.push(full.finish(clause));
        }
        chunk.row(table, &columns, group, row);
    }
    if chunk.rows > 0 {
        statements.push(chunk.finish(clause));
    }
}

struct Values {
    sql: String,
    rows: usize,
    parameters: Vec<Parameter>,
    bytes: Vec<u8>,
}

impl Values {
    fn new(table: &Table, columns: &[usize]) -> Self {
        let sql = format!("INSERT INTO {} VALUES ", into(table, columns));
        Self { sql, rows: 0, parameters: Vec::new(), bytes: Vec::new() }
    }

    fn is_full(&self, next: usize) -> bool {
        self.rows == VALUES_ROWS_MAX || self.parameters.len() + next > VALUES_PARAMETERS_MAX
    }

    fn row(&mut self, table: &Table, columns: &[usize], group: &Group, row: usize) {
        self.sql.push_str(if self.rows == 0 { "(" } else { ", (" });
        let mut carried = group.columns.iter().zip(group.cells(row)).peekable();
        for (nth, column) in columns.iter().enumerate() {
            if nth > 0 {
                self.sql.push_str(", ");
            }
            match (carried.next_if(|(index, _)| *index == column), table.sort(*column)) {
                (Some((_, cell)), Some(sort)) => self.parameter(sort, cell),
                _ => self.sql.push_str("DEFAULT"),
            }
        }
        self.sql.push(')');
        self.rows += 1;
    }

    fn parameter(&mut self, sort: &Type, value: Option<&[u8]>) {
        let start = self.bytes.len();
        let value = value.map(|value| {
            self.bytes.extend_from_slice(value);
            start..self.bytes.len()
        });
        self.parameters.push(Parameter { oid: sort.oid, value });
        // Writing to a String cannot fail.
        let _ = write!(self.sql, "${}", self.parameters.len());
    }

    fn finish(self, clause: &str) -> Statement {
        let Self { mut sql, parameters, bytes, .. } = self;
        sql.push_str(clause);
        Statement::Bound(Bound { sql, parameters, bytes, prepared: Prepared::Once })
    }
}
