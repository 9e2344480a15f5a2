//! Durations and byte sizes with their units: `"5 ms"`, `"4 MiB"`. A bare number is refused: nobody can tell seconds from milliseconds.

use std::time::Duration;

const DURATIONS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];
const SIZES: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// `"20 s"`: a whole number and ms, s, min or h.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    scaled(text, &DURATIONS)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text:?} is no duration; write a whole number and ms, s, min or h: \"20 s\""))
}

/// `"4 MiB"`: a whole number and B, kB, KiB, MB, MiB, GB or GiB.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    scaled(text, &SIZES).ok_or_else(|| {
        format!("{text:?} is no size; write a whole number and B, kB, KiB, MB, MiB, GB or GiB: \"4 MiB\"")
    })
}

/// For messages: the largest unit that divides the size.
pub(crate) fn show_bytes(bytes: u64) -> String {
    [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        .into_iter()
        .find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .map_or_else(|| format!("{bytes} B"), |(name, unit)| format!("{} {name}", bytes / unit))
}

/// For messages.
pub(crate) fn show_duration(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    DURATIONS
        .into_iter()
        .rev()
        .find(|(_, unit)| ms >= *unit && ms.is_multiple_of(*unit))
        .map_or_else(|| format!("{ms} ms"), |(name, unit)| format!("{} {name}", ms / unit))
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_')?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.replace('_', "").parse().ok()?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.checked_mul(*scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in
            [("5 ms", 5), ("20s", 20_000), ("10 min", 600_000), ("1 h", 3_600_000), ("1_000 ms", 1_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "20",
            "s",
            "1.5 s",
            "20 S",
            "-1 s",
            "20 s s",
            "99999999999999999999 s",
            "18446744073709551 h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, size) in
            [("4 MiB", 4 << 20), ("64 MB", 64_000_000), ("1kB", 1_000), ("512 B", 512), ("1 GiB", 1 << 30)]
        {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "4", "4 mib", "4 M", "MiB", "0x4 MiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(show_bytes(64 << 20), "64 MiB");
        assert_eq!(show_bytes(1_500), "1500 B");
        assert_eq!(show_duration(Duration::from_secs(600)), "10 min");
        assert_eq!(show_duration(Duration::ZERO), "0 ms");
    }
}
