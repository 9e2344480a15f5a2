//! Keys: where they come from, which are equal, and that each is written once.

use super::case::{Case, Database, gone, kv, v};

cases!(
    c005_the_last_of_a_key_wins,
    c019_values_are_bound_by_name,
    c103_a_uuid_is_a_key_like_any_other,
    c115_a_null_inside_a_composite_key_is_no_key,
    c153_a_table_that_is_all_key_takes_a_key_twice,
    c173_identity_and_generated_columns_are_found_in_the_catalog only postgres,
    c173_generated_columns_are_left_out_in_every_mode,
    equal_keys_are_one_key_however_they_are_written,
    equal_keys_in_a_column_without_a_type only sqlite,
    keys_are_objects_bare_scalars_or_text,
    a_composite_key_comes_from_an_object,
    key_and_value_must_agree_on_the_key,
    two_topics_write_one_table_by_one_key,
    two_modes_write_one_table_in_one_transaction,
    two_thousand_keys_twice_in_one_batch,
    rows_that_change_places_under_a_unique_index,
);

fn c005_the_last_of_a_key_wins() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer)",
        r#""mode":"upsert","key":["id"],"delete":"none""#,
    )
    .records([kv("7", r#"{"v":1}"#), kv("8", r#"{"v":1}"#), kv("7", r#"{"v":2}"#)])
    .rows("SELECT id, v FROM t ORDER BY id", ["7|2", "8|1"])
    .books([2, 1, 0, 0])
    .fillers([kv("{n}", r#"{"v":{n}}"#)], "DELETE FROM t WHERE id >= 1000")
}

/// All columns of one type, the key not the first, the fields in another order than the columns.
fn c019_values_are_bound_by_name() -> Case {
    let shape = |id: &str, value: i32| format!(r#"{{"id":{id},"value":{value},"other":{}}}"#, value + 1);
    let ddl = "(other integer, value integer, id integer PRIMARY KEY)";
    Case::new(
        &format!("CREATE TABLE inserted {ddl}; CREATE TABLE upserted {ddl}; CREATE TABLE updated {ddl}; INSERT INTO updated VALUES (0, 0, 1), (0, 0, 2)"),
        "",
    )
    .tables(
        r#""inserted":{},
           "upserted":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"},
           "updated":{"mode":"update","key":["id"],"delete":"tombstone","columns":{"id":"key.id"},"unknown_fields":"ignore"}"#,
    )
    .records([
        v(&shape("1", 10)).at("inserted", 0),
        v(&shape("1", 10)).at("upserted", 0),
        v(&shape("1", 20)).at("upserted", 0),
        kv(r#"{"id":1}"#, &shape("1", 10)).at("updated", 0),
        gone(r#"{"id":2}"#).at("updated", 0),
    ])
    .rows("SELECT id, value, other FROM inserted", ["1|10|11"])
    .rows("SELECT id, value, other FROM upserted", ["1|20|21"])
    .rows("SELECT id, value, other FROM updated", ["1|10|11"])
    .fillers(
        [v(&shape("{n}", 5)).at("inserted", 0), v(&shape("{n}", 5)).at("upserted", 0)],
        "DELETE FROM inserted WHERE id >= 1000; DELETE FROM upserted WHERE id >= 1000",
    )
}

fn c103_a_uuid_is_a_key_like_any_other() -> Case {
    let first = r#"{"id":"9f1c7c5e-0000-4000-8000-000000000001"}"#;
    let second = r#"{"id":"9F1C7C5E-0000-4000-8000-000000000002"}"#;
    Case::new(
        "CREATE TABLE t (id uuid PRIMARY KEY, v integer)",
        r#""mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .records([
        kv(first, r#"{"v":1}"#),
        kv(second, r#"{"v":1}"#),
        kv(&second.to_lowercase(), r#"{"v":2}"#),
        gone(first),
        kv(r#"{"id":"not-a-uuid"}"#, r#"{"v":3}"#),
        gone(r#"{"id":"not-a-uuid"}"#),
    ])
    .rows("SELECT id, v FROM t", ["9f1c7c5e-0000-4000-8000-000000000002|2"])
    .bad([("t", 0, 4, "wrong_type", Some("id")), ("t", 0, 5, "wrong_type", Some("id"))])
    .books([1, 2, 1, 0])
    .fillers(
        [kv(r#"{"id":"00000000-0000-4000-8000-00000000{n}"}"#, r#"{"v":7}"#)],
        "DELETE FROM t WHERE v = 7",
    )
}

fn c115_a_null_inside_a_composite_key_is_no_key() -> Case {
    let key = r#"{"a":1,"b":null}"#;
    Case::new(
        "CREATE TABLE t (a integer, b integer, v integer, UNIQUE (a, b))",
        r#""mode":"upsert","key":["a","b"],"delete":"tombstone""#,
    )
    .records([
        kv(key, r#"{"v":1}"#),
        kv(key, r#"{"v":2}"#),
        kv(r#"{"a":1,"b":2}"#, r#"{"v":3}"#),
        kv(r#"{"a":1}"#, r#"{"v":4}"#),
        gone(key),
    ])
    .rows("SELECT a, b, v FROM t", ["1|2|3"])
    .bad([
        ("t", 0, 0, "null_in_key", Some("b")),
        ("t", 0, 1, "null_in_key", Some("b")),
        ("t", 0, 3, "no_key", Some("b")),
        ("t", 0, 4, "null_in_key", Some("b")),
    ])
}

fn c153_a_table_that_is_all_key_takes_a_key_twice() -> Case {
    Case::new(
        "CREATE TABLE m (a integer, b integer, PRIMARY KEY (a, b))",
        r#""table":"m","mode":"upsert","key":["a","b"],"delete":"none""#,
    )
    .records([kv(r#"{"a":1,"b":2}"#, "{}"), kv(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#)])
    .rows("SELECT a, b FROM m", ["1|2"])
    .books([1, 1, 0, 0])
    .fillers([kv(r#"{"a":1,"b":{n}}"#, "{}")], "DELETE FROM m WHERE b >= 1000")
}

fn c173_identity_and_generated_columns_are_found_in_the_catalog() -> Case {
    let record = |id: &str, a: i32, b: i32| format!(r#"{{"id":{id},"a":{a},"b":{b},"s":{}}}"#, a + b);
    Case::new(
        "CREATE TABLE t (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a integer, b integer, s integer GENERATED ALWAYS AS (a + b) STORED)",
        r#""mode":"upsert","key":["id"],"key_from":"value","delete":"none""#,
    )
    .records([v(&record("7", 1, 2)), v(&record("7", 3, 4)), v(&record("8", 5, 6))])
    .rows("SELECT id, a, b, s FROM t ORDER BY id", ["7|3|4|7", "8|5|6|11"])
    .fillers([v(&record("{n}", 0, 0))], "DELETE FROM t WHERE id >= 1000")
}

/// The part of C173 that every database has.
fn c173_generated_columns_are_left_out_in_every_mode() -> Case {
    let ddl = "(id integer PRIMARY KEY, a integer, s integer GENERATED ALWAYS AS (a + 1) STORED)";
    let record = |a: i32| v(&format!(r#"{{"id":1,"a":{a},"s":77}}"#));
    Case::new(
        &format!("CREATE TABLE i {ddl}; CREATE TABLE u {ddl}; CREATE TABLE d {ddl}; INSERT INTO d (id, a) VALUES (1, 0)"),
        "",
    )
    .tables(
        r#""i":{},
           "u":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"},
           "d":{"mode":"update","key":["id"],"key_from":"value","delete":"none"}"#,
    )
    .records([record(1).at("i", 0), record(1).at("u", 0), record(2).at("u", 0), record(3).at("d", 0)])
    .rows("SELECT a, s FROM i UNION ALL SELECT a, s FROM u UNION ALL SELECT a, s FROM d", ["1|2", "2|3", "3|4"])
}

fn equal_keys_are_one_key_however_they_are_written() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer); CREATE TABLE d (id numeric(10, 2) PRIMARY KEY, v integer)",
        r#""table":"${topic}","mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .records(["t", "d"].iter().flat_map(|topic| {
        [
            kv("1", r#"{"v":1}"#),
            kv("1.0", r#"{"v":2}"#),
            kv("\"1\"", r#"{"v":3}"#),
            kv("10e-1", r#"{"v":4}"#),
            kv("2", r#"{"v":1}"#),
            gone("2.0"),
        ]
        .map(|rec| rec.at(topic, 0))
    }))
    .rows("SELECT count(*), sum(v), count(DISTINCT id) FROM t", ["1|4|1"])
    .rows("SELECT count(*), sum(v), count(DISTINCT id) FROM d", ["1|4|1"])
    .books([2, 8, 2, 0])
}

/// Numbers are compared by value whatever their storage class, texts are no numbers.
fn equal_keys_in_a_column_without_a_type() -> Case {
    Case::new("CREATE TABLE t (id PRIMARY KEY, v integer)", r#""mode":"upsert","key":["id"],"delete":"none""#)
        .records([kv("1", r#"{"v":1}"#), kv("1.0", r#"{"v":2}"#), kv("\"1\"", r#"{"v":3}"#)])
        .rows("SELECT v FROM t ORDER BY v", ["2", "3"])
        .books([2, 1, 0, 0])
}

fn keys_are_objects_bare_scalars_or_text() -> Case {
    let upsert = |table: &str| {
        format!(r#""{table}":{{"table":"{table}","mode":"upsert","key":["id"],"delete":"none"}}"#)
    };
    Case::new(
        "CREATE TABLE n (id integer PRIMARY KEY, v integer); CREATE TABLE s (id varchar(40) PRIMARY KEY, v integer)",
        "",
    )
    .tables(&format!("{},{}", upsert("n"), upsert("s")))
    .records([
        kv(r#"{"id":1}"#, r#"{"v":1}"#).at("n", 0),
        kv("2", r#"{"v":2}"#).at("n", 0),
        kv("x", r#"{"v":3}"#).at("n", 0),
        v(r#"{"v":4}"#).at("n", 0),
        kv("[1]", r#"{"v":5}"#).at("n", 0),
        kv(r#"{"id":1,"other":2}"#, r#"{"v":6}"#).at("n", 0),
        kv(r#"{"id":"a"}"#, r#"{"v":1}"#).at("s", 0),
        kv("\"b\"", r#"{"v":2}"#).at("s", 0),
        kv("c-1", r#"{"v":3}"#).at("s", 0),
        kv("007", r#"{"v":4}"#).at("s", 0),
        kv("8", r#"{"v":5}"#).at("s", 0),
        kv("", r#"{"v":6}"#).at("s", 0),
    ])
    .rows("SELECT id, v FROM n ORDER BY id", ["1|1", "2|2"])
    .rows("SELECT id, v FROM s ORDER BY v", ["a|1", "b|2", "c-1|3", "007|4", "8|5", "|6"])
    .bad([
        ("n", 0, 2, "not_a_number", Some("id")),
        ("n", 0, 3, "no_key", Some("id")),
        ("n", 0, 4, "wrong_type", Some("id")),
        ("n", 0, 5, "unknown_field", None),
    ])
}

fn a_composite_key_comes_from_an_object() -> Case {
    Case::new(
        "CREATE TABLE t (v integer, b varchar(10), a integer, PRIMARY KEY (a, b))",
        r#""mode":"upsert","key":["b","a"],"delete":"tombstone""#,
    )
    .records([
        kv(r#"{"a":1,"b":"x"}"#, r#"{"v":1}"#),
        kv(r#"{"b":"x","a":1}"#, r#"{"v":2}"#),
        kv(r#"{"a":1,"b":"y"}"#, r#"{"v":3}"#),
        gone(r#"{"b":"y","a":1}"#),
        kv("1", r#"{"v":4}"#),
        kv(r#"{"a":11,"b":""}"#, r#"{"v":5}"#),
        kv(r#"{"a":1,"b":"1"}"#, r#"{"v":6}"#),
    ])
    .rows("SELECT a, b, v FROM t ORDER BY v", ["1|x|2", "11||5", "1|1|6"])
    .bad([("t", 0, 4, "no_key", Some("b"))])
    .books([3, 2, 1, 0])
    .fillers([kv(r#"{"a":{n},"b":"f"}"#, r#"{"v":0}"#)], "DELETE FROM t WHERE b = 'f'")
}

fn key_and_value_must_agree_on_the_key() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer)",
        r#""mode":"upsert","key":["id"],"delete":"none""#,
    )
    .records([
        kv("1", r#"{"id":1,"v":1}"#),
        kv("2", r#"{"id":2.0,"v":2}"#),
        kv("3", r#"{"id":4,"v":3}"#),
        kv("5", r#"{"id":null,"v":3}"#),
        kv("6", r#"{"id":"x","v":3}"#),
    ])
    .rows("SELECT id, v FROM t ORDER BY id", ["1|1", "2|2"])
    .bad([
        ("t", 0, 2, "rejected", Some("id")),
        ("t", 0, 3, "rejected", Some("id")),
        ("t", 0, 4, "not_a_number", Some("id")),
    ])
}

fn two_topics_write_one_table_by_one_key() -> Case {
    let keys = r#"{"table":"t","mode":"upsert","key":["id"],"delete":"tombstone"}"#;
    Case::new("CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer)", "")
        .tables(&format!(r#""one":{keys},"two":{keys}"#))
        .records([
            kv("1", r#"{"a":1}"#).at("one", 0),
            kv("1", r#"{"b":2}"#).at("two", 0),
            kv("2", r#"{"a":3}"#).at("one", 0),
            gone("3").at("two", 0),
        ])
        .rows("SELECT id, a, b FROM t ORDER BY id", ["1|1|2", "2|3|null"])
        .books([2, 1, 1, 0])
        .fillers(
            [kv("{n}", r#"{"a":0}"#).at("one", 0), kv("{n}", r#"{"b":0}"#).at("two", 0)],
            "DELETE FROM t WHERE id >= 1000",
        )
}

/// What one topic stages is not taken up by the other.
fn two_modes_write_one_table_in_one_transaction() -> Case {
    let keys = |mode: &str| format!(r#"{{"table":"t","mode":"{mode}","key":["id"],"delete":"none"}}"#);
    Case::new("CREATE TABLE t (id integer PRIMARY KEY, v integer); INSERT INTO t VALUES (1, 0), (2, 0)", "")
        .tables(&format!(r#""ignores":{},"writes":{}"#, keys("insert-ignore"), keys("upsert")))
        .records([
            kv("1", r#"{"v":1}"#).at("ignores", 0),
            kv("2", r#"{"v":1}"#).at("writes", 0),
            kv("3", r#"{"v":1}"#).at("ignores", 0),
            kv("4", r#"{"v":1}"#).at("writes", 0),
        ])
        .rows("SELECT id, v FROM t ORDER BY id", ["1|0", "2|1", "3|1", "4|1"])
        .books([4, 0, 0, 0])
        .fillers(
            [kv("{n}", r#"{"v":0}"#).at("ignores", 0), kv("{n}", r#"{"v":0}"#).at("writes", 0)],
            "DELETE FROM t WHERE id >= 1000",
        )
}

fn two_thousand_keys_twice_in_one_batch() -> Case {
    let pass = |v: i32| (0..2000).map(move |id| kv(&id.to_string(), &format!(r#"{{"v":{}}}"#, id + v)));
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer)",
        r#""mode":"upsert","key":["id"],"delete":"none""#,
    )
    .records(pass(0).chain(pass(7)))
    .whole()
    .rows("SELECT count(*), sum(v - id) FROM t", ["2000|14000"])
    .books([2000, 2000, 0, 0])
}

/// One by one each of these is right; in one statement, in the order of the keys, the first one is not: no record is bad for it.
fn rows_that_change_places_under_a_unique_index() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, place integer UNIQUE); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        r#""mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .records([
        kv("3", r#"{"place":9}"#),
        kv("2", r#"{"place":3}"#),
        kv("1", r#"{"place":2}"#),
        kv("3", r#"{"place":1}"#),
        kv("4", r#"{"place":1}"#),
    ])
    .rows("SELECT id, place FROM t ORDER BY id", ["1|2", "2|3", "3|1"])
    .bad([("t", 0, 4, "unique", None)])
    .differs(Database::Sqlite, "the message of SQLite names the column of the index, Postgres the constraint", |case| {
        case.bad([("t", 0, 4, "unique", Some("place"))])
    })
}
