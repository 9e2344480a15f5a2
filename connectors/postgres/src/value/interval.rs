//! Intervals: ISO 8601 durations (`P1Y2M3DT4H5M6.5S`) and Postgres' own plain form (`1 year 2 mons 3 days 04:05:06.5`), in the wire form of `interval_send`:
//! microseconds, days, months.
//!
//! Invariant: exact. Months, days and seconds stay apart, each with its own sign; only seconds have a fraction, of at most six digits; what the column's
//! fields or digits would cut is a fault.

use oncesink::Reason;
use oncesink::value::Fault;

use crate::catalog::{IntervalBounds, IntervalField};

const SECOND: i128 = 1_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    months: i128,
    days: i128,
    micros: i128,
}

/// Appends an interval, or says why the column cannot hold it as it is.
pub(super) fn encode(text: &str, bounds: IntervalBounds, out: &mut Vec<u8>) -> Result<(), Fault> {
    let read = match text.strip_prefix('P') {
        Some(rest) => iso(rest),
        None => plain(text),
    };
    let interval = read.map_err(|wrong| match wrong {
        Wrong::Form => Fault::new(
            Reason::NotATime,
            "a string that is no interval of the form P1DT2H3M4.5S or \"1 day 02:03:04.5\"",
        ),
        Wrong::Fraction => Fault::new(Reason::Inexact, "an interval with more than six digits of a second"),
    })?;
    interval.check(bounds)?;
    let range = |_| Fault::new(Reason::OutOfRange, "an interval out of range");
    out.extend_from_slice(&i64::try_from(interval.micros).map_err(range)?.to_be_bytes());
    out.extend_from_slice(&i32::try_from(interval.days).map_err(range)?.to_be_bytes());
    out.extend_from_slice(&i32::try_from(interval.months).map_err(range)?.to_be_bytes());
    Ok(())
}

/// The span that Postgres compares, months of 30 days of 24 hours.
pub(super) fn key_form(encoded: &[u8], out: &mut Vec<u8>) {
    let Some((micros, rest)) = encoded.split_first_chunk::<8>() else { return };
    let Some((days, rest)) = rest.split_first_chunk::<4>() else { return };
    let Some((months, _)) = rest.split_first_chunk::<4>() else { return };
    let days = i128::from(i32::from_be_bytes(*months)) * 30 + i128::from(i32::from_be_bytes(*days));
    let span = days * DAY + i128::from(i64::from_be_bytes(*micros));
    out.extend_from_slice(&span.to_be_bytes());
}

impl Interval {
    /// Whether the column keeps all of it.
    fn check(&self, bounds: IntervalBounds) -> Result<(), Fault> {
        let least = match bounds.least {
            IntervalField::Second => 10_i128.pow(u32::from(6_u8.saturating_sub(bounds.digits))),
            IntervalField::Minute => MINUTE,
            IntervalField::Hour => HOUR,
            _ => i128::MAX,
        };
        let kept = self.micros % least == 0
            && (bounds.least <= IntervalField::Day || self.days == 0)
            && (bounds.least <= IntervalField::Month || self.months % 12 == 0);
        if kept {
            return Ok(());
        }
        Err(Fault::new(Reason::Inexact, "an interval with parts that the column does not keep,"))
    }
}

enum Wrong {
    Form,
    Fraction,
}

/// What follows the `P`: each unit at most once and in this order, at least one, and one behind a `T`.
fn iso(text: &str) -> Result<Interval, Wrong> {
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return Err(Wrong::Form),
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() {
        return Err(Wrong::Form);
    }
    let mut interval = Interval::default();
    let mut rest = date;
    for (unit, months, days) in [('Y', 12, 0), ('M', 1, 0), ('W', 0, 7), ('D', 0, 1)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            let number = whole(number)?;
            interval.months += number * months;
            interval.days += number * days;
            rest = behind;
        }
    }
    if !rest.is_empty() {
        return Err(Wrong::Form);
    }
    rest = time;
    for (unit, micros) in [('H', HOUR), ('M', MINUTE)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            interval.micros += whole(number)? * micros;
            rest = behind;
        }
    }
    if let Some((number, behind)) = rest.split_once('S') {
        interval.micros += seconds(number)?;
        rest = behind;
    }
    if rest.is_empty() { Ok(interval) } else { Err(Wrong::Form) }
}

/// Words, one blank between them; each unit at most once and in this order, hours, minutes and seconds between colons at the end.
fn plain(text: &str) -> Result<Interval, Wrong> {
    let mut interval = Interval::default();
    let mut words = text.split(' ');
    const UNITS: [(&[&str], i128, i128); 4] = [
        (&["year", "years"], 12, 0),
        (&["mon", "mons", "month", "months"], 1, 0),
        (&["week", "weeks"], 0, 7),
        (&["day", "days"], 0, 1),
    ];
    for (units, months, days) in UNITS {
        let mut ahead = words.clone();
        if let (Some(number), Some(unit)) = (ahead.next(), ahead.next())
            && units.contains(&unit)
        {
            let number = whole(number)?;
            interval.months += number * months;
            interval.days += number * days;
            words = ahead;
        }
    }
    if let Some(time) = words.next() {
        interval.micros = clock(time)?;
    }
    if words.next().is_none() { Ok(interval) } else { Err(Wrong::Form) }
}

/// `[+-]hh:mm:ss[.digits]`; hours may be more than a day has.
fn clock(text: &str) -> Result<i128, Wrong> {
    let (negative, text) = sign(text);
    let mut parts = text.split(':');
    let (Some(hours), Some(minutes), Some(second), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Wrong::Form);
    };
    if hours.len() < 2 || minutes.len() != 2 || second.split('.').next().is_none_or(|whole| whole.len() != 2)
    {
        return Err(Wrong::Form);
    }
    let (hours, minutes, micros) = (digits(hours)?, digits(minutes)?, unsigned_seconds(second)?);
    if minutes > 59 || micros >= MINUTE {
        return Err(Wrong::Form);
    }
    let span = hours * HOUR + minutes * MINUTE + micros;
    Ok(if negative { -span } else { span })
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    }
}

fn whole(text: &str) -> Result<i128, Wrong> {
    let (negative, text) = sign(text);
    let size = digits(text)?;
    Ok(if negative { -size } else { size })
}

fn seconds(text: &str) -> Result<i128, Wrong> {
    let (negative, text) = sign(text);
    let micros = unsigned_seconds(text)?;
    Ok(if negative { -micros } else { micros })
}

fn unsigned_seconds(text: &str) -> Result<i128, Wrong> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return Err(Wrong::Form),
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let whole = digits(whole)?;
    let significant = fraction.trim_end_matches('0');
    if significant.len() > 6 {
        return Err(Wrong::Fraction);
    }
    let micros = if significant.is_empty() {
        0
    } else {
        digits(significant)? * 10_i128.pow(6 - significant.len() as u32)
    };
    Ok(whole * SECOND + micros)
}

/// Digits and nothing else; so many that they are in range of 128 bits whatever they are multiplied with here.
fn digits(text: &str) -> Result<i128, Wrong> {
    let fits = (1..=19).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    if fits { text.parse().map_err(|_| Wrong::Form) } else { Err(Wrong::Form) }
}
