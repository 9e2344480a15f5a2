//! One value into one column: bytes in Postgres' binary form, or the reason why not.
//!
//! Invariant: what the column would give back means exactly what the record says. Must not: quote a value in a message.

mod array;
mod bits;
mod interval;
mod json;
mod network;
mod numeric;

use oncesink::Reason;
use oncesink::plan::{Cell, Takes};
use oncesink::value::{self, Fault, Form, TextRule};

use crate::catalog::{Kind, Type};

/// Days and microseconds from 1970-01-01 to 2000-01-01, where Postgres begins to count.
const DAYS: i64 = 10_957;
const MICROS: i64 = DAYS * value::DAY;

/// Most bytes of an identifier (NAMEDATALEN of a server built as usual, less the zero behind it).
const NAME_BYTES_MAX: usize = 63;

/// Appends a value's bytes, without a length. What was appended before a fault is the caller's to cut off.
pub(crate) fn encode(sort: &Type, cell: Cell<'_>, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
    match (cell, sort.element) {
        (Cell::Json(raw), None) => scalar(sort.kind, raw, form, out),
        (Cell::Json(raw), Some(element)) => array::encode(sort.kind, element, raw, form, out),
        (Cell::Bytes(bytes), None) if sort.kind == Kind::Bytea => {
            out.extend_from_slice(bytes);
            Ok(())
        }
        (Cell::Bytes(_), _) => Err(Fault::new(Reason::WrongType, "a value that is no JSON")),
    }
}

/// One value, or one element of an array.
fn scalar(kind: Kind, raw: &str, form: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
    match kind {
        Kind::SmallInt => out.extend_from_slice(&value::integer::<i16>(&value::number(raw)?)?.to_be_bytes()),
        Kind::Integer => out.extend_from_slice(&value::integer::<i32>(&value::number(raw)?)?.to_be_bytes()),
        Kind::BigInt => out.extend_from_slice(&value::integer::<i64>(&value::number(raw)?)?.to_be_bytes()),
        Kind::Oid => out.extend_from_slice(&value::integer::<u32>(&value::number(raw)?)?.to_be_bytes()),
        Kind::Real => out.extend_from_slice(&value::real(&value::number(raw)?)?.to_be_bytes()),
        Kind::Double => out.extend_from_slice(&value::double(&value::number(raw)?)?.to_be_bytes()),
        Kind::Numeric(bounds) => numeric::encode(value::decimal(&value::number(raw)?)?, bounds, out)?,
        Kind::Text | Kind::Citext => TextRule::default().append(raw, form.reading, out)?,
        Kind::Varchar(limit) | Kind::Char(limit) => {
            TextRule { limit, ..TextRule::default() }.append(raw, form.reading, out)?
        }
        Kind::OneByte => one_byte(&value::text(raw)?, out)?,
        Kind::Name => name(&value::text(raw)?, out)?,
        Kind::Label => out.extend_from_slice(storable(&value::text(raw)?)?.as_bytes()),
        Kind::Bytea => out.extend_from_slice(&value::bytes(raw, form)?),
        Kind::Boolean => out.push(u8::from(value::boolean(raw)?)),
        Kind::Uuid => out.extend_from_slice(&value::uuid(raw)?),
        Kind::TimestampTz(digits) => {
            out.extend_from_slice(&since_2000(value::instant(raw, digits, form)?)?.to_be_bytes())
        }
        Kind::Timestamp(digits) => {
            out.extend_from_slice(&since_2000(value::wall(raw, digits, form)?)?.to_be_bytes())
        }
        Kind::Date => out.extend_from_slice(&days_since_2000(value::date(raw, form)?)?.to_be_bytes()),
        Kind::Time(digits) => out.extend_from_slice(&value::time_of_day(raw, digits, form)?.to_be_bytes()),
        Kind::TimeTz(digits) => {
            let (micros, east) = value::time_with_offset(raw, digits)?;
            out.extend_from_slice(&micros.to_be_bytes());
            // Postgres counts seconds west of Greenwich.
            out.extend_from_slice(&(-east).to_be_bytes());
        }
        Kind::Interval(bounds) => interval::encode(&value::text(raw)?, bounds, out)?,
        Kind::Inet => network::inet(&value::text(raw)?, out)?,
        Kind::Cidr => network::cidr(&value::text(raw)?, out)?,
        Kind::MacAddr => network::mac::<6>(&value::text(raw)?, out)?,
        Kind::MacAddr8 => network::mac::<8>(&value::text(raw)?, out)?,
        Kind::Bit(length) => bits::exactly(&value::text(raw)?, length, out)?,
        Kind::Varbit(limit) => bits::at_most(&value::text(raw)?, limit, out)?,
        Kind::Json => out.extend_from_slice(raw.as_bytes()),
        Kind::Jsonb => {
            json::check(raw)?;
            out.push(1);
            out.extend_from_slice(raw.as_bytes());
        }
        Kind::Unwritten => return Err(value::wrong_type(raw)),
    }
    Ok(())
}

/// `"char"` holds a byte, and gives only ASCII back as it was; the empty text is its zero.
fn one_byte(text: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    match storable(text)?.as_bytes() {
        [] => out.push(0),
        [byte] => out.push(*byte),
        _ => return Err(Fault::new(Reason::TooLong, "a text that is not one ASCII character")),
    }
    Ok(())
}

/// The server would cut a longer one in silence, or refuse it.
fn name(text: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    if text.len() > NAME_BYTES_MAX {
        return Err(Fault::new(Reason::TooLong, "a name longer than 63 bytes"));
    }
    out.extend_from_slice(storable(text)?.as_bytes());
    Ok(())
}

fn storable(text: &str) -> Result<&str, Fault> {
    if text.contains('\0') { Err(value::null_character()) } else { Ok(text) }
}

/// What kind of values a column of this type takes, as far as the file's keys depend on it. An array takes for each element what its kind takes; it is no
/// document, whatever its elements are.
pub(crate) fn takes(sort: &Type) -> Takes {
    match takes_one(sort.kind) {
        Takes::Json if sort.element.is_some() => Takes::Plain,
        takes => takes,
    }
}

/// The same of one value.
pub(crate) const fn takes_one(kind: Kind) -> Takes {
    match kind {
        Kind::Unwritten => Takes::Unsupported,
        Kind::TimestampTz(_) | Kind::Timestamp(_) | Kind::Date | Kind::Time(_) => Takes::Time,
        Kind::Text | Kind::Citext | Kind::Varchar(_) | Kind::Char(_) => Takes::Text,
        Kind::Bytea => Takes::Bytes,
        Kind::Json | Kind::Jsonb => Takes::Json,
        _ => Takes::Plain,
    }
}

/// Whether equal values have one [`key_form`]. JSON has no such form: 1 and 1.0 are equal inside a jsonb. Neither has citext, for whose equality the server's
/// collation speaks, and neither have arrays, as far as we go.
pub(crate) fn can_be_key(sort: &Type) -> bool {
    sort.element.is_none() && !matches!(sort.kind, Kind::Json | Kind::Jsonb | Kind::Citext | Kind::Unwritten)
}

/// Appends a form that is the same for values that Postgres takes for equal.
pub(crate) fn key_form(sort: &Type, encoded: &[u8], out: &mut Vec<u8>) {
    match sort.kind {
        Kind::Numeric(_) => numeric::key_form(encoded, out),
        Kind::Interval(_) => interval::key_form(encoded, out),
        // Blanks at the end mean nothing in it.
        Kind::Char(_) => {
            let end = encoded.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            out.extend_from_slice(encoded.get(..end).unwrap_or_default());
        }
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
