//! Random numbers and times: what the sink's binary form becomes on the server equals what the server makes of the text.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::{Fixture, batch};

/// Writes `{"v": value, "s": text}` and sees that there is no row where `differs` holds.
fn check(stem: &str, table: &str, differs: &str, values: impl Strategy<Value = (String, String)>) {
    check_reading(stem, table, differs, "{}", values);
}

/// The same with these keys of the sink.
pub(crate) fn check_reading(
    stem: &str,
    table: &str,
    differs: &str,
    config: &str,
    values: impl Strategy<Value = (String, String)>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (fixture, sink) = runtime.block_on(async {
        let fixture = Fixture::new(stem, table).await;
        let sink = fixture.open(config, &["t"]).await.unwrap();
        (fixture, sink)
    });
    let mut runner = TestRunner::new(Config { cases: 30, failure_persistence: None, ..Config::default() });
    runner
        .run(&vec(values, 1..300), |values| {
            let records: Vec<_> =
                values.iter().map(|(value, text)| format!(r#"{{"v":{value},"s":"{text}"}}"#)).collect();
            let wrong: Vec<String> = runtime.block_on(async {
                fixture.schema.execute("TRUNCATE t").await;
                fixture.write(&sink, &mut batch(&records)).await.unwrap();
                fixture.schema.column(&format!("SELECT s FROM t WHERE {differs}")).await
            });
            prop_assert!(wrong.is_empty(), "{wrong:?}");
            prop_assert_eq!(runtime.block_on(fixture.schema.count("t")), records.len() as i64);
            Ok(())
        })
        .unwrap();
}

fn number() -> impl Strategy<Value = String> {
    let plain = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?";
    let long = ("[1-9][0-9]{0,3}", 0_usize..3000, "[0-9]{1,9}")
        .prop_map(|(head, zeros, tail)| format!("{head}{}{tail}.{tail}", "0".repeat(zeros)));
    prop_oneof![8 => plain, 1 => long, 1 => "-?0\\.0{0,20}[0-9]{0,10}1"]
}

#[test]
fn numerics_are_exact() {
    let numbers = number().prop_flat_map(|number| {
        let quoted = format!("\"{number}\"");
        (prop_oneof![Just(number.clone()), Just(quoted)], Just(number))
    });
    check(
        "numerics",
        "CREATE TABLE t (v numeric, s text)",
        "v IS NULL OR v::text <> s::numeric::text",
        numbers,
    );
}

#[test]
fn doubles_are_the_servers_own() {
    let numbers = number().prop_filter("beyond a double", |number| {
        let value: f64 = number.parse().unwrap();
        value.is_finite() && (value != 0.0 || !number.contains(|digit: char| ('1'..='9').contains(&digit)))
    });
    let numbers = numbers.prop_map(|number| (number.clone(), number));
    check(
        "doubles",
        "CREATE TABLE t (v double precision, s text)",
        "v IS NULL OR v <> s::double precision",
        numbers,
    );
}

#[test]
fn what_the_server_prints_of_a_real_is_taken_and_kept() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 30, failure_persistence: None, ..Config::default() });
    // Any bits; and few digits, among which are ties and numbers half-way between two floats.
    let few = (-999_999_i32..999_999, -20_i32..20)
        .prop_map(|(digits, power)| format!("{digits}e{power}").parse().unwrap());
    let fixture = runtime.block_on(Fixture::new("reals", "CREATE TABLE t (v real, s text)"));
    let sink = runtime.block_on(fixture.open("{}", &["t"])).unwrap();
    runner
        .run(&vec(prop_oneof![any::<f32>(), few], 1..1000), |values| {
            let values: Vec<_> = values.into_iter().filter(|value: &f32| value.is_finite()).collect();
            let wrong: Vec<String> = runtime.block_on(async {
                let texts: Vec<String> =
                    oncesink::sqlx::query_scalar("SELECT v::text FROM UNNEST($1::real[]) AS v")
                        .bind(&values)
                        .fetch_all(fixture.schema.pool())
                        .await
                        .unwrap();
                let records: Vec<_> =
                    texts.iter().map(|text| format!(r#"{{"v":"{text}","s":"{text}"}}"#)).collect();
                fixture.schema.execute("TRUNCATE t").await;
                fixture.write(&sink, &mut batch(&records)).await.unwrap();
                fixture.schema.column("SELECT s FROM t WHERE v::text <> s").await
            });
            prop_assert!(wrong.is_empty(), "{wrong:?}");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_real_that_is_taken_is_given_back() {
    // Records are tried one by one, since most of these numbers are refused.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(Fixture::new("given", "CREATE TABLE t (v real, s text)"));
    let sink = runtime.block_on(fixture.open("{}", &["t"])).unwrap();
    let mut runner = TestRunner::new(Config { cases: 20, failure_persistence: None, ..Config::default() });
    runner
        .run(&vec("-?[1-9]\\.[0-9]{0,7}[1-9]e-?[0-9]", 1..2000), |numbers| {
            let taken: Vec<_> = numbers
                .iter()
                .map(|number| format!(r#"{{"v":{number},"s":"{number}"}}"#))
                .filter(|record| sink.encode(&batch(&[record])).is_ok())
                .collect();
            let wrong: Vec<String> = runtime.block_on(async {
                fixture.schema.execute("TRUNCATE t").await;
                fixture.write(&sink, &mut batch(&taken)).await.unwrap();
                fixture.schema.column("SELECT s FROM t WHERE v::text::numeric <> s::numeric").await
            });
            prop_assert!(wrong.is_empty(), "{wrong:?}");
            Ok(())
        })
        .unwrap();
}

#[test]
fn instants_are_the_servers_own() {
    let time = (
        1_i32..=9999,
        1_i32..=12,
        1_i32..=31,
        0_i32..24,
        0_i32..60,
        0_i32..60,
        "(\\.[0-9]{1,6})?",
        "Z|[+-]1[0-5]:[0-5][0-9]|[+-]0[0-9]:[0-5][0-9]",
    );
    let texts = time.prop_map(|(year, month, day, hour, minute, second, fraction, offset)| {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let day = day.min(days[month as usize - 1]);
        let text =
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{offset}");
        (format!("\"{text}\""), text)
    });
    check("instants", "CREATE TABLE t (v timestamptz, s text)", "v IS NULL OR v <> s::timestamptz", texts);
}

#[test]
fn texts_are_kept() {
    let texts = "\\PC{0,40}".prop_map(|text| {
        let json = serde_json::Value::from(text.as_str()).to_string();
        (json.clone(), text.chars().map(|c| format!("{:x} ", u32::from(c))).collect())
    });
    let codes = "(SELECT coalesce(string_agg(to_hex(ascii(c)) || ' ', '' ORDER BY n), '') FROM regexp_split_to_table(v, '') WITH ORDINALITY AS x (c, n) WHERE c <> '')";
    check("texts", "CREATE TABLE t (v text, s text)", &format!("v IS NULL OR s <> {codes}"), texts);
}

fn both_sides(text: String) -> (String, String) {
    (format!("\"{text}\""), text)
}

#[test]
fn addresses_are_the_servers_own() {
    let four = (any::<u32>(), 0..=32_u8)
        .prop_map(|(address, bits)| format!("{}/{bits}", std::net::Ipv4Addr::from(address)));
    let six = (any::<u128>(), 0..=128_u8)
        .prop_map(|(address, bits)| format!("{}/{bits}", std::net::Ipv6Addr::from(address)));
    let bare =
        any::<u128>().prop_map(|address| std::net::Ipv6Addr::from(address >> (address % 100)).to_string());
    let texts = prop_oneof![four, six, bare].prop_map(both_sides);
    check(
        "inets",
        "CREATE TABLE t (v inet, s text)",
        "v IS NULL OR v <> s::inet OR v::text <> s::inet::text",
        texts,
    );
}

#[test]
fn bits_and_bytes_are_the_servers_own() {
    check(
        "bits",
        "CREATE TABLE t (v varbit, s text)",
        "v IS NULL OR v <> s::varbit",
        "[01]{0,40}".prop_map(both_sides),
    );
    let bytes = vec(any::<u8>(), 0..40)
        .prop_map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let hex = r#"{"table":{"columns":{"v":{"as":"hex"}}}}"#;
    check_reading(
        "bytes",
        "CREATE TABLE t (v bytea, s text)",
        "v IS NULL OR encode(v, 'hex') <> s",
        hex,
        bytes.prop_map(both_sides),
    );
}

#[test]
fn arrays_are_the_servers_own() {
    let element = prop_oneof![4 => "-?[1-9][0-9]{0,12}(\\.[0-9]{1,5})?", 1 => Just("null".to_owned())];
    let flat = vec(element, 0..6).prop_map(|all| all.join(","));
    let square = (1_usize..4, 1_usize..4, vec("-?[1-9][0-9]{0,5}", 16)).prop_map(|(rows, columns, all)| {
        let row = |row: &[String]| {
            format!("[{}]", row.iter().take(columns).cloned().collect::<Vec<_>>().join(" , "))
        };
        all.chunks(4).take(rows).map(row).collect::<Vec<_>>().join(",")
    });
    let texts = prop_oneof![flat, square].prop_map(|all| {
        let literal = format!("{{{}}}", all.replace('[', "{").replace(']', "}"));
        (format!("[{all}]"), literal)
    });
    check(
        "arrays",
        "CREATE TABLE t (v numeric[], s text)",
        "v IS NULL OR v <> s::numeric[] OR v::text <> s::numeric[]::text",
        texts,
    );
}

#[test]
fn fixed_texts_are_kept_but_for_the_blanks_that_fill_them_up() {
    let texts = "[a-z äö€]{0,8}".prop_map(both_sides);
    check(
        "fixed",
        "CREATE TABLE t (v char(8), s text)",
        "v IS NULL OR v <> s::char(8) OR rtrim(s, ' ') <> v::text",
        texts,
    );
}
