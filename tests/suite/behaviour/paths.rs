//! Where values come from: `columns.x`, `by_name`, `unknown_fields`, `as`.

use super::case::{Case, Database, gone, kv, v};

cases!(
    columns_come_from_anywhere_in_a_record,
    without_names_only_what_is_written_counts,
    unknown_fields_are_ignored_or_kept_where_the_file_says_so,
    readings_say_what_a_number_or_a_string_means,
);

fn columns_come_from_anywhere_in_a_record() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, city varchar(20), trace varchar(20), topic varchar(9), part integer, off bigint, ts bigint, region varchar(9), n integer, tenant integer)",
        r#""mode":"upsert","key":["id"],"delete":"tombstone","columns":{"id":"key.id","city":"value.customer.address.city","trace":"header.trace",
           "topic":"topic","part":"partition","off":"offset","ts":"timestamp","region":{"constant":"eu"},"n":"value.\"a.b\"","tenant":"key.tenant.id"}"#,
    )
    .records([
        kv(
            r#"{"id":1,"tenant":{"id":4}}"#,
            r#"{"customer":{"address":{"city":"Ulm","zip":1},"x":1},"a.b":5}"#,
        )
        .header("trace", Some("old"))
        .header("trace", Some("abc"))
        .timestamp(1_700_000_000_123),
        kv(r#"{"id":2}"#, r#"{"customer":{"address":null}}"#).at("t", 1),
        kv(r#"{"id":3}"#, r#"{"customer":7}"#).header("trace", None).at("t", 1),
        gone(r#"{"id":4,"tenant":{"id":4}}"#),
        kv(r#"{"id":5}"#, r#"{"customers":7}"#).at("t", 1),
    ])
    .rows(
        "SELECT id, city, trace, topic, part, off, ts, region, n, tenant FROM t ORDER BY id",
        [
            "1|Ulm|abc|t|0|0|1700000000123|eu|5|4",
            "2|null|null|t|1|0|0|eu|null|null",
            "3|null|null|t|1|1|0|eu|null|null",
        ],
    )
    .bad([("t", 1, 2, "unknown_field", None)])
    .books([3, 0, 1, 0])
}

fn without_names_only_what_is_written_counts() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer DEFAULT 7)",
        r#""mode":"upsert","key":["id"],"key_from":"value","delete":"none","by_name":false,"columns":{"a":"value.x"}"#,
    )
    .records([v(r#"{"id":1,"x":1}"#), v(r#"{"id":1,"x":2}"#), v(r#"{"id":2,"x":2,"b":3}"#)])
    .rows("SELECT id, a, b FROM t", ["1|2|7"])
    .bad([("t", 0, 2, "unknown_field", None)])
}

fn unknown_fields_are_ignored_or_kept_where_the_file_says_so() -> Case {
    let extra = |table: &str, type_name: &str| {
        format!("CREATE TABLE {table} (id integer PRIMARY KEY, a integer, extra {type_name});")
    };
    Case::new(&format!("{}{}", extra("lax", "varchar(9)"), extra("kept", "json")), "")
        .tables(
            r#""lax":{"mode":"upsert","key":["id"],"delete":"none","unknown_fields":"ignore"},
               "kept":{"mode":"upsert","key":["id"],"delete":"none","unknown_fields":"column:extra"}"#,
        )
        .records([
            kv(r#"{"id":1,"z":0}"#, r#"{"a":1,"y":[1,{"b":2}],"x":"q"}"#).at("lax", 0),
            kv("1", r#"{"a":1,"y":[1,{"b":2}],"x":"q"}"#).at("kept", 0),
            kv("2", r#"{"a":2}"#).at("kept", 0),
            kv("3", r#"{"extra":1,"a":3}"#).at("kept", 0),
            kv("4", r#"{"x":1,"x":2}"#).at("kept", 0),
        ])
        .rows("SELECT id, a, extra FROM lax", ["1|1|null"])
        .rows(
            "SELECT id, a, extra FROM kept ORDER BY id",
            [r#"1|1|{"y":[1,{"b":2}],"x":"q"}"#, "2|2|null", r#"3|3|{"extra":1}"#],
        )
        .bad([("kept", 0, 3, "invalid_json", None)])
}

/// 2023-11-14 22:13:20 UTC, and what Kafka calls a record's time.
fn readings_say_what_a_number_or_a_string_means() -> Case {
    let read = |name: &str, unit: &str| format!(r#""{name}":{{"as":"{unit}"}}"#);
    let columns =
        [read("s", "epoch-s"), read("ms", "epoch-ms"), read("us", "epoch-us"), read("ns", "epoch-ns")];
    let time = |name: &str| format!("{name} timestamptz");
    Case::new(
        &format!(
            "CREATE TABLE t (id integer PRIMARY KEY, {}, at timestamptz, plain timestamptz, doc varchar(99))",
            ["s", "ms", "us", "ns"].map(time).join(", ")
        ),
        &format!(
            r#""mode":"upsert","key":["id"],"delete":"none","columns":{{{},"at":"timestamp","doc":{{"from":"value.d","as":"json-text"}}}}"#,
            columns.join(",")
        ),
    )
    .records([
        kv(
            "1",
            r#"{"s":1700000000,"ms":1700000000123,"us":1700000000123456,"ns":1700000000123456789,"plain":"2023-11-14T22:13:20Z","d":{"a": [1]}}"#,
        )
        .timestamp(1_700_000_000_500),
        kv("2", r#"{"plain":1700000000}"#),
        kv("3", r#"{"s":"soon"}"#),
    ])
    .rows(
        "SELECT s, ms, us, ns, at, plain, doc FROM t",
        [r#"2023-11-14 22:13:20+00|2023-11-14 22:13:20.123+00|2023-11-14 22:13:20.123456+00|2023-11-14 22:13:20.123456+00|2023-11-14 22:13:20.5+00|2023-11-14 22:13:20+00|{"a": [1]}"#],
    )
    .bad([("t", 0, 1, "wrong_type", Some("plain")), ("t", 0, 2, "not_a_number", Some("s"))])
    .differs(Database::Sqlite, "SQLite has no type for times: they are texts of one width, so that texts sort as times do", |case| {
        case.no_rows().rows(
            "SELECT s, ms, us, ns, at, plain, doc FROM t",
            [r#"2023-11-14T22:13:20.000000Z|2023-11-14T22:13:20.123000Z|2023-11-14T22:13:20.123456Z|2023-11-14T22:13:20.123456Z|2023-11-14T22:13:20.500000Z|2023-11-14T22:13:20.000000Z|{"a": [1]}"#],
        )
    })
}
