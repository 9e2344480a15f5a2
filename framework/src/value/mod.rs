//! One JSON value, read for a column without losing or changing anything: what every table sink shares, whatever its database.
//!
//! Invariant: what a column would give back means exactly what the record says; else there is a [`Fault`]. Must not: quote a value in a message.

mod decimal;
pub use decimal::Decimal;
mod epoch;
pub use epoch::Unit;
mod float;
pub use float::{double, real};
mod integer;
pub use integer::integer;
mod string;
pub use string::{TextRule, characters, null_character, unescape, unescape_into, unicode};
mod time;
pub use time::{DAY, Zone, date, instant, time_of_day, time_with_offset, wall, written};
mod bytes;
pub use bytes::bytes;
mod walls;

use std::borrow::Cow;

use crate::error::Reason;

/// Why a value does not fit; the text completes "field x: ... does not fit column y".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Stable code.
    pub reason: Reason,
    /// For people, without the value.
    pub what: Cow<'static, str>,
}

impl Fault {
    /// A fault with its reason.
    pub fn new(reason: Reason, what: impl Into<Cow<'static, str>>) -> Self {
        Self { reason, what: what.into() }
    }
}

/// How the file says that a column's values are to be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// `as = "..."`.
    pub reading: Option<Reading>,
    /// `zone = "..."`, of times that carry none.
    pub zone: Option<Zone>,
}

impl Form {
    /// The unit of numbers in a time column.
    pub fn unit(&self) -> Option<Unit> {
        match self.reading {
            Some(Reading::Epoch(unit)) => Some(unit),
            _ => None,
        }
    }
}

/// `as = "..."`: a reading that is never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A number counts these units: `epoch-s`, `epoch-ms`, `epoch-us`, `epoch-ns`, `epoch-days`.
    Epoch(Unit),
    /// `json-text`: any JSON, objects and arrays too, as its text.
    JsonText,
    /// `base64`: the bytes that a string stands for, padded or not, in the usual or the URL alphabet.
    Base64,
    /// `hex`: the bytes that a string of hexadecimal digits stands for.
    Hex,
    /// `utf8`: the bytes of a string's text.
    Utf8,
}

impl Reading {
    /// All readings by the name that the file has for them.
    pub const ALL: [(&'static str, Self); 9] = [
        ("epoch-s", Self::Epoch(Unit::Seconds)),
        ("epoch-ms", Self::Epoch(Unit::Milliseconds)),
        ("epoch-us", Self::Epoch(Unit::Microseconds)),
        ("epoch-ns", Self::Epoch(Unit::Nanoseconds)),
        ("epoch-days", Self::Epoch(Unit::Days)),
        ("json-text", Self::JsonText),
        ("base64", Self::Base64),
        ("hex", Self::Hex),
        ("utf8", Self::Utf8),
    ];

    /// The name that the file has for it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, reading)| *reading == self).map_or("", |(name, _)| name)
    }
}

/// The value is JSON null.
pub fn is_null(raw: &str) -> bool {
    raw == "null"
}

/// What kind of JSON value this is, for a message.
pub fn shape(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// A value of another kind than the column takes.
pub fn wrong_type(raw: &str) -> Fault {
    Fault::new(Reason::WrongType, shape(raw))
}

/// The text of a number: as JSON writes it, or inside a string.
///
/// # Errors
/// Any other kind of value. The text of a string is not looked at yet.
pub fn number(raw: &str) -> Result<Cow<'_, str>, Fault> {
    match raw.as_bytes().first() {
        Some(b'"') => string::unescape(raw),
        Some(b'-' | b'0'..=b'9') => Ok(Cow::Borrowed(raw)),
        _ => Err(wrong_type(raw)),
    }
}

/// Reads what [`number`] gave.
///
/// # Errors
/// A text that is no number.
pub fn decimal(text: &str) -> Result<Decimal<'_>, Fault> {
    Decimal::parse(text).ok_or(Fault::new(Reason::NotANumber, "a string that is no number"))
}

/// The content of a JSON string.
///
/// # Errors
/// Any other kind of value.
pub fn text(raw: &str) -> Result<Cow<'_, str>, Fault> {
    if raw.starts_with('"') { string::unescape(raw) } else { Err(wrong_type(raw)) }
}

/// `true` or `false`.
///
/// # Errors
/// Any other value, numbers and strings too.
pub fn boolean(raw: &str) -> Result<bool, Fault> {
    match raw {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wrong_type(raw)),
    }
}

/// Hyphenated, plain or in braces, in either case.
///
/// # Errors
/// Anything else.
pub fn uuid(raw: &str) -> Result<[u8; 16], Fault> {
    let text = text(raw)?;
    let parsed = uuid::Uuid::try_parse(&text).ok().filter(|_| !text.starts_with("urn:"));
    parsed.map(uuid::Uuid::into_bytes).ok_or(Fault::new(Reason::WrongType, "a string that is no UUID"))
}
