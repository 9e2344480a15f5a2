//! timestamptz, timestamp and date: microseconds or days since 2000-01-01, as Postgres stores them.
//!
//! Invariant: an instant is only made of a time whose zone is known, from the text or from the key `zone`. A wall time that two instants share is the
//! earlier one; a wall time that the zone's clocks skip is a fault.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use oncesink::Reason;

use super::Fault;
use super::wall::{self, Wall};

/// Seconds from 1970-01-01 to 2000-01-01.
const EPOCH_SECONDS: i64 = 946_684_800;
const MICROS: i64 = 1_000_000;

/// The zone of times that carry none.
#[derive(Clone, Debug)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    /// Finds a zone by IANA name, or reads an offset such as `+02:00`.
    ///
    /// # Errors
    /// For people, when there is no such zone.
    pub(crate) fn find(name: &str) -> Result<Self, String> {
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
        let local = wall.micros_since_2000();
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

    /// The wall time, in microseconds since 2000-01-01, that this zone's clocks show at an instant.
    fn wall(&self, instant: i64) -> Option<i64> {
        let second = instant.div_euclid(MICROS) + EPOCH_SECONDS;
        let timestamp = jiff::Timestamp::from_second(second).ok()?;
        Some(instant + i64::from(self.0.to_offset(timestamp).seconds()) * MICROS)
    }
}

/// For a `timestamptz` column with this many digits of a second.
pub(super) fn instant(text: &str, digits: u8, zone: Option<&Zone>) -> Result<i64, Fault> {
    let wall = cut(Wall::parse(text).ok_or_else(not_a_time)?, digits);
    match (wall.offset, zone) {
        (Some(offset), _) => Ok(wall.micros_since_2000() - i64::from(offset) * MICROS),
        (None, Some(zone)) => zone.instant(&wall).ok_or(skipped()),
        (None, None) => Err(Fault::new(Reason::NotATime, "a time without a zone (and no key zone)")),
    }
}

/// For a `timestamp` column: a time without a zone as it stands; an instant as the wall time in the configured zone, or in UTC.
pub(super) fn wall(text: &str, digits: u8, zone: Option<&Zone>) -> Result<i64, Fault> {
    let wall = cut(Wall::parse(text).ok_or_else(not_a_time)?, digits);
    let local = wall.micros_since_2000();
    let Some(offset) = wall.offset else {
        return Ok(local);
    };
    let instant = local - i64::from(offset) * MICROS;
    match zone {
        Some(zone) => zone.wall(instant).ok_or_else(not_a_time),
        None => Ok(instant),
    }
}

/// For a `date` column: a day and nothing else; a time would lose its hours.
pub(super) fn date(text: &str) -> Result<i32, Fault> {
    let (year, month, day) = wall::date(text.as_bytes())
        .ok_or(Fault::new(Reason::NotATime, "a string that is no date of the form 2026-11-30"))?;
    i32::try_from(wall::days_since_2000(year, month, day)).map_err(|_| not_a_time())
}

/// Cuts what a column of fewer digits would round.
fn cut(mut wall: Wall, digits: u8) -> Wall {
    let unit = 10_i64.pow(u32::from(6_u8.saturating_sub(digits)));
    wall.micros -= wall.micros % unit;
    wall
}

fn not_a_time() -> Fault {
    Fault::new(Reason::NotATime, "a string that is no time of the form 2026-11-30T23:59:59Z")
}

fn skipped() -> Fault {
    Fault::new(Reason::NotATime, "a time that the clocks of the zone skip")
}
