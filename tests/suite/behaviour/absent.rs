//! Records that carry some of the columns: what is absent is not touched.

use super::case::{Case, kv, v};

cases!(
    c051_an_absent_field_leaves_default_and_value_alone,
    c093_a_renamed_field_is_one_gone_and_one_new,
    c169_partial_updates_of_one_key_are_merged,
    records_of_many_shapes_keep_the_order_of_each_key,
    records_of_many_shapes_are_inserted_as_they_are,
);

fn c051_an_absent_field_leaves_default_and_value_alone() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, st varchar(9) NOT NULL DEFAULT 'new', n integer)",
        r#""mode":"upsert","key":["id"],"key_from":"value","delete":"none""#,
    )
    .records([
        v(r#"{"id":1,"n":1}"#),
        v(r#"{"id":2,"n":2,"st":"old"}"#),
        v(r#"{"id":1,"n":3}"#),
        v(r#"{"id":2,"n":4}"#),
    ])
    .rows("SELECT id, st, n FROM t ORDER BY id", ["1|new|3", "2|old|4"])
    .books([2, 2, 0, 0])
    .fillers([v(r#"{"id":{n},"n":1}"#), v(r#"{"id":{n},"n":1,"st":"x"}"#)], "DELETE FROM t WHERE id >= 1000")
}

fn c093_a_renamed_field_is_one_gone_and_one_new() -> Case {
    let ddl = |table: &str| {
        format!(
            "CREATE TABLE {table} (id integer PRIMARY KEY, addr varchar(20) NOT NULL); INSERT INTO {table} VALUES (1, 'Elm 1');"
        )
    };
    let renamed = |topic: &str, id: i32| kv(&id.to_string(), r#"{"address":"Oak 2"}"#).at(topic, 0);
    Case::new(&["strict", "lax", "patch"].map(ddl).concat(), "")
        .tables(
            r#""strict":{"mode":"upsert","key":["id"],"delete":"none"},
               "lax":{"mode":"upsert","key":["id"],"delete":"none","unknown_fields":"ignore"},
               "patch":{"mode":"update","key":["id"],"delete":"none","unknown_fields":"ignore"}"#,
        )
        .records([renamed("strict", 1), renamed("lax", 2), renamed("patch", 1)])
        .rows(
            "SELECT * FROM strict UNION ALL SELECT * FROM lax UNION ALL SELECT * FROM patch",
            ["1|Elm 1", "1|Elm 1", "1|Elm 1"],
        )
        .bad([("lax", 0, 0, "missing_field", Some("addr")), ("strict", 0, 0, "unknown_field", None)])
        .books([1, 0, 0, 0])
}

fn c169_partial_updates_of_one_key_are_merged() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer, c integer); INSERT INTO t VALUES (1, 0, 0, 0), (2, 0, 0, 0)",
        r#""mode":"upsert","key":["id"],"key_from":"value","delete":"none""#,
    )
    .records([
        v(r#"{"id":1,"a":5}"#),
        v(r#"{"id":1,"b":6}"#),
        v(r#"{"id":2,"a":1,"b":1}"#),
        v(r#"{"id":2,"a":null}"#),
        v(r#"{"id":2,"c":3,"a":4}"#),
        v(r#"{"id":2,"b":null}"#),
    ])
    .rows("SELECT id, a, b, c FROM t ORDER BY id", ["1|5|6|0", "2|4|null|3"])
    .books([2, 4, 0, 0])
    .fillers(
        [v(r#"{"id":{n},"a":1}"#), v(r#"{"id":{n},"b":1}"#), v(r#"{"id":{n},"a":1,"b":2}"#)],
        "DELETE FROM t WHERE id >= 1000",
    )
}

/// Each record carries other fields: 64 shapes, each key many times.
fn many_shapes(by_key: bool) -> impl Iterator<Item = super::case::Rec> {
    (0..128_u32).map(move |n| {
        let fields = (0..6).filter(|bit| n >> bit & 1 == 1).map(|bit| format!("\"f{bit}\":{n}"));
        let id = if by_key { n % 5 } else { n };
        let all: Vec<String> = std::iter::once(format!("\"id\":{id}")).chain(fields).collect();
        v(&format!("{{{}}}", all.join(",")))
    })
}

const SHAPES: &str = "CREATE TABLE t (id integer PRIMARY KEY, f0 integer DEFAULT -1, f1 integer DEFAULT -1, f2 integer DEFAULT -1, f3 integer DEFAULT -1, \
                      f4 integer DEFAULT -1, f5 integer DEFAULT -1)";

/// What stands in the end: for each key and field the number of the last record that carries it.
fn records_of_many_shapes_keep_the_order_of_each_key() -> Case {
    let last = |id: u32, bit: u32| (0..128_u32).rev().find(|n| n % 5 == id && n >> bit & 1 == 1).unwrap();
    let row = |id: u32| {
        let fields: Vec<String> = (0..6).map(|bit| last(id, bit).to_string()).collect();
        format!("{id}|{}", fields.join("|"))
    };
    let rows: [String; 5] = [0, 1, 2, 3, 4].map(row);
    Case::new(SHAPES, r#""mode":"upsert","key":["id"],"key_from":"value","delete":"none""#)
        .records(many_shapes(true))
        .rows("SELECT id, f0, f1, f2, f3, f4, f5 FROM t ORDER BY id", rows.each_ref().map(String::as_str))
        .books([5, 123, 0, 0])
}

fn records_of_many_shapes_are_inserted_as_they_are() -> Case {
    let sum = |bit: u32| {
        (0..128_u32).map(|n| if n >> bit & 1 == 1 { i64::from(n) } else { -1 }).sum::<i64>().to_string()
    };
    let sums: Vec<String> = (0..6).map(sum).collect();
    Case::new(SHAPES, "")
        .records(many_shapes(false))
        .rows("SELECT sum(f0), sum(f1), sum(f2), sum(f3), sum(f4), sum(f5) FROM t", [sums.join("|").as_str()])
        .books([128, 0, 0, 0])
}
