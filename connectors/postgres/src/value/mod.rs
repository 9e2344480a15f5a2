//! One value into one column: bytes in Postgres' binary form, or the reason why not.
//!
//! Invariant: what the column would give back means exactly what the record says. Must not: quote a value in a message.

mod json;
mod numeric;

use oncesink::Reason;
use oncesink::plan::{Cell, Takes};
use oncesink::value::{self, Fault, Form, TextRule};

use crate::catalog::Kind;

/// Days and microseconds from 1970-01-01 to 2000-01-01, where Postgres begins to count.
const DAYS: i64 = 10_957;
const MICROS: i64 = DAYS * value::DAY;

/// Appends a value's bytes, without a length. What was appended before a fault is the caller's to cut off.
pub(crate) fn encode(kind: Kind, cell: Cell<'_>, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
    let Cell::Json(raw) = cell else {
        return Err(Fault::new(Reason::WrongType, "a value that is no JSON"));
    };
    match kind {
        Kind::SmallInt => out.extend_from_slice(&value::integer::<i16>(&value::number(raw)?)?.to_be_bytes()),
        Kind::Integer => out.extend_from_slice(&value::integer::<i32>(&value::number(raw)?)?.to_be_bytes()),
        Kind::BigInt => out.extend_from_slice(&value::integer::<i64>(&value::number(raw)?)?.to_be_bytes()),
        Kind::Real => out.extend_from_slice(&value::real(&value::number(raw)?)?.to_be_bytes()),
        Kind::Double => out.extend_from_slice(&value::double(&value::number(raw)?)?.to_be_bytes()),
        Kind::Numeric(bounds) => numeric::encode(value::decimal(&value::number(raw)?)?, bounds, out)?,
        Kind::Text => TextRule::default().append(raw, form.reading, out)?,
        Kind::Varchar(limit) => TextRule { limit, ..TextRule::default() }.append(raw, form.reading, out)?,
        Kind::Boolean => out.push(u8::from(value::boolean(raw)?)),
        Kind::Uuid => out.extend_from_slice(&value::uuid(raw)?),
        Kind::TimestampTz(digits) => {
            out.extend_from_slice(&since_2000(value::instant(raw, digits, form)?)?.to_be_bytes())
        }
        Kind::Timestamp(digits) => {
            out.extend_from_slice(&since_2000(value::wall(raw, digits, form)?)?.to_be_bytes())
        }
        Kind::Date => out.extend_from_slice(&days_since_2000(value::date(raw, form)?)?.to_be_bytes()),
        Kind::Json => out.extend_from_slice(raw.as_bytes()),
        Kind::Jsonb => {
            json::check(raw)?;
            out.push(1);
            out.extend_from_slice(raw.as_bytes());
        }
    }
    Ok(())
}

/// What kind of values a column of this type takes, as far as the file's keys depend on it.
pub(crate) const fn takes(kind: Kind) -> Takes {
    match kind {
        Kind::TimestampTz(_) | Kind::Timestamp(_) | Kind::Date => Takes::Time,
        Kind::Text | Kind::Varchar(_) => Takes::Text,
        Kind::Json | Kind::Jsonb => Takes::Json,
        _ => Takes::Plain,
    }
}

/// Whether equal values have one [`key_form`]. JSON has no such form: 1 and 1.0 are equal inside a jsonb.
pub(crate) const fn can_be_key(kind: Kind) -> bool {
    !matches!(kind, Kind::Json | Kind::Jsonb)
}

/// Appends a form that is the same for values that Postgres takes for equal.
pub(crate) fn key_form(kind: Kind, encoded: &[u8], out: &mut Vec<u8>) {
    match kind {
        Kind::Numeric(_) => numeric::key_form(encoded, out),
        // Zero has two signs.
        Kind::Real | Kind::Double
            if encoded.first() == Some(&0x80) && encoded.iter().skip(1).all(|byte| *byte == 0) =>
        {
            out.resize(out.len() + encoded.len(), 0);
        }
        _ => out.extend_from_slice(encoded),
    }
}

/// Years that a timestamp holds: 4713 BC to 294276 AD.
fn since_2000(micros: i64) -> Result<i64, Fault> {
    const FIRST: i64 = -211_813_488_000_000_000;
    const BEYOND: i64 = 9_223_371_331_200_000_000;
    micros.checked_sub(MICROS).filter(|micros| (FIRST..BEYOND).contains(micros)).ok_or_else(out_of_range)
}

/// Years that a date holds: 4713 BC to 5874897 AD.
fn days_since_2000(days: i64) -> Result<i32, Fault> {
    const FIRST: i64 = -2_451_545;
    const BEYOND: i64 = 2_145_031_949;
    let days =
        days.checked_sub(DAYS).filter(|days| (FIRST..BEYOND).contains(days)).ok_or_else(out_of_range)?;
    i32::try_from(days).map_err(|_| out_of_range())
}

fn out_of_range() -> Fault {
    Fault::new(Reason::OutOfRange, "a time out of range")
}

#[cfg(test)]
mod tests;
