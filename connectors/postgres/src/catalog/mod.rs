//! The live catalog: the table behind a name, its columns, its keys, and what a role may do.
//!
//! Invariant: what was read is identified by a fingerprint that is compared again inside every transaction, after the rows were sent and while our lock on
//! the table shuts every ALTER out. A binary COPY declares no types: without that comparison a changed column could take our bytes for something else.

mod kind;
mod read;
mod types;

use oncesink::Reason;
use oncesink::plan::{self, Cell};
use oncesink::sqlx::postgres::types::Oid;
use oncesink::value::{Fault, Form};

pub(crate) use kind::{IntervalBounds, IntervalField, Kind, NumericBounds};
pub(crate) use read::{FINGERPRINTS, Needs, Present, fingerprints, read};
pub(crate) use types::Type;

use crate::value;

/// The column types that this sink writes, in the order and by the names of the documentation, with what they take; for the test of it. The last three are
/// types that somebody makes: they take what their labels, their base or their elements do.
#[doc(hidden)]
pub fn column_types() -> impl Iterator<Item = (&'static str, plan::Takes)> {
    let made =
        [("an enum", plan::Takes::Plain), ("a domain", plan::Takes::Plain), ("an array", plan::Takes::Plain)];
    let built_in = kind::BUILT_IN.iter().filter_map(|(name, oid)| {
        let kind = if *name == "citext" { Some(Kind::Citext) } else { Kind::of(*oid, -1) };
        Some((*name, value::takes_one(kind?)))
    });
    built_in.chain(made)
}

/// A table that rows can go to.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) oid: Oid,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// All columns that are not dropped, in the table's order.
    pub(crate) columns: Vec<plan::Column>,
    /// By column: the type in which its values are sent.
    pub(crate) types: Vec<Option<Type>>,
    /// Object id, and per column name, type, type modifier, nullability and generation.
    pub(crate) fingerprint: String,
    /// Row level security holds for our role: COPY is refused by the server, INSERT is not.
    pub(crate) row_security: bool,
    /// Deleting a row may reach other rows of the table, by a foreign key from it to itself.
    pub(crate) cascades: bool,
    /// Our role may make temporary tables.
    pub(crate) may_stage: bool,
    /// Some column is an identity that takes values only when told to.
    pub(crate) overriding: bool,
    /// The columns of each unique index that no expression, predicate or late check weakens.
    pub(crate) unique: Vec<Vec<String>>,
    /// Columns whose collation takes different texts for equal.
    pub(crate) loose: Vec<String>,
}

impl Table {
    /// Schema and table in SQL.
    pub(crate) fn sql(&self) -> String {
        format!("{}.{}", crate::quote::identifier(&self.schema), crate::quote::identifier(&self.name))
    }

    /// The type of a column.
    pub(crate) fn sort(&self, column: usize) -> Option<&Type> {
        self.types.get(column).and_then(Option::as_ref)
    }

    /// The types of columns.
    pub(crate) fn sorts<'t>(&'t self, columns: &'t [usize]) -> impl Iterator<Item = &'t Type> + 't {
        columns.iter().filter_map(|index| self.sort(*index))
    }

    /// The names of columns.
    pub(crate) fn names<'t>(&'t self, columns: &'t [usize]) -> impl Iterator<Item = &'t str> + 't {
        columns.iter().filter_map(|index| self.columns.get(*index)).map(|column| column.name.as_str())
    }
}

impl plan::Table for Table {
    fn display(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    fn columns(&self) -> &[plan::Column] {
        &self.columns
    }

    fn encode(&self, column: usize, cell: Cell<'_>, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
        match self.sort(column) {
            Some(sort) => value::encode(sort, cell, form, out),
            None => Err(Fault::new(Reason::WrongType, "a value")),
        }
    }

    fn key_form(&self, column: usize, encoded: &[u8], out: &mut Vec<u8>) {
        match self.sort(column) {
            Some(sort) => value::key_form(sort, encoded, out),
            None => out.extend_from_slice(encoded),
        }
    }

    fn check_key(&self, columns: &[usize]) -> Result<(), String> {
        let table = plan::Table::display(self);
        for index in columns {
            let Some(column) = self.columns.get(*index) else { continue };
            if !self.sort(*index).is_some_and(value::can_be_key) {
                return Err(format!(
                    "key column {table}.{} is {}: two of its values can be equal and still differ, or it is not written at all",
                    column.name, column.type_name
                ));
            }
            if self.loose.contains(&column.name) {
                return Err(format!(
                    "key column {table}.{} has a nondeterministic collation, which takes different texts for one key",
                    column.name
                ));
            }
        }
        let mut wanted: Vec<&str> = self.names(columns).collect();
        wanted.sort_unstable();
        let same = |index: &&Vec<String>| {
            let mut names: Vec<&str> = index.iter().map(String::as_str).collect();
            names.sort_unstable();
            names == wanted
        };
        if self.unique.iter().any(|index| same(&index)) {
            return Ok(());
        }
        let keys: Vec<_> = self.unique.iter().map(|index| format!("({})", index.join(", "))).collect();
        let has =
            if keys.is_empty() { "it has none".to_owned() } else { format!("it has {}", keys.join(", ")) };
        let columns = crate::quote::list(self.names(columns));
        Err(format!(
            "key = ({}): table {table} has no unique index on exactly these columns, immediate and without a condition ({has}). ALTER TABLE {} ADD PRIMARY KEY ({columns}), or name another key",
            wanted.join(", "),
            self.sql()
        ))
    }

    fn deletes_reach_other_rows(&self) -> bool {
        self.cascades
    }

    fn json_types(&self) -> &'static str {
        "json or jsonb"
    }

    fn grant(&self, column: &str) -> Option<String> {
        Some(format!("GRANT INSERT ({}) ON {} TO ...", crate::quote::identifier(column), self.sql()))
    }

    fn sql_state(&self, reason: Reason) -> Option<&'static str> {
        Some(match reason {
            Reason::NullInNotNull | Reason::MissingField | Reason::NullInKey => "23502",
            Reason::TooLong => "22001",
            Reason::OutOfRange => "22003",
            Reason::NullCharacter | Reason::InvalidUtf8 => "22021",
            Reason::NotANumber | Reason::WrongType => "22P02",
            Reason::NotATime => "22007",
            Reason::UnknownField => "42703",
            _ => return None,
        })
    }
}
