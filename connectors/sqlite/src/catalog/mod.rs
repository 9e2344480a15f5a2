//! The live catalog: the table behind a name, its columns and its keys.
//!
//! Invariant: what was read is identified by the schema's version, which is compared again in every transaction, under the write lock that shuts every ALTER
//! out. SQLite keeps whatever it is given: without that comparison a column could take values that its new declaration does not allow.

mod clauses;
mod kind;
mod read;

use oncesink::Reason;
use oncesink::plan::{self, Cell, quote};
use oncesink::value::{Fault, Form};

pub(crate) use kind::{Bounds, Kind};
pub(crate) use read::{fingerprint, read, schema_version};

use crate::value;

/// A table that rows can go to.
#[derive(Debug)]
pub(crate) struct Table {
    /// Exactly as the catalog spells it.
    pub(crate) name: String,
    /// In the table's order.
    pub(crate) columns: Vec<plan::Column>,
    /// By column: its type, when this sink writes it.
    pub(crate) kinds: Vec<Option<Kind>>,
    /// By column: the expression that fills it where a row does not carry it, as SQL.
    pub(crate) defaults: Vec<Option<String>>,
    /// The definitions of the table and its indexes.
    pub(crate) fingerprint: String,
    /// Of the file, when this was read: the same number means the same definitions.
    pub(crate) schema_version: i64,
    /// What keeps rows apart.
    pub(crate) unique: Vec<Unique>,
    /// Deleting a row may reach other rows of the table, by foreign keys that lead back to it.
    pub(crate) cascades: bool,
}

/// A unique index that holds for every row, on plain columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unique {
    pub(crate) columns: Vec<String>,
    /// A collation that takes different texts for equal.
    pub(crate) loose: Option<String>,
}

impl Table {
    /// The table in SQL; the schema keeps a temporary table of its name from being meant.
    pub(crate) fn sql(&self) -> String {
        format!("main.{}", quote::identifier(&self.name))
    }

    /// The type of a column that is written.
    pub(crate) fn kind(&self, column: usize) -> Option<Kind> {
        self.kinds.get(column).copied().flatten()
    }

    /// The names of columns.
    pub(crate) fn names<'t>(&'t self, columns: &'t [usize]) -> impl Iterator<Item = &'t str> + 't {
        columns.iter().filter_map(|index| self.columns.get(*index)).map(|column| column.name.as_str())
    }
}

impl plan::Table for Table {
    fn display(&self) -> String {
        self.name.clone()
    }

    fn columns(&self) -> &[plan::Column] {
        &self.columns
    }

    fn encode(&self, column: usize, cell: Cell<'_>, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
        match self.kind(column) {
            Some(kind) => value::encode(kind, cell, form, out),
            None => Err(Fault::new(Reason::WrongType, "a value")),
        }
    }

    fn check_key(&self, columns: &[usize]) -> Result<(), String> {
        let table = &self.name;
        for index in columns {
            let Some(column) = self.columns.get(*index) else { continue };
            if !self.kind(*index).is_some_and(Kind::can_be_key) {
                return Err(format!(
                    "key column {table}.{} is {}: two of its values can be equal and still differ, or it is not written at all",
                    column.name, column.type_name
                ));
            }
        }
        let wanted = sorted(self.names(columns));
        let same =
            self.unique.iter().filter(|index| sorted(index.columns.iter().map(String::as_str)) == wanted);
        let (loose, exact): (Vec<&Unique>, Vec<&Unique>) = same.partition(|index| index.loose.is_some());
        if let Some(collation) = loose.first().and_then(|index| index.loose.as_deref()) {
            return Err(format!(
                "key = ({}): a unique index of table {table} on these columns has collation {collation}, which takes different texts for one key. Make it COLLATE BINARY, or name another key",
                wanted.join(", ")
            ));
        }
        if !exact.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> =
            self.unique.iter().map(|index| format!("({})", index.columns.join(", "))).collect();
        let has =
            if keys.is_empty() { "it has none".to_owned() } else { format!("it has {}", keys.join(", ")) };
        Err(format!(
            "key = ({}): table {table} has no unique index on exactly these columns, without a condition ({has}). CREATE UNIQUE INDEX .. ON {} ({}), or name another key",
            wanted.join(", "),
            quote::identifier(table),
            quote::list(self.names(columns))
        ))
    }

    fn deletes_reach_other_rows(&self) -> bool {
        self.cascades
    }

    fn json_types(&self) -> &'static str {
        "JSON or JSONB"
    }

    fn sql_state(&self, reason: Reason) -> Option<&'static str> {
        match reason {
            Reason::NullInNotNull | Reason::MissingField => Some("SQLITE_CONSTRAINT_NOTNULL"),
            _ => None,
        }
    }
}

fn sorted<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}
