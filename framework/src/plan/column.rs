//! What a plan knows of a table: its columns, and what a connector does with a value for one of them.

use std::fmt;

use crate::error::Reason;
use crate::value::{Fault, Form, Reading};

/// A column, as far as the plan needs to know.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name, exactly as the catalog spells it.
    pub name: String,
    /// The type as the database writes it, for people.
    pub type_name: String,
    /// What it takes.
    pub takes: Takes,
    /// Null in it is a bad record. False where a trigger may still fill the column: then the server decides.
    pub not_null: bool,
    /// A new row must carry it: not null, and nothing else would fill it.
    pub required: bool,
    /// Written when a row is made and never changed afterwards (an identity column).
    pub insert_only: bool,
    /// Our role may insert into it.
    pub insertable: bool,
    /// Our role may update it.
    pub updatable: bool,
}

/// What kind of values a column takes, as far as the file's keys depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Values without a choice of reading.
    Plain,
    /// Times: numbers need a unit.
    Time,
    /// Text: objects and arrays need `as = "json-text"`.
    Text,
    /// Bytes: strings need `as = "base64"`, `"hex"` or `"utf8"`; headers and whole keys come as they are.
    Bytes,
    /// JSON documents.
    Json,
    /// A type that this connector does not write: fine as long as no record carries a value for it.
    Unsupported,
    /// Computed by the database: a field of its name is known and left out.
    Generated,
}

impl Takes {
    /// Whether `as` makes sense here.
    pub fn allows(self, reading: Reading) -> bool {
        match reading {
            Reading::Epoch(_) => self == Self::Time,
            Reading::JsonText => self == Self::Text,
            Reading::Base64 | Reading::Hex | Reading::Utf8 => self == Self::Bytes,
        }
    }
}

/// A value on its way into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'v> {
    /// One JSON value, checked for syntax, without blanks around it, and not null.
    Json(&'v str),
    /// Bytes as they are, for a column that takes bytes.
    Bytes(&'v [u8]),
}

/// A table that a connector has read from its catalog.
pub trait Table: fmt::Debug + Send + Sync + 'static {
    /// The table as people write it, such as `schema.table`.
    fn display(&self) -> String;

    /// All columns, in the table's order.
    fn columns(&self) -> &[Column];

    /// Appends a value in the connector's own form; what was appended before a fault is cut off by the caller.
    ///
    /// # Errors
    /// What the column cannot hold as it stands.
    fn encode(&self, column: usize, cell: Cell<'_>, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault>;

    /// Appends a form in which two encoded values of a key column are the same bytes exactly when the database takes them for the same key.
    fn key_form(&self, column: usize, encoded: &[u8], out: &mut Vec<u8>) {
        let _ = column;
        out.extend_from_slice(encoded);
    }

    /// Whether these columns together are a key that the database keeps unique, in every row and at once, so that writing by key meets one row at most.
    ///
    /// # Errors
    /// Why not, and what helps; for people.
    fn check_key(&self, columns: &[usize]) -> Result<(), String>;

    /// Whether deleting a row changes or deletes rows of other keys in the same table, by a foreign key from the table to itself. Then rows before and behind a
    /// delete keep their places around it.
    fn deletes_reach_other_rows(&self) -> bool {
        false
    }

    /// The types whose columns can take a JSON document, for people.
    fn json_types(&self) -> &'static str;

    /// What lets our role insert into a column; none where a database knows no grants.
    fn grant(&self, column: &str) -> Option<String> {
        let _ = column;
        None
    }

    /// The state that the server would give for a fault that is found before it.
    fn sql_state(&self, reason: Reason) -> Option<&'static str> {
        let _ = reason;
        None
    }
}
