//! Errors by what is to be done about them.
//!
//! A connector gives the class, the framework acts on it: connectors retry nothing and sleep nowhere.

use std::error::Error;
use std::fmt;

use crate::record::TopicPartition;

type Source = Box<dyn Error + Send + Sync>;

/// What the framework does about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Lost connection, serialization failure, deadlock, server out of resources: the same records again, with back-off, for as long as it lasts.
    Transient,
    /// A read-only or recovering server: the connection is closed, the name resolved again, only a writable session accepted.
    WrongServer,
    /// A lock timeout, a dropped table, a revoked grant on one table: the next attempt is split, so that healthy partitions flow on.
    SickObject,
    /// A timeout of ours on a live session: rolled back and tried again, with an event that names the statement.
    Timeout,
    /// The catalog changed under us: the sink is opened again and the batch tried once more, then it is a sick object.
    StaleCatalog,
    /// Data that the target refuses: isolated to one record, then the policy for bad records.
    BadRecord,
    /// Nothing that waiting would mend: the sink ends, the process goes on.
    Fatal,
}

impl Class {
    /// Label value in metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::WrongServer => "wrong_server",
            Self::SickObject => "sick_object",
            Self::Timeout => "timeout",
            Self::StaleCatalog => "stale_catalog",
            Self::BadRecord => "bad_record",
            Self::Fatal => "fatal",
        }
    }
}

/// A failed call, with its class and the first cause; causes that came later are attached.
#[derive(Debug)]
pub struct Failure {
    /// What is to be done.
    pub class: Class,
    /// What was tried and what went wrong, for people; never a record's content.
    pub message: String,
    /// SQLSTATE, or the name of SQLite's result code, when the database gave one. A reset, a TLS or a DNS failure has none.
    pub sql_state: Option<String>,
    /// For class [`Class::BadRecord`]: what the server refused.
    pub data: Option<Box<DataError>>,
    /// Whether the session can still be used after a rollback.
    pub session_alive: bool,
    /// Whether the server or a file refuses us: what would stop a start, and is waited for while the sink runs.
    pub refused: bool,
    /// The underlying error.
    pub source: Option<Source>,
    /// Errors met while cleaning up after this one.
    pub later: Vec<String>,
}

impl Failure {
    /// A failure without a server's answer.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            sql_state: None,
            data: None,
            session_alive: false,
            refused: false,
            source: None,
            later: Vec::new(),
        }
    }

    /// A fatal failure: configuration or a broken contract.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::new(Class::Fatal, message)
    }

    /// Adds what was being done, in front.
    #[must_use]
    pub fn context(mut self, doing: &str) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    /// Puts a sink's name where its connector, which does not know it, wrote `[sinks.<name>`.
    #[must_use]
    pub fn of_sink(mut self, name: &str) -> Self {
        self.message = self.message.replace("[sinks.<name>", &format!("[sinks.{name}"));
        self
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.sql_state {
            // SQLite has no SQLSTATE; the names of its result codes say whose they are.
            Some(code) if code.starts_with("SQLITE_") => write!(f, " ({code})"),
            Some(state) => write!(f, " (SQLSTATE {state})"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// What of a record the server refused, as far as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// Stable code.
    pub reason: Reason,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
}

/// The answer to COMMIT when it is no success.
#[derive(Debug)]
pub enum CommitFailure {
    /// The server said that it rolled back (class 23, 40001, 40P01, P0001), or SQLite left the transaction open and it was rolled back: a verdict.
    RolledBack(Failure),
    /// Everything else: the transaction may or may not be applied; only the stored offset tells.
    InDoubt(Failure),
}

/// Why a record is bad: a closed list of stable codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The value is no JSON, or not of the expected shape.
    InvalidJson,
    /// Text that is no UTF-8.
    InvalidUtf8,
    /// A record without a value where none is expected.
    Tombstone,
    /// A field that has no column.
    UnknownField,
    /// A value of another type than the column's.
    WrongType,
    /// A string that is no number.
    NotANumber,
    /// A string that is no time of the expected form.
    NotATime,
    /// A number beyond the column's range.
    OutOfRange,
    /// Digits that the column would cut.
    Inexact,
    /// Text longer than the column.
    TooLong,
    /// U+0000 where the target cannot hold it.
    NullCharacter,
    /// Null in a NOT NULL column.
    NullInNotNull,
    /// A field that is not there, for a NOT NULL column that nothing else fills.
    MissingField,
    /// No value for a key column.
    NoKey,
    /// Null for a key column.
    NullInKey,
    /// No row with the key of a record that updates.
    MissingRow,
    /// A unique constraint.
    Unique,
    /// A foreign key.
    ForeignKey,
    /// A check constraint.
    Check,
    /// An error raised by a trigger.
    Trigger,
    /// Another data error of the server.
    ServerData,
    /// The connector's own word.
    Rejected,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 22] = [
        Self::InvalidJson,
        Self::InvalidUtf8,
        Self::Tombstone,
        Self::UnknownField,
        Self::WrongType,
        Self::NotANumber,
        Self::NotATime,
        Self::OutOfRange,
        Self::Inexact,
        Self::TooLong,
        Self::NullCharacter,
        Self::NullInNotNull,
        Self::MissingField,
        Self::NoKey,
        Self::NullInKey,
        Self::MissingRow,
        Self::Unique,
        Self::ForeignKey,
        Self::Check,
        Self::Trigger,
        Self::ServerData,
        Self::Rejected,
    ];

    /// What kind of fault it is, for dead letters: `decode` (the payload cannot be read), `value` (a field does not fit its column), `constraint` (the
    /// target's rules) or `mapping` (fields and columns do not meet).
    pub const fn class(self) -> &'static str {
        match self {
            Self::InvalidJson | Self::InvalidUtf8 | Self::Tombstone | Self::NoKey | Self::NullInKey => {
                "decode"
            }
            Self::WrongType
            | Self::NotANumber
            | Self::NotATime
            | Self::OutOfRange
            | Self::Inexact
            | Self::TooLong
            | Self::NullCharacter
            | Self::ServerData
            | Self::Rejected => "value",
            Self::NullInNotNull
            | Self::MissingField
            | Self::MissingRow
            | Self::Unique
            | Self::ForeignKey
            | Self::Check
            | Self::Trigger => "constraint",
            Self::UnknownField => "mapping",
        }
    }

    /// The code in metrics, logs and dead letters.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid_json",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::Tombstone => "tombstone",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::NotANumber => "not_a_number",
            Self::NotATime => "not_a_time",
            Self::OutOfRange => "out_of_range",
            Self::Inexact => "inexact",
            Self::TooLong => "too_long",
            Self::NullCharacter => "null_character",
            Self::NullInNotNull => "null_in_not_null",
            Self::MissingField => "missing_field",
            Self::NoKey => "no_key",
            Self::NullInKey => "null_in_key",
            Self::MissingRow => "missing_row",
            Self::Unique => "unique",
            Self::ForeignKey => "foreign_key",
            Self::Check => "check",
            Self::Trigger => "trigger",
            Self::ServerData => "server_data",
            Self::Rejected => "rejected",
        }
    }
}

/// One record that cannot become a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BadRecord {
    /// Its partition.
    pub place: TopicPartition,
    /// Its offset.
    pub offset: i64,
    /// Stable code.
    pub reason: Reason,
    /// For people, without the value.
    pub message: String,
    /// SQLSTATE when the server refused it.
    pub sql_state: Option<String>,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}: {}", self.place, self.offset, self.message)
    }
}

/// What a sink reports.
#[derive(Debug)]
pub enum SinkError {
    /// Records known to be bad, with their coordinates; no search is needed. Never empty.
    Bad(Vec<BadRecord>),
    /// Anything else. A failure of class [`Class::BadRecord`] means that some record of the batch is bad, and the framework looks for it.
    Failed(Failure),
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(records) => match records.first() {
                Some(first) if records.len() == 1 => write!(f, "bad record {first}"),
                Some(first) => write!(f, "{} bad records, the first {first}", records.len()),
                None => f.write_str("no bad record"),
            },
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl Error for SinkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Bad(_) => None,
            Self::Failed(failure) => failure.source(),
        }
    }
}

impl From<BadRecord> for SinkError {
    fn from(record: BadRecord) -> Self {
        Self::Bad(vec![record])
    }
}

impl From<Failure> for SinkError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_a_code_of_its_own_and_one_of_four_classes() {
        assert!(
            Reason::ALL.iter().enumerate().all(|(index, reason)| *reason as usize == index),
            "none is left out"
        );
        let codes: BTreeSet<&str> = Reason::ALL.map(Reason::code).into();
        assert_eq!(codes.len(), Reason::ALL.len());
        // The table of dead letters takes no others.
        let classes: BTreeSet<&str> = Reason::ALL.map(Reason::class).into();
        assert_eq!(classes, BTreeSet::from(["constraint", "decode", "mapping", "value"]));
    }
}
