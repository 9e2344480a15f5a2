//! Numbers that come back as the same numbers: integers of 64 bits and reals of 15 digits.
//!
//! Invariant: an integer beyond 64 bits never becomes a real, and neither does a number with more digits than SQLite keeps in one (15: "Floating point
//! numbers" in its documentation).

use oncesink::Reason;
use oncesink::value::{self, Decimal, Fault};

use crate::catalog::Bounds;

/// Decimal digits that survive the way through a 64-bit float.
const REAL_DIGITS: i64 = 15;

/// A whole number of so many bits.
pub(super) fn within(raw: &str, bits: u8) -> Result<i64, Fault> {
    let number = value::integer::<i64>(&value::number(raw)?)?;
    let beyond = i64::BITS - u32::from(bits).min(i64::BITS);
    // What stays the same when it is cut to these bits fits into them.
    if number << beyond >> beyond == number { Ok(number) } else { Err(out_of_range()) }
}

/// Appends a number as an integer or a real that comes back as the same number.
pub(super) fn exact(raw: &str, bounds: Option<Bounds>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let text = value::number(raw)?;
    let decimal = value::decimal(&text)?;
    if let Some(Bounds { precision, scale }) = bounds {
        decimal.within(i64::from(precision) - i64::from(scale), i64::from(scale))?;
    }
    let Some((high, low)) = fraction(&decimal) else {
        super::integer(value::integer(&text)?, out);
        return Ok(());
    };
    if high.saturating_add(low) > REAL_DIGITS {
        return Err(Fault::new(Reason::Inexact, "a number with more digits than a real keeps"));
    }
    let real = value::double(&text)?;
    if !real.is_normal() {
        return Err(out_of_range());
    }
    super::real(real, out);
    Ok(())
}

/// Digits before and behind the point of a number that has some behind it.
fn fraction(decimal: &Decimal<'_>) -> Option<(i64, i64)> {
    let (high, low) = (decimal.integer_digits()?, decimal.fraction_digits()?);
    (low > 0).then_some((high, low))
}

fn out_of_range() -> Fault {
    Fault::new(Reason::OutOfRange, "a number out of range")
}
