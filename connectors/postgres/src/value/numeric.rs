//! numeric: exact to the last digit, in the wire form of `numeric_send` (src/backend/utils/adt/numeric.c): number of digits, weight, sign, display
//! scale, then digits of base 10,000, each a big-endian 16-bit word.
//!
//! Invariant: digits that the column would cut are a fault. The display scale is the one written, as it would be for the same number in text form.

use oncesink::value::{Decimal, Fault};

use crate::catalog::NumericBounds;

/// Digits before the point that any numeric can hold.
const INTEGER_DIGITS_MAX: i64 = 131_072;
/// Digits behind the point that any numeric can hold.
const FRACTION_DIGITS_MAX: i64 = 16_383;
const NEGATIVE: u16 = 0x4000;
/// Decimal digits in a digit of base 10,000.
const GROUP: i64 = 4;

/// Appends a number, or says why the column cannot hold it as it is.
pub(super) fn encode(
    value: Decimal<'_>,
    bounds: Option<NumericBounds>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    check(&value, bounds)?;
    let scale = value.written_scale().min(FRACTION_DIGITS_MAX) as u16;
    let (Some(high), Some(low)) = (value.integer_digits(), value.fraction_digits()) else {
        header(0, 0, 0, scale, out);
        return Ok(());
    };
    let weight = (high - 1).div_euclid(GROUP);
    let last = (-low).div_euclid(GROUP);
    let sign = if value.negative { NEGATIVE } else { 0 };
    header((weight - last + 1) as u16, weight as i16, sign, scale, out);
    for group in (last..=weight).rev() {
        let lowest = group * GROUP;
        let digit = (lowest..lowest + GROUP)
            .rev()
            .fold(0u16, |digit, power| digit * 10 + u16::from(value.digit(power)));
        out.extend_from_slice(&digit.to_be_bytes());
    }
    Ok(())
}

/// Whether a numeric of these bounds, or any numeric, holds the value as it is.
pub(super) fn check(value: &Decimal<'_>, bounds: Option<NumericBounds>) -> Result<(), Fault> {
    let (integer_max, fraction_max) = match bounds {
        Some(NumericBounds { precision, scale }) => (precision - scale, scale),
        None => (INTEGER_DIGITS_MAX, FRACTION_DIGITS_MAX),
    };
    value.within(integer_max, fraction_max)
}

/// Where the display scale stands, in which equal numbers may differ.
const SCALE: std::ops::Range<usize> = 6..8;

/// The number without its display scale.
pub(super) fn key_form(encoded: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(encoded);
    if let Some(scale) = out.get_mut(start + SCALE.start..start + SCALE.end) {
        scale.fill(0);
    }
}

fn header(digits: u16, weight: i16, sign: u16, scale: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&digits.to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&scale.to_be_bytes());
}
