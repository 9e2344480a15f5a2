//! real and double.
//!
//! Invariant: a `real` gives back, in its shortest form, the very number that was written; a `double` keeps the usual reading of JSON, which is the
//! nearest one. Neither becomes infinite, and neither becomes zero unless zero was written.

use std::fmt::Write;

use oncesink::Reason;

use super::{Decimal, Fault, decimal};

/// The nearest 64-bit float.
pub(super) fn double(text: &str) -> Result<f64, Fault> {
    let exact = decimal(text)?;
    let value: f64 = text.parse().map_err(|_| not_a_number())?;
    if value.is_infinite() || (value == 0.0 && !exact.is_zero()) {
        return Err(out_of_range());
    }
    Ok(value)
}

/// The 32-bit float whose shortest form is this number.
pub(super) fn real(text: &str) -> Result<f32, Fault> {
    let exact = decimal(text)?;
    let value: f32 = text.parse().map_err(|_| not_a_number())?;
    if value.is_infinite() || (value == 0.0 && !exact.is_zero()) {
        return Err(out_of_range());
    }
    let mut shortest = Short::default();
    // Exponent form is the shortest that reads back as the same float; it fits the buffer by far.
    write!(shortest, "{value:e}").map_err(|_| not_a_number())?;
    if Decimal::parse(shortest.as_str()) != Some(exact) {
        return Err(Fault::new(Reason::Inexact, "a number with more digits than a real keeps"));
    }
    Ok(value)
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
