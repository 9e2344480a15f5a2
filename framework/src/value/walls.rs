//! Dates and times as RFC 3339 writes them, read without a conversion.
//!
//! Invariant: only times that exist are read: no month zero, no 30 February, no 24:00, no leap second, which no column could give back. Digits of a second
//! beyond the sixth are cut, as documented.

/// What a text says about a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wall {
    /// 1 to 9999.
    pub(super) year: i16,
    /// 1 to 12.
    pub(super) month: i8,
    /// 1 to 31.
    pub(super) day: i8,
    /// Seconds since midnight.
    pub(super) second: i32,
    /// Microseconds of the second.
    pub(super) micros: i64,
    /// Seconds east of Greenwich, when the text says so.
    pub(super) offset: Option<i32>,
}

impl Wall {
    /// Reads `YYYY-MM-DDThh:mm:ss[.digits][Z|+hh:mm|-hh:mm]`; a blank may stand for the `T`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (year, month, day) = date(bytes.get(..10)?)?;
        let [b'T' | b't' | b' ', time @ ..] = bytes.get(10..)? else {
            return None;
        };
        let (second, micros, rest) = time_of_day(time)?;
        Some(Self { year, month, day, second, micros, offset: offset(rest)? })
    }

    /// Microseconds since 1970-01-01 of this wall time, without its offset.
    pub(super) fn micros_since_epoch(&self) -> i64 {
        let days = days_since_epoch(self.year, self.month, self.day);
        (days * 86_400 + i64::from(self.second)) * 1_000_000 + self.micros
    }
}

/// Reads `hh:mm:ss[.digits]`: seconds since midnight, microseconds of the second, and what follows.
pub(super) fn time_of_day(bytes: &[u8]) -> Option<(i32, i64, &[u8])> {
    let ([h1, h2, b':', m1, m2, b':', s1, s2], rest) = bytes.split_first_chunk::<8>()? else {
        return None;
    };
    let (hour, minute, second) = (two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (micros, rest) = fraction(rest)?;
    Some((hour * 3600 + minute * 60 + second, micros, rest))
}

/// Reads `YYYY-MM-DD`, years 0001 to 9999.
pub(super) fn date(bytes: &[u8]) -> Option<(i16, i8, i8)> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else {
        return None;
    };
    let year = two(*y1, *y2)? * 100 + two(*y3, *y4)?;
    let (month, day) = (two(*m1, *m2)?, two(*d1, *d2)?);
    if year == 0 || !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    Some((year as i16, month as i8, day as i8))
}

/// Days since 1970-01-01 in the Gregorian calendar: whole years of 365 days, a leap day for every one of the rule that has passed, whole months.
pub(super) fn days_since_epoch(year: i16, month: i8, day: i8) -> i64 {
    // A year that begins in March has its leap day at the end, and its months then follow a line of slope 153/5.
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    const MARCH_0000_TO_1970: i64 = 719_468;
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - MARCH_0000_TO_1970
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

fn two(tens: u8, ones: u8) -> Option<i32> {
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| i32::from(tens - b'0') * 10 + i32::from(ones - b'0'))
}

/// Reads `.digits` when it is there, down to microseconds.
fn fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = bytes else {
        return Some((0, bytes));
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let (digits, rest) = rest.split_at(length);
    let micros = (0..6)
        .fold(0, |micros, index| micros * 10 + digits.get(index).map_or(0, |digit| i64::from(digit - b'0')));
    Some((micros, rest))
}

/// Reads what may end a time: nothing, `Z`, or hours and minutes.
pub(super) fn offset(bytes: &[u8]) -> Option<Option<i32>> {
    match bytes {
        [] => Some(None),
        [b'Z' | b'z'] => Some(Some(0)),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (two(*h1, *h2)?, two(*m1, *m2)?);
            let seconds = hours * 3600 + minutes * 60;
            let exists = hours <= 23 && minutes <= 59;
            exists.then_some(Some(if *sign == b'-' { -seconds } else { seconds }))
        }
        _ => None,
    }
}
