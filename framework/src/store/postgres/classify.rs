//! From an error of the driver to what is to be done.
//!
//! Invariant: a message never quotes a record. The server's `detail` does ("Key (id)=(5) already exists") and is never kept; neither is the driver's
//! error itself, whose debug form prints it. The primary message of a data error may quote the value as well: for these the text is ours, from state,
//! table, column and constraint.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::error::{Class, DataError, Failure, Reason};

/// An error that the server sent.
pub(in crate::store) fn answered(error: &PgDatabaseError) -> Failure {
    let state = error.code();
    let place = Place::of(error);
    // Whoever raises an error in a trigger writes what he likes into it, often the row.
    let raised = error.routine() == Some("exec_stmt_raise");
    let message = match condition(state).or(raised.then_some(RAISED)) {
        Some(condition) => place.describe(condition, error.constraint()),
        None => error.message().to_owned(),
    };
    let mut failure = Failure::new(class(state), message);
    failure.sql_state = Some(state.to_owned());
    failure.session_alive = matches!(error.severity(), PgSeverity::Error);
    if failure.class == Class::BadRecord {
        let Place { table, column } = place;
        failure.data = Some(Box::new(DataError { reason: reason(state), table, column }));
    }
    failure
}

/// Instead of the words of whoever raised it.
const RAISED: &str = "raised by a trigger or a function (its words are in the server's log only, since they may quote the row)";

/// What is to be done, by SQLSTATE.
fn class(state: &str) -> Class {
    match state {
        "25006" => Class::WrongServer,
        "57014" | "25P03" | "25P04" => Class::Timeout,
        "55P03" | "42501" | "XX001" | "XX002" => Class::SickObject,
        "3D000" => Class::Fatal,
        // ON CONFLICT that meets a row twice; WITH CHECK OPTION: both depend on the rows.
        "21000" | "44000" => Class::BadRecord,
        _ => match state.get(..2).unwrap_or_default() {
            "08" | "40" | "53" | "57" | "58" | "XX" => Class::Transient,
            "28" | "25" | "3B" | "F0" => Class::Fatal,
            "0A" | "26" | "3F" | "42" => Class::StaleCatalog,
            "0B" | "0F" | "0L" | "0P" | "24" | "2B" | "2D" | "34" | "55" | "HV" => Class::SickObject,
            // 22 data, 23 constraints, 54 a key too long for its index, P0 raised by a trigger, 09, 20, 27 and 2F met in one; and what a trigger
            // raised under a state of its own. None of these is mended by waiting.
            _ => Class::BadRecord,
        },
    }
}

/// The stable code of a bad record.
fn reason(state: &str) -> Reason {
    match state {
        "22001" => Reason::TooLong,
        "22003" => Reason::OutOfRange,
        "22007" | "22008" => Reason::NotATime,
        "22021" | "22P05" => Reason::InvalidUtf8,
        "23502" => Reason::NullInNotNull,
        "23503" => Reason::ForeignKey,
        "23505" | "23P01" => Reason::Unique,
        "23514" | "44000" => Reason::Check,
        "P0001" => Reason::Trigger,
        _ => Reason::ServerData,
    }
}

/// Our words for states whose message may quote a value; none for those whose message may not.
fn condition(state: &str) -> Option<&'static str> {
    Some(match state {
        "22001" => "text too long for the column",
        "22003" => "number out of range",
        "22007" => "not a time of the expected form",
        "22008" => "time out of range",
        "22012" => "division by zero",
        "22021" => "text with a character that the encoding does not hold",
        "22023" => "invalid parameter value",
        "22P02" => "text that is no value of the type",
        "22P03" => "binary form that is no value of the type",
        "22P04" => "malformed COPY data",
        "22P05" => "text with a character that cannot be converted",
        "23502" => "null in a NOT NULL column",
        "23503" => "foreign key without its row",
        "23505" => "unique key that exists already",
        "23514" => "check constraint violated",
        "23P01" => "exclusion constraint violated",
        _ if state.starts_with("22") => "data exception",
        _ if state.starts_with("P0") => RAISED,
        _ if state.starts_with("23") => "integrity constraint violated",
        _ => return None,
    })
}

/// Where in the target an error stands.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    table: Option<String>,
    column: Option<String>,
}

impl Place {
    /// The error's own fields, else the context of a COPY.
    fn of(error: &PgDatabaseError) -> Self {
        let table = match (error.schema(), error.table()) {
            (Some(schema), Some(table)) => Some(format!("{schema}.{table}")),
            (_, table) => table.map(str::to_owned),
        };
        let column = error.column().map(str::to_owned);
        match error.r#where().and_then(Self::of_copy) {
            Some(copy) if table.is_none() => Self { table: copy.table, column: column.or(copy.column) },
            _ => Self { table, column },
        }
    }

    /// Reads `COPY orders, line 12, column amount: "abc"`, without the value.
    fn of_copy(context: &str) -> Option<Self> {
        let line = context.lines().find_map(|line| line.strip_prefix("COPY "))?;
        let (table, rest) = line.split_once(", line ")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let column =
            rest.get(digits..)?.strip_prefix(", column ").map(|column| match column.split_once(": ") {
                Some((column, _value)) => column.to_owned(),
                None => column.to_owned(),
            });
        Some(Self { table: Some(table.to_owned()), column })
    }

    fn describe(&self, condition: &str, constraint: Option<&str>) -> String {
        let parts = [
            ("table", self.table.as_deref()),
            ("column", self.column.as_deref()),
            ("constraint", constraint),
        ];
        let named = parts.iter().filter_map(|(what, name)| name.map(|name| format!(", {what} {name}")));
        std::iter::once(condition.to_owned()).chain(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_class() {
        let table = [
            (Class::Transient, "08006 08P01 40001 40P01 53100 53300 57P01 57P02 57P03 57P05 58030 XX000"),
            (Class::WrongServer, "25006"),
            (Class::Timeout, "57014 25P03"),
            (Class::SickObject, "55P03 42501 55006 XX001"),
            (Class::StaleCatalog, "0A000 42P01 42703 42804 42P10 3F000 26000"),
            (Class::BadRecord, "22001 22P02 23505 23503 P0001 P0004 21000 44000 54000 ZZ001"),
            (Class::Fatal, "28P01 28000 3D000 25P01 25P02 3B001"),
        ];
        for (expected, states) in table {
            for state in states.split(' ') {
                assert_eq!(class(state), expected, "{state}");
            }
        }
    }

    #[test]
    fn errors_without_a_state_keep_their_message_and_are_transient() {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let cases = [
            sqlx::Error::Io(reset),
            sqlx::Error::Tls("certificate has expired".into()),
            sqlx::Error::Protocol("unexpected message".into()),
        ];
        for error in cases {
            let message = error.to_string();
            let failure = Failure::from(error);
            assert_eq!((failure.class, &failure.message), (Class::Transient, &message));
            assert!(failure.sql_state.is_none() && !failure.session_alive && failure.source.is_some());
        }
        let refused = Failure::from(sqlx::Error::Configuration("no such mode".into()));
        assert_eq!(refused.class, Class::Fatal);
    }

    #[test]
    fn the_context_of_a_copy_gives_its_place_and_no_value() {
        let place = |column: Option<&str>| {
            Some(Place { table: Some("orders".into()), column: column.map(str::to_owned) })
        };
        assert_eq!(Place::of_copy("COPY orders, line 12, column amount: \"secret\""), place(Some("amount")));
        assert_eq!(Place::of_copy("COPY orders, line 12, column amount"), place(Some("amount")));
        assert_eq!(Place::of_copy("COPY orders, line 12"), place(None));
        assert_eq!(Place::of_copy("COPY orders, line 12: \"secret, column x\""), place(None));
        assert_eq!(Place::of_copy("SQL function \"f\""), None);
    }
}
