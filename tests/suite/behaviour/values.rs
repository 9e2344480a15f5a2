//! Values whose fate is the same on every database, whatever it would do by itself.

use super::case::{Case, Database, v};

cases!(
    c023_an_instant_stays_an_instant_whatever_the_zones,
    c037_declared_types_are_checked,
    c039_times_before_the_epoch_are_exact,
    c063_hours_that_summer_time_skips_or_repeats,
    c119_a_null_character_is_no_end_of_text,
    c155_nanoseconds_are_cut_and_never_rounded,
);

/// SQLite writes times as texts of one width.
const TIMES: &str =
    "SQLite has no type for times: they are texts of one width, so that texts sort as times do";

fn c023_an_instant_stays_an_instant_whatever_the_zones() -> Case {
    let columns =
        r#""columns":{"tz":{"from":"value.at","as":"epoch-ms"},"wall":{"from":"value.at","as":"epoch-ms"}}"#;
    Case::new("CREATE TABLE t (tz timestamptz, wall timestamp)", columns)
        .records([v(r#"{"at":1700000000123}"#)])
        .rows("SELECT tz, wall FROM t", ["2023-11-14 22:13:20.123+00|2023-11-14 22:13:20.123"])
        .differs(Database::Sqlite, TIMES, |case| {
            case.no_rows()
                .rows("SELECT tz, wall FROM t", ["2023-11-14T22:13:20.123000Z|2023-11-14T22:13:20.123000"])
        })
}

fn c037_declared_types_are_checked() -> Case {
    Case::new("CREATE TABLE t (id integer PRIMARY KEY, n integer, d date)", "")
        .records([
            v(r#"{"id":1,"n":"abc"}"#),
            v(r#"{"id":2,"n":"12"}"#),
            v(r#"{"id":3,"n":18446744073709551615}"#),
            v(r#"{"id":4,"d":"31/12/2024"}"#),
            v(r#"{"id":5,"n":1.5}"#),
            v(r#"{"id":6,"n":true}"#),
            v(r#"{"id":7,"d":"2024-12-31","n":1.0}"#),
        ])
        .rows("SELECT id, n, d FROM t ORDER BY id", ["2|12|null", "7|1|2024-12-31"])
        .bad([
            ("t", 0, 0, "not_a_number", Some("n")),
            ("t", 0, 2, "out_of_range", Some("n")),
            ("t", 0, 3, "not_a_time", Some("d")),
            ("t", 0, 4, "inexact", Some("n")),
            ("t", 0, 5, "wrong_type", Some("n")),
        ])
}

fn c039_times_before_the_epoch_are_exact() -> Case {
    let columns = r#""columns":{"at":{"as":"epoch-us"}}"#;
    Case::new("CREATE TABLE t (id integer, at timestamp)", columns)
        .records([
            v(r#"{"id":1,"at":-1000001}"#),
            v(r#"{"id":2,"at":-1}"#),
            v(r#"{"id":3,"at":-6795364578871345}"#),
        ])
        .rows(
            "SELECT at FROM t ORDER BY id",
            ["1969-12-31 23:59:58.999999", "1969-12-31 23:59:59.999999", "1754-08-30 22:43:41.128655"],
        )
        .differs(Database::Sqlite, TIMES, |case| {
            case.no_rows().rows(
                "SELECT at FROM t ORDER BY id",
                ["1969-12-31T23:59:58.999999", "1969-12-31T23:59:59.999999", "1754-08-30T22:43:41.128655"],
            )
        })
}

/// The hour that summer time skips is no time; of the hour that comes twice, the first one is meant.
fn c063_hours_that_summer_time_skips_or_repeats() -> Case {
    Case::new("CREATE TABLE t (id integer, at timestamptz)", r#""zone":"Europe/Berlin""#)
        .records([
            v(r#"{"id":1,"at":"2024-03-31T02:30:00"}"#),
            v(r#"{"id":2,"at":"2024-10-27T02:30:00"}"#),
            v(r#"{"id":3,"at":"2024-10-27T02:30:00+02:00"}"#),
            v(r#"{"id":4,"at":"2024-10-27T02:30:00+01:00"}"#),
        ])
        .rows(
            "SELECT at FROM t ORDER BY id",
            ["2024-10-27 00:30:00+00", "2024-10-27 00:30:00+00", "2024-10-27 01:30:00+00"],
        )
        .bad([("t", 0, 0, "not_a_time", Some("at"))])
        .differs(Database::Sqlite, TIMES, |case| {
            case.no_rows().rows(
                "SELECT at FROM t ORDER BY id",
                ["2024-10-27T00:30:00.000000Z", "2024-10-27T00:30:00.000000Z", "2024-10-27T01:30:00.000000Z"],
            )
        })
}

fn c119_a_null_character_is_no_end_of_text() -> Case {
    let query = "SELECT id, length(note) FROM t ORDER BY id";
    Case::new("CREATE TABLE t (id integer PRIMARY KEY, note text)", "")
        .records([
            v(r#"{"id":1,"note":"abcd"}"#),
            v(r#"{"id":2,"note":"ab\u0000cd"}"#),
            v(r#"{"id":3,"note":"\u0000"}"#),
            v(r#"{"id":4,"note":""}"#),
        ])
        .rows(query, ["1|4", "4|0"])
        .bad([("t", 0, 1, "null_character", Some("note")), ("t", 0, 2, "null_character", Some("note"))])
        .differs(
            Database::Sqlite,
            "SQLite stores U+0000 within a text, though its own functions stop there",
            |case| {
                case.no_rows().bad([]).rows(
                    "SELECT id, hex(note) FROM t ORDER BY id",
                    ["1|61626364", "2|6162006364", "3|00", "4|"],
                )
            },
        )
}

fn c155_nanoseconds_are_cut_and_never_rounded() -> Case {
    let columns = r#""columns":{"ns":{"as":"epoch-ns"}}"#;
    Case::new("CREATE TABLE t (id integer, ns timestamp, txt timestamp)", columns)
        .records([
            v(r#"{"id":1,"ns":9223372036854775807}"#),
            v(r#"{"id":2,"txt":"9999-12-31T23:59:59.999999999Z"}"#),
            v(r#"{"id":3,"ns":1699999999999999999}"#),
        ])
        .rows(
            "SELECT ns, txt FROM t ORDER BY id",
            [
                "2262-04-11 23:47:16.854775|null",
                "null|9999-12-31 23:59:59.999999",
                "2023-11-14 22:13:19.999999|null",
            ],
        )
        .differs(Database::Sqlite, TIMES, |case| {
            case.no_rows().rows(
                "SELECT ns, txt FROM t ORDER BY id",
                [
                    "2262-04-11T23:47:16.854775|null",
                    "null|9999-12-31T23:59:59.999999",
                    "2023-11-14T22:13:19.999999|null",
                ],
            )
        })
}
