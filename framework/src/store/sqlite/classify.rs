//! From a result code of SQLite to what is to be done.
//!
//! Invariant: a message never quotes a record. SQLite's own names tables and columns and no values, but for what a trigger or a function writes into it: for
//! these the text is ours.

use libsqlite3_sys as native;
use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::error::{Class, DataError, Failure, Reason};

/// An error that SQLite answered.
pub(in crate::store) fn answered(error: &SqliteError) -> Failure {
    let code = error.code().and_then(|code| code.parse().ok()).unwrap_or(native::SQLITE_ERROR);
    judged(code, error.message())
}

fn judged(code: i32, words: &str) -> Failure {
    let class = class(code, words);
    let mut failure = Failure::new(class, message(code, words));
    failure.sql_state = Some(name(code));
    failure.session_alive = matches!(
        primary(code),
        native::SQLITE_ERROR
            | native::SQLITE_BUSY
            | native::SQLITE_LOCKED
            | native::SQLITE_CONSTRAINT
            | native::SQLITE_MISMATCH
            | native::SQLITE_TOOBIG
            | native::SQLITE_SCHEMA
    );
    if class == Class::BadRecord {
        let Place { table, column } = Place::of(words);
        failure.data = Some(Box::new(DataError { reason: reason(code), table, column }));
    }
    failure
}

/// Whether somebody else holds the write lock.
pub(super) fn is_busy(failure: &Failure) -> bool {
    failure.sql_state.as_deref().is_some_and(|state| state.starts_with("SQLITE_BUSY"))
}

fn primary(code: i32) -> i32 {
    code & 0xff
}

/// What is to be done.
fn class(code: i32, words: &str) -> Class {
    match code {
        // Only a COMMIT that is not ours meets the closed gate.
        native::SQLITE_CONSTRAINT_COMMITHOOK => return Class::Fatal,
        native::SQLITE_ERROR if about_catalog(words) => return Class::StaleCatalog,
        _ => {}
    }
    match primary(code) {
        native::SQLITE_CONSTRAINT
        | native::SQLITE_MISMATCH
        | native::SQLITE_TOOBIG
        | native::SQLITE_ERROR => Class::BadRecord,
        native::SQLITE_READONLY => Class::WrongServer,
        native::SQLITE_INTERRUPT => Class::Timeout,
        native::SQLITE_SCHEMA | native::SQLITE_NOTFOUND => Class::StaleCatalog,
        native::SQLITE_CORRUPT
        | native::SQLITE_NOTADB
        | native::SQLITE_FORMAT
        | native::SQLITE_PERM
        | native::SQLITE_AUTH
        | native::SQLITE_MISUSE
        | native::SQLITE_RANGE => Class::Fatal,
        // BUSY, LOCKED, FULL, IOERR, NOMEM, CANTOPEN, ABORT, PROTOCOL, INTERNAL, NOLFS: waiting or a new connection may mend them.
        _ => Class::Transient,
    }
}

/// Whether a plain error is about tables, columns or the statement's form.
fn about_catalog(words: &str) -> bool {
    const BEGIN: [&str; 6] =
        ["no such ", "near \"", "foreign key mismatch", "ON CONFLICT clause", "ambiguous column", "table "];
    BEGIN.iter().any(|begin| words.starts_with(begin))
}

/// For people. What SQLite says of a constraint names no values; of an error raised in a trigger, or by a function, we cannot know.
fn message(code: i32, words: &str) -> String {
    match code {
        native::SQLITE_CONSTRAINT_TRIGGER => return RAISED.to_owned(),
        native::SQLITE_CONSTRAINT_FUNCTION | native::SQLITE_CONSTRAINT_VTAB => {
            return "refused by a function or a virtual table".to_owned();
        }
        native::SQLITE_CONSTRAINT_COMMITHOOK => {
            return "a COMMIT that is not ours was refused; the transaction is rolled back".to_owned();
        }
        native::SQLITE_ERROR
            if !about_catalog(words) && !words.starts_with("cannot ") && !words.starts_with("too many ") =>
        {
            return "the statement failed (SQLite's words are not kept, since they may quote a value)"
                .to_owned();
        }
        _ => {}
    }
    let remedy = match primary(code) {
        native::SQLITE_FULL => ". Make room on the disk, or raise PRAGMA max_page_count",
        native::SQLITE_CORRUPT => {
            ". Stop, copy the file away, and see what PRAGMA integrity_check says; restore it together with its offsets"
        }
        native::SQLITE_READONLY => ". The file, its folder or its log cannot be written (any more)",
        _ => "",
    };
    format!("{words}{remedy}")
}

/// Instead of the words of whoever raised it.
const RAISED: &str = "raised by a trigger (its words are not kept, since they may quote the row)";

/// The stable code of a bad record.
fn reason(code: i32) -> Reason {
    match code {
        native::SQLITE_CONSTRAINT_NOTNULL => Reason::NullInNotNull,
        native::SQLITE_CONSTRAINT_UNIQUE
        | native::SQLITE_CONSTRAINT_PRIMARYKEY
        | native::SQLITE_CONSTRAINT_ROWID => Reason::Unique,
        native::SQLITE_CONSTRAINT_CHECK => Reason::Check,
        native::SQLITE_CONSTRAINT_FOREIGNKEY => Reason::ForeignKey,
        native::SQLITE_CONSTRAINT_TRIGGER => Reason::Trigger,
        native::SQLITE_CONSTRAINT_DATATYPE => Reason::WrongType,
        _ => match primary(code) {
            native::SQLITE_MISMATCH => Reason::WrongType,
            native::SQLITE_TOOBIG => Reason::TooLong,
            _ => Reason::ServerData,
        },
    }
}

/// SQLite's own name of a result code, as far as people meet it.
fn name(code: i32) -> String {
    let name = match code {
        native::SQLITE_BUSY_RECOVERY => "SQLITE_BUSY_RECOVERY",
        native::SQLITE_BUSY_SNAPSHOT => "SQLITE_BUSY_SNAPSHOT",
        native::SQLITE_CONSTRAINT_CHECK => "SQLITE_CONSTRAINT_CHECK",
        native::SQLITE_CONSTRAINT_COMMITHOOK => "SQLITE_CONSTRAINT_COMMITHOOK",
        native::SQLITE_CONSTRAINT_DATATYPE => "SQLITE_CONSTRAINT_DATATYPE",
        native::SQLITE_CONSTRAINT_FOREIGNKEY => "SQLITE_CONSTRAINT_FOREIGNKEY",
        native::SQLITE_CONSTRAINT_FUNCTION => "SQLITE_CONSTRAINT_FUNCTION",
        native::SQLITE_CONSTRAINT_NOTNULL => "SQLITE_CONSTRAINT_NOTNULL",
        native::SQLITE_CONSTRAINT_PRIMARYKEY => "SQLITE_CONSTRAINT_PRIMARYKEY",
        native::SQLITE_CONSTRAINT_ROWID => "SQLITE_CONSTRAINT_ROWID",
        native::SQLITE_CONSTRAINT_TRIGGER => "SQLITE_CONSTRAINT_TRIGGER",
        native::SQLITE_CONSTRAINT_UNIQUE => "SQLITE_CONSTRAINT_UNIQUE",
        native::SQLITE_CONSTRAINT_VTAB => "SQLITE_CONSTRAINT_VTAB",
        native::SQLITE_READONLY_DBMOVED => "SQLITE_READONLY_DBMOVED",
        _ => match primary(code) {
            native::SQLITE_ERROR => "SQLITE_ERROR",
            native::SQLITE_INTERNAL => "SQLITE_INTERNAL",
            native::SQLITE_PERM => "SQLITE_PERM",
            native::SQLITE_ABORT => "SQLITE_ABORT",
            native::SQLITE_BUSY => "SQLITE_BUSY",
            native::SQLITE_LOCKED => "SQLITE_LOCKED",
            native::SQLITE_NOMEM => "SQLITE_NOMEM",
            native::SQLITE_READONLY => "SQLITE_READONLY",
            native::SQLITE_INTERRUPT => "SQLITE_INTERRUPT",
            native::SQLITE_IOERR => "SQLITE_IOERR",
            native::SQLITE_CORRUPT => "SQLITE_CORRUPT",
            native::SQLITE_NOTFOUND => "SQLITE_NOTFOUND",
            native::SQLITE_FULL => "SQLITE_FULL",
            native::SQLITE_CANTOPEN => "SQLITE_CANTOPEN",
            native::SQLITE_PROTOCOL => "SQLITE_PROTOCOL",
            native::SQLITE_SCHEMA => "SQLITE_SCHEMA",
            native::SQLITE_TOOBIG => "SQLITE_TOOBIG",
            native::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
            native::SQLITE_MISMATCH => "SQLITE_MISMATCH",
            native::SQLITE_MISUSE => "SQLITE_MISUSE",
            native::SQLITE_RANGE => "SQLITE_RANGE",
            native::SQLITE_NOTADB => "SQLITE_NOTADB",
            _ => return format!("SQLITE_{code}"),
        },
    };
    match code {
        // The kind of an I/O error is what a search finds.
        code if primary(code) == native::SQLITE_IOERR && code != native::SQLITE_IOERR => {
            format!("{name}_{code}")
        }
        _ => name.to_owned(),
    }
}

/// Where in the target an error stands, as SQLite words it.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    table: Option<String>,
    column: Option<String>,
}

impl Place {
    /// Reads `UNIQUE constraint failed: orders.id, orders.line`, and `cannot store TEXT value in INTEGER column orders.id`.
    fn of(words: &str) -> Self {
        let nowhere = Self { table: None, column: None };
        let list = ["UNIQUE constraint failed: ", "NOT NULL constraint failed: "]
            .iter()
            .find_map(|begin| words.strip_prefix(begin))
            .or_else(|| {
                words.starts_with("cannot store ").then(|| words.rsplit_once(" column "))?.map(|(_, at)| at)
            });
        let Some((first, more)) = list.map(|list| match list.split_once(", ") {
            Some((first, _)) => (first, true),
            None => (list, false),
        }) else {
            return nowhere;
        };
        match first.rsplit_once('.') {
            Some((table, column)) => {
                Self { table: Some(table.to_owned()), column: (!more).then(|| column.to_owned()) }
            }
            None => nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_class() {
        let cases = [
            (native::SQLITE_BUSY, "database is locked", Class::Transient, "SQLITE_BUSY"),
            (native::SQLITE_BUSY_SNAPSHOT, "database is locked", Class::Transient, "SQLITE_BUSY_SNAPSHOT"),
            (native::SQLITE_LOCKED, "database table is locked", Class::Transient, "SQLITE_LOCKED"),
            (native::SQLITE_FULL, "database or disk is full", Class::Transient, "SQLITE_FULL"),
            (native::SQLITE_IOERR_FSYNC, "disk I/O error", Class::Transient, "SQLITE_IOERR_1034"),
            (native::SQLITE_NOMEM, "out of memory", Class::Transient, "SQLITE_NOMEM"),
            (native::SQLITE_CORRUPT, "database disk image is malformed", Class::Fatal, "SQLITE_CORRUPT"),
            (native::SQLITE_NOTADB, "file is not a database", Class::Fatal, "SQLITE_NOTADB"),
            (
                native::SQLITE_READONLY,
                "attempt to write a readonly database",
                Class::WrongServer,
                "SQLITE_READONLY",
            ),
            (native::SQLITE_INTERRUPT, "interrupted", Class::Timeout, "SQLITE_INTERRUPT"),
            (native::SQLITE_SCHEMA, "database schema has changed", Class::StaleCatalog, "SQLITE_SCHEMA"),
            (native::SQLITE_ERROR, "no such table: x", Class::StaleCatalog, "SQLITE_ERROR"),
            (native::SQLITE_ERROR, "table x has no column named y", Class::StaleCatalog, "SQLITE_ERROR"),
            (native::SQLITE_ERROR, "malformed JSON", Class::BadRecord, "SQLITE_ERROR"),
            (native::SQLITE_TOOBIG, "string or blob too big", Class::BadRecord, "SQLITE_TOOBIG"),
            (native::SQLITE_MISMATCH, "datatype mismatch", Class::BadRecord, "SQLITE_MISMATCH"),
        ];
        for (code, words, class, state) in cases {
            let failure = judged(code, words);
            assert_eq!((failure.class, failure.sql_state.as_deref()), (class, Some(state)), "{words}");
            assert_eq!(failure.data.is_some(), class == Class::BadRecord, "{words}");
        }
    }

    #[test]
    fn places_are_read_and_values_are_not_kept() {
        let place = |table: &str, column: Option<&str>| Place {
            table: Some(table.to_owned()),
            column: column.map(str::to_owned),
        };
        assert_eq!(Place::of("NOT NULL constraint failed: items.name"), place("items", Some("name")));
        assert_eq!(Place::of("UNIQUE constraint failed: a.b.id"), place("a.b", Some("id")));
        assert_eq!(Place::of("UNIQUE constraint failed: t.a, t.b"), place("t", None));
        assert_eq!(Place::of("cannot store TEXT value in INTEGER column t.n"), place("t", Some("n")));
        for words in
            ["UNIQUE constraint failed: index 'x'", "CHECK constraint failed: n > 0", "no such table: a.b"]
        {
            assert_eq!(Place::of(words), Place { table: None, column: None }, "{words}");
        }
        for (code, words) in [
            (native::SQLITE_CONSTRAINT_TRIGGER, "secret"),
            (native::SQLITE_CONSTRAINT_VTAB, "secret"),
            (native::SQLITE_ERROR, "fts5: syntax error near \"secret\""),
        ] {
            assert!(!format!("{:?}", judged(code, words)).contains("secret"), "{words}");
        }
    }
}
