//! Times as ISO 8601 text of one width for a column, so that texts sort as times do.

use oncesink::Reason;
use oncesink::value::{self, DAY, Fault};

const MICROS: i64 = 1_000_000;

/// `2026-11-30`
pub(super) fn date(days: i64, out: &mut Vec<u8>) -> Result<(), Fault> {
    const LENGTH: usize = "2026-11-30".len();
    let midnight = days.checked_mul(DAY).ok_or_else(out_of_range)?;
    let text = value::written(midnight, 0).ok_or_else(out_of_range)?;
    append(text.get(..LENGTH).unwrap_or_default(), out);
    Ok(())
}

/// `23:59:59.123456`
pub(super) fn time_of_day(micros: i64, digits: u8, out: &mut Vec<u8>) {
    let (second, rest) = (micros / MICROS, micros % MICROS);
    let mut text = format!("{:02}:{:02}:{:02}.{rest:06}", second / 3600, second / 60 % 60, second % 60);
    let cut = 6 - usize::from(digits.min(6)) + usize::from(digits == 0);
    text.truncate(text.len() - cut);
    append(&text, out);
}

/// `2026-11-30T23:59:59.123456`
pub(super) fn wall(micros: i64, digits: u8, out: &mut Vec<u8>) -> Result<(), Fault> {
    append(&value::written(micros, digits).ok_or_else(out_of_range)?, out);
    Ok(())
}

/// `2026-11-30T23:59:59.123456Z`
pub(super) fn instant(micros: i64, digits: u8, out: &mut Vec<u8>) -> Result<(), Fault> {
    wall(micros, digits, out)?;
    out.push(b'Z');
    Ok(())
}

fn append(text: &str, out: &mut Vec<u8>) {
    out.push(super::TEXT);
    out.extend_from_slice(text.as_bytes());
}

fn out_of_range() -> Fault {
    Fault::new(Reason::OutOfRange, "a time out of range")
}
