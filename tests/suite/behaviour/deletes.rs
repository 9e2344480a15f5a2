//! Records without a value: what they delete, and what comes before and behind them.

use super::case::{Case, gone, kv, v};

cases!(
    c027_a_delete_is_read_for_its_key_only,
    c085_no_value_leaks_from_one_record_into_another,
    c099_deletes_keep_their_place_among_the_rows,
    c125_null_empty_and_nothing_are_three_different_things,
    a_deleted_parent_takes_only_the_rows_that_are_its_children_then,
    a_delete_needs_a_whole_key,
);

fn c027_a_delete_is_read_for_its_key_only() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, b integer NOT NULL, h varchar(5)); INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'x')",
        r#""mode":"upsert","key":["id"],"delete":"tombstone","columns":{"b":"value.a","h":"header.h"}"#,
    )
    .records([gone(r#"{"id":1}"#).header("h", Some("longer than five")), kv(r#"{"id":2}"#, r#"{"a":5}"#)])
    .rows("SELECT id, b, h FROM t", ["2|5|x"])
    .books([1, 0, 1, 0])
}

/// In every mode, and with every word on tombstones.
fn c085_no_value_leaks_from_one_record_into_another() -> Case {
    let ddl = |table: &str| format!("CREATE TABLE {table} (id varchar(5) PRIMARY KEY, a integer);");
    let records = |topic: &'static str| {
        let value = |n: i32| {
            if topic == "ups" { r#"{"a":9}"#.to_owned() } else { format!(r#"{{"id":"k{n}","a":9}}"#) }
        };
        let of = move |n: i32| {
            let key = if topic == "ups" { format!("k{n}") } else { String::new() };
            if n == 3 { kv(&key, &value(3)) } else { gone(&key) }
        };
        (1..=5).map(move |n| of(n).at(topic, 0)).collect::<Vec<_>>()
    };
    Case::new(&["bad", "skip", "ups"].map(ddl).concat(), "")
        .tables(
            r#""bad":{},"skip":{"delete":"none"},"ups":{"mode":"upsert","key":["id"],"delete":"tombstone"}"#,
        )
        .records(["bad", "skip", "ups"].iter().flat_map(|topic| records(topic)))
        .rows(
            "SELECT * FROM bad UNION ALL SELECT * FROM skip UNION ALL SELECT * FROM ups",
            ["k3|9", "k3|9", "k3|9"],
        )
        .bad([0, 1, 3, 4].map(|offset| ("bad", 0, offset, "tombstone", None)))
        .books([3, 0, 4, 4])
}

fn c099_deletes_keep_their_place_among_the_rows() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer, w integer DEFAULT 7); INSERT INTO t VALUES (4, 0, 0), (5, 0, 0), (6, 0, 0)",
        r#""mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .records([
        // Made, deleted, made again: the row of the last one, with nothing left of the first.
        kv("1", r#"{"v":1,"w":1}"#),
        gone("1"),
        kv("1", r#"{"v":2}"#),
        // Made and deleted.
        kv("2", r#"{"v":3}"#),
        gone("2"),
        // Deleted, then made with other fields.
        gone("3"),
        kv("3", r#"{"w":4}"#),
        // The same of rows that were there.
        gone("4"),
        kv("4", r#"{"v":9}"#),
        kv("5", r#"{"v":9}"#),
        gone("5"),
        gone("5"),
        kv("6", r#"{"v":1}"#),
        gone("6"),
        kv("6", r#"{"v":2}"#),
        kv("6", r#"{"w":3}"#),
    ])
    .rows("SELECT id, v, w FROM t ORDER BY id", ["1|2|7", "3|null|4", "4|9|7", "6|2|3"])
    .books([4, 6, 6, 0])
    .fillers(
        [kv("{n}", r#"{"v":1}"#), gone("{n}"), kv("{n}", r#"{"v":1,"w":1}"#)],
        "DELETE FROM t WHERE id >= 1000",
    )
}

fn c125_null_empty_and_nothing_are_three_different_things() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        r#""mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .records([kv("1", "null"), kv("2", ""), gone("3")])
    .rows("SELECT id, v FROM t ORDER BY id", ["1|1", "2|2"])
    .bad([("t", 0, 0, "invalid_json", None), ("t", 0, 1, "invalid_json", None)])
    .books([0, 0, 1, 0])
}

/// A foreign key from a table to itself: what a delete takes with it depends on the records before it, so they keep their places.
fn a_deleted_parent_takes_only_the_rows_that_are_its_children_then() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, parent integer REFERENCES t (id) ON DELETE CASCADE, kept integer DEFAULT 7);
         INSERT INTO t VALUES (1, NULL, 0), (2, NULL, 0), (3, 1, 3), (4, 1, 4)",
        r#""mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .records([
        // 3 moves away before its parent goes, 4 does not; 5 comes and goes with it.
        kv("3", r#"{"parent":2}"#),
        kv("5", r#"{"parent":4}"#),
        gone("1"),
        kv("4", r#"{"parent":2}"#),
    ])
    .rows("SELECT id, parent, kept FROM t ORDER BY id", ["2|null|0", "3|2|3", "4|2|7"])
    .books([3, 0, 1, 0])
}

fn a_delete_needs_a_whole_key() -> Case {
    Case::new(
        "CREATE TABLE t (a integer, b integer, PRIMARY KEY (a, b)); INSERT INTO t VALUES (1, 1), (1, 2)",
        r#""mode":"upsert","key":["a","b"],"delete":"tombstone""#,
    )
    .records([
        gone(r#"{"a":1}"#),
        gone(r#"{"a":1,"b":2}"#),
        gone("1"),
        gone(r#"{"a":1,"b":1,"c":1}"#),
        v("{}"),
    ])
    .rows("SELECT a, b FROM t", ["1|1"])
    .bad([
        ("t", 0, 0, "no_key", Some("b")),
        ("t", 0, 2, "no_key", Some("a")),
        ("t", 0, 3, "unknown_field", None),
        ("t", 0, 4, "no_key", Some("a")),
    ])
    .books([0, 0, 1, 0])
}
