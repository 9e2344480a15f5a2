//! Tables: a JSON value and a type, and the bytes or the reason that come of them. The server's own reading of the bytes is tested in `tests/suite`.

use oncesink::value::Zone;

use super::*;
use crate::catalog::NumericBounds;

fn bytes(kind: Kind, raw: &str) -> Result<Vec<u8>, Reason> {
    with_zone(kind, None, raw)
}

fn with_zone(kind: Kind, zone: Option<&str>, raw: &str) -> Result<Vec<u8>, Reason> {
    let form = Form { reading: None, zone: zone.map(|name| Zone::find(name).unwrap()) };
    let mut out = Vec::new();
    scalar(kind, raw, &form, &mut out).map(|()| out).map_err(|fault| fault.reason)
}

fn check<T: Into<i128> + Copy + std::fmt::Debug>(kind: Kind, table: &[(&str, Result<T, Reason>)]) {
    for (raw, expected) in table {
        let read = bytes(kind, raw).map(|bytes| {
            let fill = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
            let mut wide = [fill; 16];
            wide[16 - bytes.len()..].copy_from_slice(&bytes);
            i128::from_be_bytes(wide)
        });
        assert_eq!(read, (*expected).map(Into::into), "{kind:?} {raw}");
    }
}

use Reason::{Inexact, InvalidJson, NotANumber, NotATime, NullCharacter, OutOfRange, TooLong, WrongType};

#[test]
fn smallint() {
    check(
        Kind::SmallInt,
        &[
            ("0", Ok(0_i16)),
            ("-0", Ok(0)),
            ("32767", Ok(i16::MAX)),
            ("-32768", Ok(i16::MIN)),
            ("32768", Err(OutOfRange)),
            ("-32769", Err(OutOfRange)),
            ("1.0", Ok(1)),
            ("1e2", Ok(100)),
            ("1.5e1", Ok(15)),
            ("100e-2", Ok(1)),
            ("1.5", Err(Inexact)),
            ("1e-1", Err(Inexact)),
            ("1e99999999999999999999999", Err(OutOfRange)),
            ("1e-99999999999999999999999", Err(Inexact)),
            ("0e99999999999999999999999", Ok(0)),
            (r#""12""#, Ok(12)),
            (r#""twelve""#, Err(NotANumber)),
            (r#""""#, Err(NotANumber)),
            (r#"" 1""#, Err(NotANumber)),
            ("true", Err(WrongType)),
            ("{}", Err(WrongType)),
            ("[1]", Err(WrongType)),
        ],
    );
}

#[test]
fn integer_and_bigint() {
    check(
        Kind::Integer,
        &[
            ("2147483647", Ok(i32::MAX)),
            ("-2147483648", Ok(i32::MIN)),
            ("2147483648", Err(OutOfRange)),
            ("-2147483649", Err(OutOfRange)),
        ],
    );
    check(
        Kind::BigInt,
        &[
            ("9223372036854775807", Ok(i64::MAX)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775808", Err(OutOfRange)),
            ("-9223372036854775809", Err(OutOfRange)),
            ("9007199254740993", Ok(9_007_199_254_740_993)),
            ("922337203685477580.7e1", Ok(i64::MAX)),
            ("99999999999999999999", Err(OutOfRange)),
            (r#""-9223372036854775808""#, Ok(i64::MIN)),
        ],
    );
}

#[test]
fn real_gives_back_what_was_written() {
    for (raw, expected) in [
        ("0", Ok(0.0)),
        ("0.1", Ok(0.1_f32)),
        ("-0.10", Ok(-0.1)),
        ("16777216", Ok(16_777_216.0)),
        ("16777217", Err(Inexact)),
        ("0.123456789", Err(Inexact)),
        ("0.12345679", Ok(0.123_456_79)),
        ("3.4028235e38", Ok(f32::MAX)),
        ("3.40282355e38", Err(Inexact)),
        // Postgres rounds a tie to the even digit: 2878751.25 is printed with a 2.
        ("2878751.2", Ok(2_878_751.2)),
        ("2878751.3", Err(Inexact)),
        // Half-way between two floats: read as one of them everywhere, printed as this by others, by Postgres with a digit more.
        ("8500000000", Err(Inexact)),
        ("8.5e9", Err(Inexact)),
        ("3.4028236e38", Err(OutOfRange)),
        ("3.5e38", Err(OutOfRange)),
        ("1e-45", Ok(f32::from_bits(1))),
        ("1e-50", Err(OutOfRange)),
        ("1e400", Err(OutOfRange)),
        (r#""1.5""#, Ok(1.5)),
        (r#""NaN""#, Err(NotANumber)),
        (r#""inf""#, Err(NotANumber)),
        ("false", Err(WrongType)),
    ] {
        assert_eq!(bytes(Kind::Real, raw), expected.map(|value: f32| value.to_be_bytes().to_vec()), "{raw}");
    }
}

#[test]
fn double_is_the_nearest() {
    for (raw, expected) in [
        ("0.1", Ok(0.1_f64)),
        ("9007199254740993", Ok(9_007_199_254_740_992.0)),
        ("0.1234567890123456789", Ok(0.123_456_789_012_345_68)),
        ("1.7976931348623157e308", Ok(f64::MAX)),
        ("1e309", Err(OutOfRange)),
        ("5e-324", Ok(f64::from_bits(1))),
        ("1e-400", Err(OutOfRange)),
        (r#""Infinity""#, Err(NotANumber)),
    ] {
        assert_eq!(
            bytes(Kind::Double, raw),
            expected.map(|value: f64| value.to_be_bytes().to_vec()),
            "{raw}"
        );
    }
}

#[test]
fn numeric_is_in_groups_of_four_digits() {
    for (raw, expected) in [
        ("0", [0, 0, 0, 0].as_slice()),
        ("0.00", &[0, 0, 0, 2]),
        ("1", &[1, 0, 0, 0, 1]),
        ("-12345.678", &[3, 1, 0x4000, 3, 1, 2345, 6780]),
        ("10000", &[1, 1, 0, 0, 1]),
        ("0.0001", &[1, 0xffff, 0, 4, 1]),
        ("0.00001", &[1, 0xfffe, 0, 5, 1000]),
        ("1.50", &[2, 0, 0, 2, 1, 5000]),
        ("1e4", &[1, 1, 0, 0, 1]),
        ("1.5e-3", &[1, 0xffff, 0, 4, 15]),
        (r#""123""#, &[1, 0, 0, 0, 123]),
    ] {
        let words: Vec<u8> = expected.iter().flat_map(|word| (*word as u16).to_be_bytes()).collect();
        assert_eq!(bytes(Kind::Numeric(None), raw), Ok(words), "{raw}");
    }
}

#[test]
fn numeric_keeps_its_bounds() {
    let kind = |precision, scale| Kind::Numeric(Some(NumericBounds { precision, scale }));
    let long =
        |integers: usize, fraction: usize| format!("{}.{}", "9".repeat(integers), "9".repeat(fraction));
    for (kind, raw, expected) in [
        (kind(12, 2), "1234567890.12", None),
        (kind(12, 2), "12345678901", Some(OutOfRange)),
        (kind(12, 2), "9999999999.999", Some(Inexact)),
        (kind(12, 2), "0.010000000", None),
        (kind(12, 2), "0.001", Some(Inexact)),
        (kind(3, 5), "0.00999", None),
        (kind(3, 5), "0.01", Some(OutOfRange)),
        (kind(3, -2), "99900", None),
        (kind(3, -2), "100000", Some(OutOfRange)),
        (kind(3, -2), "12340", Some(Inexact)),
        (kind(2, 0), r#""12x""#, Some(NotANumber)),
        (kind(2, 0), "true", Some(WrongType)),
        (kind(2, 0), "[]", Some(WrongType)),
        (Kind::Numeric(None), r#""NaN""#, Some(NotANumber)),
        (Kind::Numeric(None), &long(131_072, 16_383), None),
        (Kind::Numeric(None), &"9".repeat(131_073), Some(OutOfRange)),
        (Kind::Numeric(None), &long(1, 16_384), Some(Inexact)),
        (Kind::Numeric(None), "1e131071", None),
        (Kind::Numeric(None), "1e131072", Some(OutOfRange)),
        (Kind::Numeric(None), "1e-16383", None),
        (Kind::Numeric(None), "1e-16384", Some(Inexact)),
    ] {
        let found = bytes(kind, raw).err();
        assert_eq!(found, expected, "{kind:?} {}", &raw[..raw.len().min(40)]);
    }
}

#[test]
fn text_is_kept() {
    for (kind, raw, expected) in [
        (Kind::Text, r#""""#, Ok("")),
        (Kind::Text, r#""a\n\t\r\b\f\"\\\/z""#, Ok("a\n\t\r\u{8}\u{c}\"\\/z")),
        (Kind::Text, r#""\u00e9\u20ac\ud83d\ude00""#, Ok("é€😀")),
        (Kind::Text, r#""a\u0000b""#, Err(NullCharacter)),
        (Kind::Text, r#""\ud83d""#, Err(InvalidJson)),
        (Kind::Text, r#""\ud83dx""#, Err(InvalidJson)),
        (Kind::Text, r#""\ud83d\u0041""#, Err(InvalidJson)),
        (Kind::Text, r#""\ude00""#, Err(InvalidJson)),
        (Kind::Text, "1.0", Ok("1.0")),
        (Kind::Text, "1e2", Ok("1e2")),
        (Kind::Text, "true", Ok("true")),
        (Kind::Text, "{}", Err(WrongType)),
        (Kind::Text, "[]", Err(WrongType)),
        (Kind::Varchar(Some(3)), r#""abc""#, Ok("abc")),
        (Kind::Varchar(Some(3)), r#""abcd""#, Err(TooLong)),
        (Kind::Varchar(Some(3)), r#""abc ""#, Err(TooLong)),
        (Kind::Varchar(Some(3)), r#""äöü""#, Ok("äöü")),
        (Kind::Varchar(Some(3)), r#""\u00e4\u00f6\u00fc""#, Ok("äöü")),
        (Kind::Varchar(Some(3)), r#""😀😀😀""#, Ok("😀😀😀")),
        (Kind::Varchar(Some(3)), r#""😀😀😀😀""#, Err(TooLong)),
        (Kind::Varchar(Some(3)), "1234", Err(TooLong)),
        (Kind::Varchar(None), r#""abcd ""#, Ok("abcd ")),
    ] {
        assert_eq!(bytes(kind, raw), expected.map(|text| text.as_bytes().to_vec()), "{kind:?} {raw}");
    }
}

#[test]
fn boolean_and_uuid() {
    let id =
        vec![0xa0, 0xee, 0xbc, 0x99, 0x9c, 0x0b, 0x4e, 0xf8, 0xbb, 0x6d, 0x6b, 0xb9, 0xbd, 0x38, 0x0a, 0x11];
    for (kind, raw, expected) in [
        (Kind::Boolean, "true", Ok(vec![1])),
        (Kind::Boolean, "false", Ok(vec![0])),
        (Kind::Boolean, "1", Err(WrongType)),
        (Kind::Boolean, r#""true""#, Err(WrongType)),
        (Kind::Uuid, r#""a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11""#, Ok(id.clone())),
        (Kind::Uuid, r#""A0EEBC999C0B4EF8BB6D6BB9BD380A11""#, Ok(id.clone())),
        (Kind::Uuid, r#""{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}""#, Ok(id)),
        (Kind::Uuid, r#""urn:uuid:a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11""#, Err(WrongType)),
        (Kind::Uuid, r#""a0eebc99""#, Err(WrongType)),
        (Kind::Uuid, "1", Err(WrongType)),
    ] {
        assert_eq!(bytes(kind, raw), expected, "{kind:?} {raw}");
    }
}

#[test]
fn instants() {
    const DAY: i64 = 86_400_000_000;
    for (digits, zone, raw, expected) in [
        (6, None, "2000-01-01T00:00:00Z", Ok(0_i64)),
        (6, None, "2000-01-01t00:00:00z", Ok(0)),
        (6, None, "2000-01-01 00:00:00+00:00", Ok(0)),
        (6, None, "2000-01-01T01:30:00.5+01:30", Ok(500_000)),
        (6, None, "1999-12-31T23:59:59.999999-00:00", Ok(-1)),
        (6, None, "2000-01-01T00:00:00.1234569Z", Ok(123_456)),
        (3, None, "2000-01-01T00:00:00.1239Z", Ok(123_000)),
        (0, None, "1999-12-31T23:59:59.9Z", Ok(-1_000_000)),
        (6, None, "2000-02-29T00:00:00Z", Ok(59 * DAY)),
        (6, None, "0001-01-01T00:00:00Z", Ok(-730_119 * DAY)),
        (6, None, "9999-12-31T23:59:59.999999Z", Ok(2_921_940 * DAY - 1)),
        (6, None, "1900-02-29T00:00:00Z", Err(NotATime)),
        (6, None, "0000-01-01T00:00:00Z", Err(NotATime)),
        (6, None, "2000-00-01T00:00:00Z", Err(NotATime)),
        (6, None, "2000-01-00T00:00:00Z", Err(NotATime)),
        (6, None, "2000-13-01T00:00:00Z", Err(NotATime)),
        (6, None, "2000-04-31T00:00:00Z", Err(NotATime)),
        (6, None, "2000-01-01T24:00:00Z", Err(NotATime)),
        (6, None, "2016-12-31T23:59:60Z", Err(NotATime)),
        (6, None, "2000-01-01T00:00:00.Z", Err(NotATime)),
        (6, None, "2000-01-01T00:00:00+24:00", Err(NotATime)),
        (6, None, "2000-01-01T00:00:00+0100", Err(NotATime)),
        (6, None, "2000-01-01T00:00:00 Z", Err(NotATime)),
        (6, None, "2000-01-01", Err(NotATime)),
        (6, None, "infinity", Err(NotATime)),
        (6, None, "now", Err(NotATime)),
        (6, None, "2000-01-01T00:00:00", Err(NotATime)),
        (6, Some("UTC"), "2000-01-01T00:00:00", Ok(0)),
        (6, Some("+02:00"), "2000-01-01T02:00:00.25", Ok(250_000)),
        (6, Some("-00:30"), "2000-01-01T00:00:00", Ok(1_800_000_000)),
        (6, Some("UTC"), "2000-01-01T01:00:00+01:00", Ok(0)),
        // The clocks of Berlin skip 02:30 on this day, and show it twice on the other; the first of the two counts.
        (6, Some("Europe/Berlin"), "2024-03-31T02:30:00", Err(NotATime)),
        (6, Some("Europe/Berlin"), "2024-10-27T02:30:00", Ok(783_304_200_000_000)),
        (6, Some("Europe/Berlin"), "2024-10-27T02:30:00+01:00", Ok(783_307_800_000_000)),
    ] {
        let found = with_zone(Kind::TimestampTz(digits), zone, &format!("\"{raw}\""));
        assert_eq!(found, expected.map(|micros| micros.to_be_bytes().to_vec()), "{digits} {zone:?} {raw}");
    }
    assert_eq!(bytes(Kind::TimestampTz(6), "1700000000"), Err(WrongType));
    assert_eq!(bytes(Kind::TimestampTz(6), "{}"), Err(WrongType));
}

#[test]
fn wall_times_and_days() {
    for (kind, zone, raw, expected) in [
        (Kind::Timestamp(6), None, "2000-01-01T00:00:00.000001", Ok(1_i64)),
        (Kind::Timestamp(6), None, "2000-01-01T01:00:00+01:00", Ok(0)),
        (Kind::Timestamp(6), Some("+01:00"), "2000-01-01T00:00:00Z", Ok(3_600_000_000)),
        (Kind::Timestamp(6), Some("Europe/Berlin"), "2000-01-01T00:00:00Z", Ok(3_600_000_000)),
        (Kind::Timestamp(1), None, "2000-01-01T00:00:00.99", Ok(900_000)),
        (Kind::Timestamp(6), None, "2000-01-01T00:00", Err(NotATime)),
    ] {
        let found = with_zone(kind, zone, &format!("\"{raw}\""));
        assert_eq!(found, expected.map(|micros| micros.to_be_bytes().to_vec()), "{raw}");
    }
    check(
        Kind::Date,
        &[
            (r#""2000-01-01""#, Ok(0_i32)),
            (r#""1999-12-31""#, Ok(-1)),
            (r#""2026-11-30""#, Ok(9_830)),
            (r#""9999-12-31""#, Ok(2_921_939)),
            (r#""2026-02-29""#, Err(NotATime)),
            (r#""2026-11-30T00:00:00Z""#, Err(NotATime)),
            (r#""2026-1-1""#, Err(NotATime)),
            ("20261130", Err(WrongType)),
        ],
    );
}

#[test]
fn unknown_zones_are_named() {
    for name in ["Mars/Olympus", "+2", "+25:00", ""] {
        let message = Zone::find(name).unwrap_err();
        assert!(message.contains(&format!("zone = {name:?}")), "{message}");
    }
}

#[test]
fn json_is_kept_as_text_and_checked_for_jsonb() {
    for (raw, expected) in [
        (r#"{"b":1,"a":[1,2.50,"x"]}"#, Ok(())),
        (r#""just a string""#, Ok(())),
        ("1.0", Ok(())),
        (r#"{"a":"\u0000"}"#, Err(NullCharacter)),
        (r#"{"\u0000":1}"#, Err(NullCharacter)),
        (r#"["\\u0000"]"#, Ok(())),
        (r#"["\ud83d\ude00"]"#, Ok(())),
        (r#"["\ud83d"]"#, Err(InvalidJson)),
        (r#"[1e131071, "9e999999"]"#, Ok(())),
        (r#"[1e131072]"#, Err(OutOfRange)),
        (r#"{"\"1e999999":-1e-20000}"#, Err(Inexact)),
    ] {
        let jsonb = expected.map(|()| [b"\x01".as_slice(), raw.as_bytes()].concat());
        assert_eq!(bytes(Kind::Jsonb, raw), jsonb, "{raw}");
        assert_eq!(bytes(Kind::Json, raw), Ok(raw.as_bytes().to_vec()), "{raw}");
    }
}
