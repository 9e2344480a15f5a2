//! Integers: whole numbers however they are written; 1.0 and 1e2 are whole.
//!
//! Invariant: a fraction is a fault, never cut.

use crate::error::Reason;

use super::{Fault, decimal};

/// Reads a whole number that fits `T`, from what [`super::number`] gave.
///
/// # Errors
/// No number, a fraction, out of range.
pub fn integer<T: TryFrom<i128>>(text: &str) -> Result<T, Fault> {
    let value = match plain(text.as_bytes()) {
        Some(value) => i128::from(value),
        None => general(text)?,
    };
    T::try_from(value).map_err(|_| out_of_range())
}

/// The usual form: up to 18 digits, which cannot overflow.
fn plain(bytes: &[u8]) -> Option<i64> {
    let (sign, digits) = match bytes {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(sign * value)
}

fn general(text: &str) -> Result<i128, Fault> {
    let decimal = decimal(text)?;
    let (Some(high), Some(low)) = (decimal.integer_digits(), decimal.fraction_digits()) else {
        return Ok(0);
    };
    if low > 0 {
        return Err(Fault::new(Reason::Inexact, "a number with a fraction"));
    }
    if high > 19 {
        return Err(out_of_range());
    }
    let size = (0..high).rev().fold(0i128, |size, power| size * 10 + i128::from(decimal.digit(power)));
    Ok(if decimal.negative { -size } else { size })
}

fn out_of_range() -> Fault {
    Fault::new(Reason::OutOfRange, "a number out of range")
}
