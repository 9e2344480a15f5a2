//! One value into one column: its storage class and its bytes, or the reason why not.
//!
//! Invariant: what the column would give back means exactly what the record says, whatever its affinity; and two cells are the same bytes exactly when SQLite
//! takes them for equal, since a whole number is never bound as a real where integers are allowed too. Must not: quote a value in a message.

mod number;
mod time;

use std::borrow::Cow;

use oncesink::Reason;
use oncesink::plan::Cell;
use oncesink::sqlx::encode::IsNull;
use oncesink::sqlx::error::BoxDynError;
use oncesink::sqlx::sqlite::{SqliteArgumentValue, SqliteTypeInfo};
use oncesink::sqlx::{Encode, Sqlite, Type};
use oncesink::value::{self, Fault, Form, Reading, TextRule};

use crate::catalog::Kind;

/// First byte of a cell: its storage class. The rest is a number of eight bytes that sorts as it counts, the bits of a float, text or bytes.
const INTEGER: u8 = b'i';
const REAL: u8 = b'r';
const TEXT: u8 = b't';
const BLOB: u8 = b'b';

/// Appends a cell. What was appended before a fault is the caller's to cut off.
pub(crate) fn encode(kind: Kind, cell: Cell<'_>, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
    let raw = match (kind, cell) {
        (_, Cell::Json(raw)) => raw,
        (Kind::Blob(limit), Cell::Bytes(bytes)) => return blob(bytes, limit, out),
        _ => return Err(Fault::new(Reason::WrongType, "a value that is no JSON")),
    };
    match kind {
        Kind::Integer(bits) => integer(number::within(raw, bits)?, out),
        Kind::Real => real(value::double(&value::number(raw)?)?, out),
        Kind::Numeric(bounds) => number::exact(raw, bounds, out)?,
        Kind::Text(limit) => text(raw, limit, form.reading, out)?,
        Kind::Blob(limit) => blob(&value::bytes(raw, form)?, limit, out)?,
        Kind::Boolean => integer(i64::from(value::boolean(raw)?), out),
        Kind::Date => time::date(value::date(raw, form)?, out)?,
        Kind::Time(digits) => time::time_of_day(value::time_of_day(raw, digits, form)?, digits, out),
        Kind::Timestamp(digits) => time::wall(value::wall(raw, digits, form)?, digits, out)?,
        Kind::TimestampTz(digits) => time::instant(value::instant(raw, digits, form)?, digits, out)?,
        Kind::Uuid => uuid(value::uuid(raw)?, out),
        Kind::Json => json(raw, out)?,
        Kind::Any => any(raw, form.reading, out)?,
    }
    Ok(())
}

fn integer(value: i64, out: &mut Vec<u8>) {
    out.push(INTEGER);
    // With the sign turned over, bytes sort as numbers do.
    out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
}

/// Zero has two signs, which SQLite does not keep apart.
fn real(value: f64, out: &mut Vec<u8>) {
    out.push(REAL);
    out.extend_from_slice(&(value + 0.0).to_be_bytes());
}

fn text(raw: &str, limit: Option<u32>, reading: Option<Reading>, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.push(TEXT);
    TextRule { limit, null_character: true }.append(raw, reading, out)
}

fn blob(bytes: &[u8], limit: Option<u32>, out: &mut Vec<u8>) -> Result<(), Fault> {
    if limit.is_some_and(|limit| bytes.len() > limit as usize) {
        return Err(Fault::new(Reason::TooLong, "a value longer than the column"));
    }
    out.push(BLOB);
    out.extend_from_slice(bytes);
    Ok(())
}

fn uuid(bytes: [u8; 16], out: &mut Vec<u8>) {
    out.push(TEXT);
    let mut buffer = uuid::Uuid::encode_buffer();
    out.extend_from_slice(uuid::Uuid::from_bytes(bytes).hyphenated().encode_lower(&mut buffer).as_bytes());
}

/// A document as it was received. One that is a bare number would be taken for a number by the column's affinity: it is bound as one.
fn json(raw: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    if matches!(raw.as_bytes().first(), Some(b'-' | b'0'..=b'9')) {
        return number::exact(raw, None, out);
    }
    out.push(TEXT);
    out.extend_from_slice(raw.as_bytes());
    Ok(())
}

fn any(raw: &str, reading: Option<Reading>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match raw.as_bytes().first() {
        _ if reading.is_some() => text(raw, None, reading, out),
        Some(b't' | b'f') => {
            integer(i64::from(value::boolean(raw)?), out);
            Ok(())
        }
        Some(b'-' | b'0'..=b'9') => number::exact(raw, None, out),
        _ => text(raw, None, None, out),
    }
}

/// A cell on its way into a statement; none is NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'c>(pub(crate) Option<&'c [u8]>);

impl<'c> Bound<'c> {
    fn argument(self) -> Option<Result<SqliteArgumentValue<'c>, BoxDynError>> {
        let (class, rest) = self.0?.split_first()?;
        let number = || Ok::<[u8; 8], BoxDynError>(rest.try_into()?);
        Some(match *class {
            INTEGER => number().map(|bytes| SqliteArgumentValue::Int64(i64::from_be_bytes(bytes) ^ i64::MIN)),
            REAL => number().map(|bytes| SqliteArgumentValue::Double(f64::from_be_bytes(bytes))),
            TEXT => match std::str::from_utf8(rest) {
                Ok(text) => Ok(SqliteArgumentValue::Text(Cow::Borrowed(text))),
                Err(error) => Err(error.into()),
            },
            _ => Ok(SqliteArgumentValue::Blob(Cow::Borrowed(rest))),
        })
    }
}

impl Type<Sqlite> for Bound<'_> {
    fn type_info() -> SqliteTypeInfo {
        <[u8] as Type<Sqlite>>::type_info()
    }
}

impl<'c> Encode<'c, Sqlite> for Bound<'c> {
    fn encode_by_ref(&self, arguments: &mut Vec<SqliteArgumentValue<'c>>) -> Result<IsNull, BoxDynError> {
        match self.argument().transpose()? {
            Some(argument) => {
                arguments.push(argument);
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        }
    }
}

#[cfg(test)]
mod tests;
