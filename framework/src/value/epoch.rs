//! Numbers as times: whatever unit the file names, exact to the microsecond.
//!
//! Invariant: cut towards the past, never rounded up, so that a time before 1970 stays in its own microsecond. No unit is guessed.

use super::{Decimal, Fault, decimal, number};
use crate::error::Reason;

/// What a number in a time column counts, since 1970-01-01T00:00:00Z, or since midnight for a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `epoch-s`
    Seconds,
    /// `epoch-ms`
    Milliseconds,
    /// `epoch-us`
    Microseconds,
    /// `epoch-ns`
    Nanoseconds,
    /// `epoch-days`, for dates only.
    Days,
}

impl Unit {
    /// Microseconds of one, as a power of ten; a day is none.
    const fn power(self) -> Option<i64> {
        match self {
            Self::Seconds => Some(6),
            Self::Milliseconds => Some(3),
            Self::Microseconds => Some(0),
            Self::Nanoseconds => Some(-3),
            Self::Days => None,
        }
    }
}

/// Microseconds of a number of this unit.
pub(super) fn micros(raw: &str, unit: Unit) -> Result<i64, Fault> {
    let text = number(raw)?;
    let power = unit.power().ok_or(Fault::new(Reason::WrongType, "a number of days"))?;
    floor(&decimal(&text)?, power)
}

/// Whole days of a number.
pub(super) fn days(raw: &str) -> Result<i64, Fault> {
    super::integer(&number(raw)?)
}

/// `value * 10^power`, cut towards minus infinity.
fn floor(value: &Decimal<'_>, power: i64) -> Result<i64, Fault> {
    let (Some(high), Some(low)) = (value.integer_digits(), value.fraction_digits()) else {
        return Ok(0);
    };
    if high.saturating_add(power) > 19 {
        return Err(out_of_range());
    }
    let whole = (-power..high.max(-power))
        .rev()
        .fold(0_i128, |whole, place| whole * 10 + i128::from(value.digit(place)));
    let cut = low > power;
    let floored = match (value.negative, cut) {
        (false, _) => whole,
        (true, false) => -whole,
        (true, true) => -whole - 1,
    };
    i64::try_from(floored).map_err(|_| out_of_range())
}

fn out_of_range() -> Fault {
    Fault::new(Reason::OutOfRange, "a number out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_and_towards_the_past() {
        for (raw, unit, expected) in [
            ("0", Unit::Seconds, Ok(0)),
            ("1700000000.123", Unit::Seconds, Ok(1_700_000_000_123_000)),
            ("1700000000123", Unit::Milliseconds, Ok(1_700_000_000_123_000)),
            ("\"1700000000123\"", Unit::Milliseconds, Ok(1_700_000_000_123_000)),
            ("1.7e12", Unit::Milliseconds, Ok(1_700_000_000_000_000)),
            ("-1000001", Unit::Microseconds, Ok(-1_000_001)),
            ("-1", Unit::Nanoseconds, Ok(-1)),
            ("-1000", Unit::Nanoseconds, Ok(-1)),
            ("-1001", Unit::Nanoseconds, Ok(-2)),
            ("1999", Unit::Nanoseconds, Ok(1)),
            ("999999999", Unit::Nanoseconds, Ok(999_999)),
            ("9223372036854775807", Unit::Nanoseconds, Ok(9_223_372_036_854_775)),
            ("-0.0000001", Unit::Seconds, Ok(-1)),
            ("0.0000001", Unit::Seconds, Ok(0)),
            ("9223372036855", Unit::Seconds, Err(Reason::OutOfRange)),
            ("1e30", Unit::Nanoseconds, Err(Reason::OutOfRange)),
            ("1e-30", Unit::Seconds, Ok(0)),
            ("\"x\"", Unit::Seconds, Err(Reason::NotANumber)),
            ("true", Unit::Seconds, Err(Reason::WrongType)),
        ] {
            assert_eq!(micros(raw, unit).map_err(|fault| fault.reason), expected, "{raw} {unit:?}");
        }
    }
}
