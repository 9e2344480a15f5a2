//! One JSON value into one column: bytes in Postgres' binary form, or the reason why not.
//!
//! Invariant: what the column would give back means exactly what the record says. Must not: quote a value in a message.

mod decimal;
mod float;
mod integer;
mod json;
mod numeric;
mod string;
mod time;
mod wall;

use std::borrow::Cow;

use oncesink::Reason;

use crate::catalog::Kind;
use decimal::Decimal;

pub(crate) use time::Zone;

/// Why a value does not fit; the text completes "field x: ... does not fit column y".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) reason: Reason,
    pub(crate) what: Cow<'static, str>,
}

impl Fault {
    pub(crate) fn new(reason: Reason, what: impl Into<Cow<'static, str>>) -> Self {
        Self { reason, what: what.into() }
    }
}

/// The value is JSON null.
pub(crate) fn is_null(raw: &str) -> bool {
    raw == "null"
}

/// Appends a value's bytes, without a length. `raw` is one JSON value, already checked for syntax, without blanks around it, and not null. What was
/// appended before a fault is the caller's to cut off.
pub(crate) fn encode(kind: Kind, zone: Option<&Zone>, raw: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    match kind {
        Kind::SmallInt => out.extend_from_slice(&integer::encode::<i16>(&number(raw)?)?.to_be_bytes()),
        Kind::Integer => out.extend_from_slice(&integer::encode::<i32>(&number(raw)?)?.to_be_bytes()),
        Kind::BigInt => out.extend_from_slice(&integer::encode::<i64>(&number(raw)?)?.to_be_bytes()),
        Kind::Real => out.extend_from_slice(&float::real(&number(raw)?)?.to_be_bytes()),
        Kind::Double => out.extend_from_slice(&float::double(&number(raw)?)?.to_be_bytes()),
        Kind::Numeric(bounds) => numeric::encode(decimal(&number(raw)?)?, bounds, out)?,
        Kind::Text => string::encode(raw, None, out)?,
        Kind::Varchar(limit) => string::encode(raw, limit, out)?,
        Kind::Boolean => out.push(boolean(raw)?),
        Kind::Uuid => out.extend_from_slice(&uuid(raw)?),
        Kind::TimestampTz(digits) => {
            out.extend_from_slice(&time::instant(&text(raw)?, digits, zone)?.to_be_bytes())
        }
        Kind::Timestamp(digits) => {
            out.extend_from_slice(&time::wall(&text(raw)?, digits, zone)?.to_be_bytes())
        }
        Kind::Date => out.extend_from_slice(&time::date(&text(raw)?)?.to_be_bytes()),
        Kind::Json => out.extend_from_slice(raw.as_bytes()),
        Kind::Jsonb => {
            json::check(raw)?;
            out.push(1);
            out.extend_from_slice(raw.as_bytes());
        }
    }
    Ok(())
}

/// What kind of JSON value this is, for a message.
pub(crate) fn shape(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn wrong_type(raw: &str) -> Fault {
    Fault::new(Reason::WrongType, shape(raw))
}

/// The text of a number: as JSON writes it, or inside a string.
fn number(raw: &str) -> Result<Cow<'_, str>, Fault> {
    match raw.as_bytes().first() {
        Some(b'"') => string::unescape(raw),
        Some(b'-' | b'0'..=b'9') => Ok(Cow::Borrowed(raw)),
        _ => Err(wrong_type(raw)),
    }
}

fn decimal(text: &str) -> Result<Decimal<'_>, Fault> {
    Decimal::parse(text).ok_or(Fault::new(Reason::NotANumber, "a string that is no number"))
}

/// The content of a JSON string.
fn text(raw: &str) -> Result<Cow<'_, str>, Fault> {
    if raw.starts_with('"') { string::unescape(raw) } else { Err(wrong_type(raw)) }
}

fn boolean(raw: &str) -> Result<u8, Fault> {
    match raw {
        "true" => Ok(1),
        "false" => Ok(0),
        _ => Err(wrong_type(raw)),
    }
}

/// Hyphenated, plain or in braces, in either case, as Postgres reads them.
fn uuid(raw: &str) -> Result<[u8; 16], Fault> {
    let text = text(raw)?;
    let parsed = uuid::Uuid::try_parse(&text).ok().filter(|_| !text.starts_with("urn:"));
    parsed.map(uuid::Uuid::into_bytes).ok_or(Fault::new(Reason::WrongType, "a string that is no UUID"))
}

#[cfg(test)]
mod tests;
