//! Times as columns keep them: microseconds and days since 1970-01-01.
//!
//! Invariant: an instant is only made of a time whose zone is known, from the text or from the key `zone`, or of a number whose unit is named. A wall time that
//! two instants share is the earlier one; a wall time that the zone's clocks skip is a fault. Digits of a second beyond the column's are cut towards the past.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::epoch::{self, Unit};
use super::walls::{self, Wall};
use super::{Fault, Form, string, wrong_type};
use crate::error::Reason;

const MICROS: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY: i64 = 86_400 * MICROS;

/// The zone of times that carry none.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Finds a zone by IANA name, or reads an offset such as `+02:00`.
    ///
    /// # Errors
    /// For people, when there is no such zone.
    pub fn find(name: &str) -> Result<Self, String> {
        if name == "UTC" || name == "Z" {
            return Ok(Self(TimeZone::UTC));
        }
        if name.starts_with(['+', '-']) {
            let probe = Wall::parse(&format!("2000-01-01T00:00:00{name}"));
            let offset =
                probe.and_then(|wall| wall.offset).and_then(|seconds| Offset::from_seconds(seconds).ok());
            return offset
                .map(|offset| Self(TimeZone::fixed(offset)))
                .ok_or(format!("zone = {name:?} is no offset such as \"+02:00\""));
        }
        TimeZone::get(name).map(Self).map_err(|error| {
            format!(
                "zone = {name:?} is not known ({error}); write a name such as \"Europe/Berlin\", or an offset"
            )
        })
    }

    /// The instant of a wall time; none when the clocks skip it.
    fn instant(&self, wall: &Wall) -> Option<i64> {
        let local = wall.micros_since_epoch();
        let minutes = wall.second / 60;
        let civil = DateTime::new(
            wall.year,
            wall.month,
            wall.day,
            (minutes / 60) as i8,
            (minutes % 60) as i8,
            (wall.second % 60) as i8,
            0,
        );
        let offset = match self.0.to_ambiguous_timestamp(civil.ok()?).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Fold { before, .. } => before,
            AmbiguousOffset::Gap { .. } => return None,
        };
        Some(local - i64::from(offset.seconds()) * MICROS)
    }

    /// The wall time, in microseconds since 1970-01-01, that this zone's clocks show at an instant.
    fn wall(&self, instant: i64) -> Option<i64> {
        let timestamp = jiff::Timestamp::from_second(instant.div_euclid(MICROS)).ok()?;
        Some(instant + i64::from(self.0.to_offset(timestamp).seconds()) * MICROS)
    }
}

/// An instant, in microseconds since 1970-01-01T00:00:00Z, with this many digits of a second.
///
/// # Errors
/// No time, none that exists, a time without a zone, a number without a unit.
pub fn instant(raw: &str, digits: u8, form: &Form) -> Result<i64, Fault> {
    if let Some(unit) = epoch_of(raw, form)? {
        return Ok(cut(epoch::micros(raw, unit)?, digits));
    }
    let wall = parse(raw)?;
    let instant = match (wall.offset, &form.zone) {
        (Some(offset), _) => wall.micros_since_epoch() - i64::from(offset) * MICROS,
        (None, Some(zone)) => zone.instant(&wall).ok_or(skipped())?,
        (None, None) => {
            return Err(Fault::new(Reason::NotATime, "a time without a zone (and no key zone)"));
        }
    };
    Ok(cut(instant, digits))
}

/// A wall time, in microseconds since 1970-01-01 of the same clock: a time without a zone as it stands; an instant as the wall time in the configured zone,
/// or in UTC.
///
/// # Errors
/// As [`instant`], but for the missing zone.
pub fn wall(raw: &str, digits: u8, form: &Form) -> Result<i64, Fault> {
    let instant = match epoch_of(raw, form)? {
        Some(unit) => epoch::micros(raw, unit)?,
        None => {
            let wall = parse(raw)?;
            let local = wall.micros_since_epoch();
            match wall.offset {
                None => return Ok(cut(local, digits)),
                Some(offset) => local - i64::from(offset) * MICROS,
            }
        }
    };
    let wall = match &form.zone {
        Some(zone) => zone.wall(instant).ok_or_else(not_a_time)?,
        None => instant,
    };
    Ok(cut(wall, digits))
}

/// A day, counted from 1970-01-01: a date and nothing else, since a time would lose its hours.
///
/// # Errors
/// No date; a number without a unit, or one that is not midnight.
pub fn date(raw: &str, form: &Form) -> Result<i64, Fault> {
    if let Some(unit) = epoch_of(raw, form)? {
        if unit == Unit::Days {
            return epoch::days(raw);
        }
        let instant = epoch::micros(raw, unit)?;
        let wall = match &form.zone {
            Some(zone) => zone.wall(instant).ok_or_else(not_a_time)?,
            None => instant,
        };
        if wall.rem_euclid(DAY) != 0 {
            return Err(Fault::new(Reason::Inexact, "a time that is not midnight, for a date,"));
        }
        return Ok(wall.div_euclid(DAY));
    }
    let text = text(raw)?;
    let (year, month, day) = walls::date(text.as_bytes())
        .ok_or(Fault::new(Reason::NotATime, "a string that is no date of the form 2026-11-30"))?;
    Ok(walls::days_since_epoch(year, month, day))
}

/// A time of day, in microseconds since midnight, with this many digits of a second.
///
/// # Errors
/// No time of day; a number without a unit, or one that is no time of a day.
pub fn time_of_day(raw: &str, digits: u8, form: &Form) -> Result<i64, Fault> {
    if let Some(unit) = epoch_of(raw, form)? {
        let micros = epoch::micros(raw, unit)?;
        if !(0..DAY).contains(&micros) {
            return Err(Fault::new(Reason::OutOfRange, "a number that is no time of a day"));
        }
        return Ok(cut(micros, digits));
    }
    let text = text(raw)?;
    match walls::time_of_day(text.as_bytes()) {
        Some((second, micros, [])) => Ok(cut(i64::from(second) * MICROS + micros, digits)),
        _ => Err(Fault::new(Reason::NotATime, "a string that is no time of the form 23:59:59")),
    }
}

/// A time of day in microseconds since midnight of its own clock, with this many digits of a second, and that clock's seconds east of Greenwich.
///
/// # Errors
/// No time of day, one without an offset (a zone's offset depends on the day), an offset of 16 hours or more, which SQL does not have.
pub fn time_with_offset(raw: &str, digits: u8) -> Result<(i64, i32), Fault> {
    const OFFSET_BEYOND: i32 = 16 * 3600;
    let text = text(raw)?;
    let read = walls::time_of_day(text.as_bytes())
        .and_then(|(second, micros, rest)| Some((second, micros, walls::offset(rest)??)));
    let Some((second, micros, offset)) = read else {
        let what = "a string that is no time with an offset of the form 23:59:59+01:00";
        return Err(Fault::new(Reason::NotATime, what));
    };
    if offset.abs() >= OFFSET_BEYOND {
        return Err(Fault::new(Reason::OutOfRange, "a time with an offset of 16 hours or more"));
    }
    Ok((cut(i64::from(second) * MICROS + micros, digits), offset))
}

/// `2026-11-30T23:59:59.123456` of microseconds since 1970-01-01, with this many digits of a second; none beyond the years 1 to 9999.
pub fn written(micros: i64, digits: u8) -> Option<String> {
    // Counted in days: an instant of the calendar's library ends some hours before the year 9999 does.
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let days = jiff::Span::new().try_days(days).ok()?;
    let date = jiff::civil::date(1970, 1, 1).checked_add(days).ok()?;
    if !(1..=9999).contains(&date.year()) {
        return None;
    }
    let second = rest / MICROS;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{}T{hour:02}:{minute:02}:{second:02}", date.strftime("%Y-%m-%d"));
    if digits > 0 {
        let fraction = format!("{:06}", rest % MICROS);
        text.push('.');
        text.push_str(fraction.get(..usize::from(digits.min(6))).unwrap_or_default());
    }
    Some(text)
}

/// The unit of a number, when the file names one; none for a string where no unit is named.
fn epoch_of(raw: &str, form: &Form) -> Result<Option<Unit>, Fault> {
    match (form.unit(), raw.as_bytes().first()) {
        (Some(unit), Some(b'"' | b'-' | b'0'..=b'9')) => Ok(Some(unit)),
        (None, Some(b'"')) => Ok(None),
        (None, Some(b'-' | b'0'..=b'9')) => Err(Fault::new(
            Reason::WrongType,
            "a number (and no key as names its unit, such as \"epoch-ms\")",
        )),
        _ => Err(wrong_type(raw)),
    }
}

fn text(raw: &str) -> Result<std::borrow::Cow<'_, str>, Fault> {
    if raw.starts_with('"') { string::unescape(raw) } else { Err(wrong_type(raw)) }
}

fn parse(raw: &str) -> Result<Wall, Fault> {
    Wall::parse(&text(raw)?).ok_or_else(not_a_time)
}

/// Cuts what a column of fewer digits would round.
fn cut(micros: i64, digits: u8) -> i64 {
    let unit = 10_i64.pow(u32::from(6_u8.saturating_sub(digits)));
    micros - micros.rem_euclid(unit)
}

fn not_a_time() -> Fault {
    Fault::new(Reason::NotATime, "a string that is no time of the form 2026-11-30T23:59:59Z")
}

fn skipped() -> Fault {
    Fault::new(Reason::NotATime, "a time that the clocks of the zone skip")
}
