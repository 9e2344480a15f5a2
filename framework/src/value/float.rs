//! Floats of 32 and 64 bits.
//!
//! Invariant: a `real` gives back, as Postgres prints it, the very number that was written; a `double` keeps the usual reading of JSON, which is the
//! nearest one. Neither becomes infinite, and neither becomes zero unless zero was written.

use std::fmt::Write;

use crate::error::Reason;

use super::{Decimal, Fault, decimal};

/// The nearest 64-bit float.
///
/// # Errors
/// No number, or one that would become infinite or zero.
pub fn double(text: &str) -> Result<f64, Fault> {
    let exact = decimal(text)?;
    let value: f64 = text.parse().map_err(|_| not_a_number())?;
    if value.is_infinite() || (value == 0.0 && !exact.is_zero()) {
        return Err(out_of_range());
    }
    Ok(value)
}

/// The 32-bit float that Postgres prints as this number.
///
/// # Errors
/// No number, out of range, more digits than such a float keeps.
pub fn real(text: &str) -> Result<f32, Fault> {
    let exact = decimal(text)?;
    let value: f32 = text.parse().map_err(|_| not_a_number())?;
    if value.is_infinite() || (value == 0.0 && !exact.is_zero()) {
        return Err(out_of_range());
    }
    if value == 0.0 || printed(value, &exact) {
        return Ok(value);
    }
    Err(Fault::new(Reason::Inexact, "a number with more digits than a real keeps"))
}

/// Whether Postgres prints the float as this number: the shortest one that reads back as the float, ties to an even digit, and, unlike elsewhere, not one
/// that lies half-way between two floats (src/common/f2s.c, STRICTLY_SHORTEST is off).
fn printed(value: f32, number: &Decimal<'_>) -> bool {
    let mut buffer = ryu::Buffer::new();
    let shortest = buffer.format_finite(value);
    if !half_way(value, shortest) {
        return Decimal::parse(shortest).as_ref() == Some(number);
    }
    (0..DIGITS_MAX)
        .find_map(|digits| longer(value, digits))
        .is_some_and(|text| Decimal::parse(text.as_str()).as_ref() == Some(number))
}

/// Digits that tell any 32-bit float from its neighbours.
const DIGITS_MAX: usize = 9;

/// The nearest number of one digit and this many more, if it reads back as the float and is not half-way to another.
fn longer(value: f32, digits: usize) -> Option<Short> {
    let mut text = Short::default();
    write!(text, "{value:.digits$e}").ok()?;
    let fits = text.as_str().parse() == Ok(value) && !half_way(value, text.as_str());
    fits.then_some(text)
}

/// Whether a number that reads as this float lies in the middle between it and a neighbour. Such a middle has 25 significant bits, so a double holds it.
fn half_way(value: f32, text: &str) -> bool {
    let middle = |neighbour: f32| (f64::from(value) + f64::from(neighbour)) / 2.0;
    text.parse::<f64>().is_ok_and(|read| read == middle(value.next_up()) || read == middle(value.next_down()))
}

fn not_a_number() -> Fault {
    Fault::new(Reason::NotANumber, "a string that is no number")
}

fn out_of_range() -> Fault {
    Fault::new(Reason::OutOfRange, "a number out of range")
}

/// A few bytes on the stack, so that formatting a float allocates nothing.
#[derive(Default)]
struct Short {
    bytes: [u8; 32],
    len: usize,
}

impl Short {
    fn as_str(&self) -> &str {
        std::str::from_utf8(self.bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
