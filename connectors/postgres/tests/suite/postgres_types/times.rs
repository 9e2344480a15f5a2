//! Times: exact whatever their unit, zone and year; what is infinite in the table is never read by us.

use oncesink::Reason::{NotATime, OutOfRange};
use proptest::prelude::*;

use crate::fixture::{Fixture, batch};
use crate::properties::check_reading;

const BERLIN: &str = r#"{"table":{"zone":"Europe/Berlin"}}"#;

fn unit(column: &str, unit: &str) -> String {
    format!(r#"{{"table":{{"columns":{{"{column}":{{"as":"{unit}"}}}}}}}}"#)
}

#[tokio::test]
async fn c023_an_instant_is_the_same_whatever_the_servers_zone() {
    let fixture = Fixture::new("zone", "CREATE TABLE t (at timestamptz, wall timestamp)").await;
    let role = format!("tokyo_{}", fixture.schema.name());
    let schema = fixture.schema.name();
    fixture
        .schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN; ALTER ROLE {role} SET timezone = 'Asia/Tokyo'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT INSERT ON t TO {role}"
        ))
        .await;
    let theirs = fixture.acting_as(&role);
    let config = r#"{"table":{"columns":{"at":{"as":"epoch-ms"},"wall":{"as":"epoch-ms"}}}}"#;
    for rows in [1, 300] {
        let values = vec![r#"{"at":1700000000123,"wall":1700000000123}"#; rows];
        theirs.put(config, &values).await.unwrap();
    }
    let zoned = r#"{"table":{"zone":"Asia/Tokyo","columns":{"wall":{"as":"epoch-ms"}}}}"#;
    theirs.put(zoned, &[r#"{"wall":1700000000123}"#]).await.unwrap();
    assert_eq!(
        fixture.rows("SELECT DISTINCT extract(epoch FROM at) AS at, wall FROM t").await,
        [
            r#"{"at":1700000000.123000,"wall":"2023-11-14T22:13:20.123"}"#,
            r#"{"at":null,"wall":"2023-11-15T07:13:20.123"}"#,
        ]
    );
    fixture.schema.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn c039_times_before_1970_are_exact_to_the_microsecond() {
    let fixture = Fixture::new("floor", "CREATE TABLE t (at timestamptz, n bigint)").await;
    let values: Vec<_> = [-1_000_001_i64, -1, -6_800_000_000_000_001, 0, 1]
        .iter()
        .map(|micros| format!(r#"{{"at":{micros},"n":{micros}}}"#))
        .collect();
    fixture
        .put(&unit("at", "epoch-us"), &values.iter().map(String::as_str).collect::<Vec<_>>())
        .await
        .unwrap();
    let same: i64 = fixture
        .schema
        .value("SELECT count(*) FROM t WHERE (extract(epoch FROM at) * 1000000)::bigint = n")
        .await;
    assert_eq!(same, 5);
    let first: String =
        fixture.schema.value("SELECT (at AT TIME ZONE 'UTC')::text FROM t WHERE n = -1000001").await;
    assert_eq!(first, "1969-12-31 23:59:58.999999");
}

#[tokio::test]
async fn c063_clocks_that_are_changed_never_make_two_instants_one() {
    let fixture = Fixture::new("dst", "CREATE TABLE t (n integer, at timestamptz)").await;
    let bad = fixture.bad(BERLIN, &[r#"{"at":"2024-03-31T02:30:00"}"#]).await;
    assert_eq!(bad[0].reason, NotATime);
    // Without a zone no conversion takes place, and none is guessed.
    assert_eq!(fixture.bad("{}", &[r#"{"at":"2024-10-27T02:30:00"}"#]).await[0].reason, NotATime);
    fixture
        .put(
            BERLIN,
            &[
                r#"{"n":1,"at":"2024-10-27T02:30:00"}"#,
                r#"{"n":2,"at":"2024-10-27T02:30:00+02:00"}"#,
                r#"{"n":3,"at":"2024-10-27T02:30:00+01:00"}"#,
                r#"{"n":4,"at":"2024-10-27T03:30:00"}"#,
            ],
        )
        .await
        .unwrap();
    let hours: Vec<i32> = fixture
        .schema
        .column("SELECT extract(hour FROM at AT TIME ZONE 'UTC')::integer FROM t ORDER BY n")
        .await;
    assert_eq!(hours, [0, 0, 1, 2]);
}

#[tokio::test]
async fn c127_an_infinite_time_in_the_table_is_never_decoded() {
    let fixture = Fixture::new(
        "infinite",
        "CREATE TABLE t (id timestamptz PRIMARY KEY, n integer, d date); INSERT INTO t VALUES ('infinity', 1, '-infinity'), ('-infinity', 2, 'infinity'), ('2026-11-30Z', 3, NULL)",
    )
    .await;
    for mode in ["upsert", "update"] {
        let config =
            format!(r#"{{"table":{{"mode":"{mode}","key":["id"],"key_from":"value","delete":"none"}}}}"#);
        for value in [
            r#"{"id":"2026-11-30T00:00:00Z","n":4}"#,
            r#"{"id":"2026-11-30T00:00:00Z","n":5,"d":"2026-11-30"}"#,
        ] {
            fixture.put(&config, &[value]).await.unwrap();
        }
    }
    assert_eq!(fixture.bad("{}", &[r#"{"id":"infinity"}"#]).await[0].reason, NotATime);
    assert_eq!(fixture.schema.count("t").await, 3);
}

#[tokio::test]
async fn c155_nanoseconds_neither_overflow_nor_round_up() {
    let fixture =
        Fixture::new("nanos", "CREATE TABLE t (n integer, at timestamptz, ms timestamptz(3))").await;
    fixture
        .put(
            &unit("at", "epoch-ns"),
            &[
                r#"{"n":1,"at":9223372036854775807}"#,
                r#"{"n":2,"at":1700000000999999999}"#,
                r#"{"n":3,"at":"253402300799999999999"}"#,
            ],
        )
        .await
        .unwrap();
    fixture
        .put(
            "{}",
            &[r#"{"n":4,"at":"9999-12-31T23:59:59.999999999Z","ms":"2026-11-30T23:59:59.999999999Z"}"#],
        )
        .await
        .unwrap();
    assert_eq!(
        fixture.rows("SELECT n, at AT TIME ZONE 'UTC' AS at, ms AT TIME ZONE 'UTC' AS ms FROM t").await,
        [
            r#"{"n":1,"at":"2262-04-11T23:47:16.854775","ms":null}"#,
            r#"{"n":2,"at":"2023-11-14T22:13:20.999999","ms":null}"#,
            r#"{"n":3,"at":"9999-12-31T23:59:59.999999","ms":null}"#,
            r#"{"n":4,"at":"9999-12-31T23:59:59.999999","ms":"2026-11-30T23:59:59.999"}"#,
        ]
    );
    let bad =
        fixture.bad(&unit("at", "epoch-s"), &[r#"{"at":9223372036855}"#, r#"{"at":-210866803201}"#]).await;
    assert!(bad.iter().all(|bad| bad.reason == OutOfRange), "{bad:?}");
    // The first second that the column has, and the last one that 64 bits of microseconds since 1970 reach (the column has 29 years more).
    fixture
        .put(&unit("at", "epoch-s"), &[r#"{"at":9223372036854}"#, r#"{"at":-210866803200}"#])
        .await
        .unwrap();
}

#[test]
fn epoch_numbers_are_what_the_server_computes_exactly() {
    for (unit, scale, digits) in
        [("epoch-s", "1", 6_usize), ("epoch-ms", "1000", 3), ("epoch-us", "1000000", 0)]
    {
        let number = (-62_000_000_000_i64..250_000_000_000, "[0-9]{9}", 0_usize..=9).prop_map(
            move |(whole, fraction, shown)| {
                let sign = if whole < 0 { "-" } else { "" };
                let size = whole.unsigned_abs().to_string();
                let fraction = &fraction[..shown.min(digits)];
                let point = if fraction.is_empty() { "" } else { "." };
                let number = format!("{sign}{size}{point}{fraction}");
                (number.clone(), number)
            },
        );
        check_reading(
            "epochs",
            "CREATE TABLE t (v timestamptz, s text)",
            &format!("v IS NULL OR extract(epoch FROM v)::numeric <> s::numeric / {scale}"),
            r#"{"table":{"columns":{"v":{"as":"UNIT"}}}}"#.replace("UNIT", unit).as_str(),
            number,
        );
    }
}

fn signed(most: u32) -> impl Strategy<Value = String> {
    (any::<bool>(), 0..most).prop_map(|(minus, size)| format!("{}{size}", if minus { "-" } else { "" }))
}

#[test]
fn intervals_are_the_servers_own() {
    let fraction = "(\\.[0-9]{1,6})?";
    let iso =
        (signed(3000), signed(40), signed(5000), signed(100_000), signed(10_000), signed(100_000), fraction)
            .prop_map(|(y, mon, d, h, m, s, f)| format!("P{y}Y{mon}M{d}DT{h}H{m}M{s}{f}S"));
    let parts = (signed(30), signed(30), signed(30)).prop_map(|(w, d, h)| format!("P{w}W{d}DT{h}H"));
    let plain = (
        signed(3000),
        signed(40),
        signed(5000),
        0..1000,
        0..60,
        0..60,
        fraction,
        prop_oneof![Just(""), Just("-"), Just("+")],
    )
        .prop_map(|(y, mon, d, h, m, s, f, sign)| {
            format!("{y} years {mon} mons {d} days {sign}{h:02}:{m:02}:{s:02}{f}")
        });
    let day = (signed(99), 0..24, 0..60).prop_map(|(d, h, m)| format!("{d} day {h:02}:{m:02}:00"));
    let texts = prop_oneof![iso, parts, plain, day].prop_map(|text| (format!("\"{text}\""), text));
    // Equality of intervals takes a month for 30 days: the text tells them apart.
    check_reading(
        "intervals",
        "CREATE TABLE t (v interval, s text)",
        "v IS NULL OR v::text <> s::interval::text",
        "{}",
        texts,
    );
}

#[test]
fn what_the_server_prints_of_an_interval_is_taken_and_kept() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(Fixture::new("printed", "CREATE TABLE t (v interval, s text)"));
    runtime.block_on(async {
        let sink = fixture.open("{}", &["t"]).await.unwrap();
        for style in ["postgres", "iso_8601"] {
            let texts: Vec<String> = {
                let mut connection = fixture.schema.connection().await;
                oncesink::sqlx::query(&format!("SET intervalstyle = {style}")).execute(&mut connection).await.unwrap();
                oncesink::sqlx::query_scalar(
                    "SELECT make_interval(months => ((random() - 0.5) * 1000)::integer, days => ((random() - 0.5) * 1000)::integer,
                            secs => round(((random() - 0.5) * 1e6)::numeric, 6)::double precision)::text FROM generate_series(1, 500)
                     UNION ALL VALUES (interval '0'::text), (interval '1 day'::text), (interval '-1 s'::text)",
                )
                .fetch_all(&mut connection)
                .await
                .unwrap()
            };
            let records: Vec<_> = texts.iter().map(|text| format!(r#"{{"v":"{text}","s":"{text}"}}"#)).collect();
            fixture.schema.execute("TRUNCATE t").await;
            fixture.write(&sink, &mut batch(&records)).await.unwrap();
            let wrong: Vec<String> = fixture.schema.column("SELECT s FROM t WHERE v::text <> s::interval::text").await;
            assert!(wrong.is_empty(), "{wrong:?}");
            assert_eq!(fixture.schema.count("t").await, 503);
        }
    });
}

#[test]
fn times_of_day_are_the_servers_own() {
    let time = (0..24, 0..60, 0..60, "(\\.[0-9]{1,6})?", prop_oneof![Just("+"), Just("-")], 0..16, 0..60)
        .prop_map(|(h, m, s, f, sign, oh, om)| format!("{h:02}:{m:02}:{s:02}{f}{sign}{oh:02}:{om:02}"))
        .prop_map(|text| (format!("\"{text}\""), text));
    check_reading(
        "timetz",
        "CREATE TABLE t (v timetz, s text)",
        "v IS NULL OR v <> s::timetz OR v::text <> s::timetz::text",
        "{}",
        time,
    );
}
