//! A decimal number as it is written, without a conversion: the digits stay where they are.
//!
//! Invariant: no digit is lost or rounded here; positions are counted in 64 bits and saturate, so that an absurd exponent is merely out of range.

use super::Fault;
use crate::error::Reason;

/// A number in decimal notation. Digits are counted over integer part and fraction together, from the left; the first one that is not zero leads.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'t> {
    /// Whether a minus stands in front.
    pub negative: bool,
    integer: &'t [u8],
    fraction: &'t [u8],
    exponent: i64,
    /// Indices of the first and last digit that is not zero; none for zero.
    significant: Option<(usize, usize)>,
}

impl<'t> Decimal<'t> {
    /// Reads `[+-] digits [. digits] [e [+-] digits]` with a digit on either side of the point; none for anything else.
    pub fn parse(text: &'t str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, bytes),
        };
        let (integer, rest) = digits(bytes);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits(rest),
            _ => (&[][..], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => exponent(rest)?,
            _ => return None,
        };
        if integer.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut decimal = Self { negative, integer, fraction, exponent, significant: None };
        decimal.significant = decimal.find_significant();
        Some(decimal)
    }

    fn find_significant(&self) -> Option<(usize, usize)> {
        let nonzero = |digit: &u8| *digit != b'0';
        let behind = self.integer.len();
        let first = match self.integer.iter().position(nonzero) {
            Some(index) => index,
            None => behind + self.fraction.iter().position(nonzero)?,
        };
        let last = match self.fraction.iter().rposition(nonzero) {
            Some(index) => behind + index,
            None => self.integer.iter().rposition(nonzero)?,
        };
        Some((first, last))
    }

    /// Whether the value is zero.
    pub const fn is_zero(&self) -> bool {
        self.significant.is_none()
    }

    /// How many digits stand before the decimal point once the exponent is applied; may be negative.
    fn point(&self) -> i64 {
        self.exponent.saturating_add(self.integer.len() as i64)
    }

    /// Power of ten of the leading digit, plus one: the number of integer digits that the value needs. None for zero.
    pub fn integer_digits(&self) -> Option<i64> {
        self.significant.map(|(first, _)| self.point().saturating_sub(first as i64))
    }

    /// Digits behind the point that the value needs; negative when it ends in zeros before the point. None for zero.
    pub fn fraction_digits(&self) -> Option<i64> {
        self.significant.map(|(_, last)| (last as i64 + 1).saturating_sub(self.point()))
    }

    /// Digits behind the point as written, trailing zeros included.
    pub fn written_scale(&self) -> i64 {
        let all = self.integer.len() as i64 + self.fraction.len() as i64;
        all.saturating_sub(self.point()).max(0)
    }

    /// Whether the value has no more than so many digits before and behind the point.
    ///
    /// # Errors
    /// Out of range, or digits that would be cut.
    pub fn within(&self, integer_max: i64, fraction_max: i64) -> Result<(), Fault> {
        let (Some(high), Some(low)) = (self.integer_digits(), self.fraction_digits()) else {
            return Ok(());
        };
        if high > integer_max {
            return Err(Fault::new(Reason::OutOfRange, "a number out of range"));
        }
        if low > fraction_max {
            return Err(Fault::new(Reason::Inexact, "a number with more digits than the scale"));
        }
        Ok(())
    }

    /// The digit (0 to 9) at a power of ten.
    pub fn digit(&self, power: i64) -> u8 {
        let index = self.point().saturating_sub(1).saturating_sub(power);
        let Ok(index) = usize::try_from(index) else { return 0 };
        let digit = match index.checked_sub(self.integer.len()) {
            None => self.integer.get(index),
            Some(index) => self.fraction.get(index),
        };
        digit.map_or(0, |digit| digit - b'0')
    }
}

/// Equal when they stand for the same number.
impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (Some(high), Some(low)) = (self.integer_digits(), self.fraction_digits()) else {
            return other.is_zero();
        };
        self.negative == other.negative
            && other.integer_digits() == Some(high)
            && other.fraction_digits() == Some(low)
            && (-low..high).all(|power| self.digit(power) == other.digit(power))
    }
}

fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    bytes.split_at(end)
}

fn exponent(bytes: &[u8]) -> Option<i64> {
    let (sign, bytes) = match bytes {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, bytes),
    };
    let (digits, rest) = digits(bytes);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let size = digits
        .iter()
        .fold(0i64, |size, digit| size.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    // Halved, so that sums of positions cannot overflow.
    Some(sign * size.min(i64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted() {
        for (text, integer_digits, fraction_digits, scale) in [
            ("1", Some(1), Some(0), 0),
            ("100", Some(3), Some(-2), 0),
            ("1e2", Some(3), Some(-2), 0),
            ("12.340", Some(2), Some(2), 3),
            ("0.00120", Some(-2), Some(4), 5),
            ("+007", Some(1), Some(0), 0),
            ("12345e-3", Some(2), Some(3), 3),
            ("0.5e1", Some(1), Some(0), 0),
            (".5", Some(0), Some(1), 1),
            ("5.", Some(1), Some(0), 0),
            ("0.000", None, None, 3),
            ("0e99999999999999999999", None, None, 0),
        ] {
            let decimal = Decimal::parse(text).unwrap();
            assert_eq!(
                (decimal.integer_digits(), decimal.fraction_digits(), decimal.written_scale()),
                (integer_digits, fraction_digits, scale),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "", "-", "+", ".", "e1", "1e", "1e+", "1 ", " 1", "NaN", "Infinity", "0x10", "1_000", "1,5",
            "--1", "1e1.5", "٣",
        ] {
            assert!(Decimal::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn equality_is_by_value() {
        for (a, b, equal) in [
            ("1.0", "1", true),
            ("1e2", "100.00", true),
            ("-0", "0", true),
            ("0.1", "1e-1", true),
            ("0.1", "0.10000001", false),
            ("1", "-1", false),
            ("1e-99999999999999999999", "1e-99999999999999999998", true),
        ] {
            assert_eq!(Decimal::parse(a) == Decimal::parse(b), equal, "{a} {b}");
        }
    }
}
