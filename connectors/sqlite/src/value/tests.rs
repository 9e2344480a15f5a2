//! Values and what they are bound as.

use super::*;
use crate::catalog::Bounds;

/// A value as SQL would write what is bound, or the code of its fault.
fn bound(kind: Kind, raw: &str, form: &Form) -> String {
    let mut out = Vec::new();
    match encode(kind, Cell::Json(raw), form, &mut out) {
        Ok(()) => written(&out),
        Err(fault) => fault.reason.code().to_owned(),
    }
}

fn written(cell: &[u8]) -> String {
    match Bound(Some(cell)).argument().unwrap().unwrap() {
        SqliteArgumentValue::Int64(value) => value.to_string(),
        SqliteArgumentValue::Double(value) => format!("{value:?}"),
        SqliteArgumentValue::Text(text) => format!("'{text}'"),
        SqliteArgumentValue::Blob(bytes) => format!("x'{bytes:02x?}'"),
        other => panic!("{other:?}"),
    }
}

fn check(kind: Kind, cases: &[(&str, &str)]) {
    for (raw, expected) in cases {
        assert_eq!(bound(kind, raw, &Form::default()), *expected, "{kind:?} {raw}");
    }
}

#[test]
fn integers_keep_to_their_width() {
    check(
        Kind::Integer(64),
        &[
            ("1.0", "1"),
            ("\"12\"", "12"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "out_of_range"),
            ("18446744073709551615", "out_of_range"),
            ("1e300", "out_of_range"),
            ("1.5", "inexact"),
            ("\"abc\"", "not_a_number"),
            ("true", "wrong_type"),
            ("{}", "wrong_type"),
        ],
    );
    check(
        Kind::Integer(8),
        &[("127", "127"), ("-128", "-128"), ("128", "out_of_range"), ("-129", "out_of_range")],
    );
    check(Kind::Integer(16), &[("-32768", "-32768"), ("32768", "out_of_range")]);
    check(Kind::Integer(24), &[("8388607", "8388607"), ("8388608", "out_of_range")]);
    check(Kind::Integer(32), &[("2147483647", "2147483647"), ("2147483648", "out_of_range")]);
}

#[test]
fn decimals_come_back_as_the_same_number_or_are_bad() {
    check(
        Kind::Numeric(None),
        &[
            ("1.10", "1.1"),
            ("\"1.10\"", "1.1"),
            ("1.0", "1"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("12345.6789012345", "12345.6789012345"),
            ("12345.67890123456", "inexact"),
            ("0.1000000000000000055511151231257827", "inexact"),
            ("9007199254740993", "9007199254740993"),
            ("9223372036854775808", "out_of_range"),
            ("1e20", "out_of_range"),
            ("1e-7", "1e-7"),
            ("1e-400", "out_of_range"),
            ("2.5e-310", "out_of_range"),
            ("\"NaN\"", "not_a_number"),
        ],
    );
    let bounds = Kind::Numeric(Some(Bounds { precision: 5, scale: 2 }));
    check(
        bounds,
        &[("999.99", "999.99"), ("1000", "out_of_range"), ("1.234", "inexact"), ("1.2300", "1.23")],
    );
}

#[test]
fn reals_are_the_nearest() {
    check(
        Kind::Real,
        &[
            ("1", "1.0"),
            ("0.1", "0.1"),
            ("-0.0", "0.0"),
            ("18446744073709551615", "1.8446744073709552e19"),
            ("1e400", "out_of_range"),
            ("1e-400", "out_of_range"),
            ("\"x\"", "not_a_number"),
        ],
    );
}

#[test]
fn text_is_kept_to_the_last_character() {
    check(
        Kind::Text(Some(3)),
        &[
            ("\"äöü\"", "'äöü'"),
            ("\"äöü \"", "too_long"),
            ("\"a\\u0000b\"", "'a\0b'"),
            ("\"\\ud83d\\ude00\"", "'😀'"),
            ("\"\\ud83d\"", "invalid_json"),
            ("1.0", "'1.0'"),
            ("[1]", "wrong_type"),
        ],
    );
    let form = Form { reading: Some(Reading::JsonText), zone: None };
    assert_eq!(bound(Kind::Text(None), "{\"a\": 1}", &form), "'{\"a\": 1}'");
    assert_eq!(bound(Kind::Any, "12", &form), "'12'");
}

#[test]
fn times_have_one_form() {
    check(
        Kind::Date,
        &[
            ("\"2024-12-31\"", "'2024-12-31'"),
            ("\"0001-01-01\"", "'0001-01-01'"),
            ("\"31/12/2024\"", "not_a_time"),
            ("\"2024-12-31T10:00:00\"", "not_a_time"),
            ("1", "wrong_type"),
        ],
    );
    check(Kind::Time(6), &[("\"23:59:59.5\"", "'23:59:59.500000'"), ("\"24:00:00\"", "not_a_time")]);
    check(Kind::Time(2), &[("\"01:02:03.456\"", "'01:02:03.45'")]);
    check(Kind::Time(0), &[("\"01:02:03.456\"", "'01:02:03'")]);
    check(
        Kind::Timestamp(6),
        &[
            ("\"2026-11-30 23:59:59\"", "'2026-11-30T23:59:59.000000'"),
            ("\"2026-11-30T23:59:59+01:00\"", "'2026-11-30T22:59:59.000000'"),
            ("\"2026-02-30T00:00:00\"", "not_a_time"),
        ],
    );
    check(
        Kind::TimestampTz(3),
        &[
            ("\"2026-11-30T23:59:59.1239+01:00\"", "'2026-11-30T22:59:59.123Z'"),
            ("\"2026-11-30T23:59:59\"", "not_a_time"),
            ("\"0001-01-01T00:00:00+01:00\"", "out_of_range"),
        ],
    );
    let days = Form { reading: Some(Reading::Epoch(value::Unit::Days)), zone: None };
    assert_eq!(bound(Kind::Date, "-1", &days), "'1969-12-31'");
    assert_eq!(bound(Kind::Date, "99999999999999", &days), "out_of_range");
}

#[test]
fn the_rest() {
    check(Kind::Boolean, &[("true", "1"), ("false", "0"), ("1", "wrong_type"), ("\"true\"", "wrong_type")]);
    check(
        Kind::Uuid,
        &[
            ("\"{0E37DF36-F698-11E6-8DD4-CB9CED3DF976}\"", "'0e37df36-f698-11e6-8dd4-cb9ced3df976'"),
            ("\"x\"", "wrong_type"),
        ],
    );
    check(
        Kind::Json,
        &[
            ("{\"a\": 1.10}", "'{\"a\": 1.10}'"),
            ("\"12\"", "'\"12\"'"),
            ("12", "12"),
            ("1.10", "1.1"),
            ("12345678901234567890", "out_of_range"),
            ("0.12345678901234567", "inexact"),
            ("true", "'true'"),
        ],
    );
    check(
        Kind::Any,
        &[
            ("12", "12"),
            ("\"12\"", "'12'"),
            ("1.5", "1.5"),
            ("true", "1"),
            ("18446744073709551615", "out_of_range"),
            ("{}", "wrong_type"),
        ],
    );
    let hex = Form { reading: Some(Reading::Hex), zone: None };
    assert_eq!(bound(Kind::Blob(Some(2)), "\"00ff\"", &hex), "x'[00, ff]'");
    assert_eq!(bound(Kind::Blob(Some(1)), "\"00ff\"", &hex), "too_long");
}

#[test]
fn cells_of_integers_sort_as_they_count() {
    let mut cells: Vec<Vec<u8>> = [3, -1, i64::MAX, 0, i64::MIN]
        .iter()
        .map(|value| {
            let mut out = Vec::new();
            integer(*value, &mut out);
            out
        })
        .collect();
    cells.sort();
    let values: Vec<_> = cells.iter().map(|cell| written(cell)).collect();
    assert_eq!(values, ["-9223372036854775808", "-1", "0", "3", "9223372036854775807"]);
}
