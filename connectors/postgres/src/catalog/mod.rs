//! The live catalog: the table behind a name, its columns, and what a role may do.
//!
//! Invariant: what was read is identified by a fingerprint that is compared again inside every transaction, after the rows were sent and while our lock on
//! the table shuts every ALTER out. A binary COPY declares no types: without that comparison a changed column could take our bytes for something else.

mod kind;
mod read;

use std::sync::Arc;

use oncesink::sqlx::postgres::types::Oid;

pub(crate) use kind::{Kind, NumericBounds};
pub(crate) use read::{fingerprints, read};

/// A table that rows can go to.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) oid: Oid,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// All columns that are not dropped, in the table's order.
    pub(crate) columns: Vec<Column>,
    /// Object id, and per column name, type, type modifier, nullability and generation.
    pub(crate) fingerprint: String,
    /// Row level security holds for our role: COPY is refused by the server, INSERT is not.
    pub(crate) row_security: bool,
}

impl Table {
    /// Schema and table as people write them.
    pub(crate) fn display(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Schema and table in SQL.
    pub(crate) fn sql(&self) -> String {
        format!("{}.{}", crate::quote::identifier(&self.schema), crate::quote::identifier(&self.name))
    }
}

/// A column, and whether a field can be mapped to it.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// Null in it is a bad record. False where a BEFORE trigger may still fill the column: then the server decides.
    pub(crate) not_null: bool,
    /// A record must carry it: not null, and nothing else would fill it.
    pub(crate) required: bool,
    /// The type as Postgres writes it, for people.
    pub(crate) type_name: String,
    /// Whether our role may INSERT into it.
    pub(crate) insertable: bool,
}

/// What a column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Values of a supported type.
    Typed(Kind),
    /// A type that this version does not write: fine as long as no record carries the field.
    Unsupported,
    /// Written by the server only.
    GeneratedAlways,
}

/// A table shared by the topics that go to it and by the statements of a batch.
pub(crate) type SharedTable = Arc<Table>;
