//! From encoded rows to statements: binary COPY for many rows, UNNEST for few, a staging table where rows are written by key.
//!
//! Invariant: the text of a statement is made of quoted catalog names, of tables and types, of parameter numbers and object ids, of nothing else. Rows that are there are
//! changed in place: nothing is ever deleted and copied anew, so that columns that no record carries keep their values and child rows stay.

mod array;
mod by_key;
mod insert;
mod stage;

use std::ops::Range;

use oncesink::plan::{Changes, Chosen, Mode, RecordAt, Target};

use crate::catalog::Table;

/// Rows of one UNNEST: longer arrays were slower.
const UNNEST_CHUNK: usize = 1000;
/// Rows of one list of VALUES.
const VALUES_ROWS_MAX: usize = 500;
/// Parameters of one list of VALUES; the protocol counts them in 16 bits.
const VALUES_PARAMETERS_MAX: usize = 32_000;

/// One statement, ready to be sent.
#[derive(Debug)]
pub(crate) enum Statement {
    /// A COPY ... FROM STDIN and its whole stream.
    Copy { sql: String, bytes: Vec<u8> },
    /// A statement with parameters in binary form.
    Bound(Bound),
    /// Rows by way of a temporary table that stays with the connection.
    Staged { create: String, copy: String, bytes: Vec<u8>, merge: String },
    /// Answers which keys are there, and locks their rows; the records of the others are bad.
    Probe { ask: Bound, sources: Vec<Vec<RecordAt>> },
}

/// A statement with parameters in binary form.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) sql: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) prepared: Prepared,
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

/// The statements that write a target's changes. `nth` tells this turn of the table from others in the same transaction: what one has staged must not be
/// taken up by the next.
pub(crate) fn plan(target: &Target<Table>, changes: &Changes, nth: usize) -> Vec<Statement> {
    let table = &*target.table;
    let mut statements: Vec<Statement> =
        by_key::probe(table, &target.key, changes.changed_before_deletes()).into_iter().collect();
    statements.extend(by_key::deletes(table, changes.deletes()));
    match target.mode {
        Mode::Insert => insert::plan(table, changes, &mut statements),
        // Rows of several shapes, of which a row may exclude another: the first one stays, so they go in the order of their records.
        Mode::InsertIgnore if target.key.is_empty() && changes.groups().nth(1).is_some() => {
            insert::in_order(table, changes, " ON CONFLICT DO NOTHING", &mut statements);
        }
        Mode::InsertIgnore | Mode::Upsert => {
            for chosen in changes.groups() {
                by_key::upsert(target, chosen, nth, &mut statements);
            }
        }
        Mode::Update => {
            // All keys are looked for before the first row is changed.
            let groups: Vec<Chosen<'_>> = changes.groups().collect();
            for chosen in &groups {
                statements.extend(by_key::probe(table, &target.key, *chosen));
            }
            for chosen in groups {
                by_key::update(table, &target.key, chosen, nth, &mut statements);
            }
        }
    }
    statements
}
