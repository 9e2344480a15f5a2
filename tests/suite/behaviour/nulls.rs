//! Null and absent are told apart.

use super::case::{Case, kv, v};

cases!(
    c105_a_missing_field_and_a_null_are_bad_for_different_reasons,
    null_is_a_value_where_the_column_takes_it
);

fn c105_a_missing_field_and_a_null_are_bad_for_different_reasons() -> Case {
    Case::new("CREATE TABLE t (id integer PRIMARY KEY, name varchar(20) NOT NULL)", "")
        .records([
            v(r#"{"id":0,"name":"a"}"#),
            v(r#"{"id":1}"#),
            v(r#"{"id":2,"name":null}"#),
            v(r#"{"id":3,"name":""}"#),
        ])
        .rows("SELECT id, name FROM t ORDER BY id", ["0|a", "3|"])
        .bad([("t", 0, 1, "missing_field", Some("name")), ("t", 0, 2, "null_in_not_null", Some("name"))])
        .books([2, 0, 0, 0])
}

fn null_is_a_value_where_the_column_takes_it() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, a integer DEFAULT 7, s varchar(9) DEFAULT 'x'); INSERT INTO t VALUES (1, 1, 'y')",
        r#""mode":"upsert","key":["id"],"delete":"none""#,
    )
    .records([
        kv("1", r#"{"a":null}"#),
        kv("2", r#"{"a":null,"s":null}"#),
        kv("3", r#"{"s":"null"}"#),
        kv("3", r#"{"a":0}"#),
    ])
    .rows("SELECT id, a, s FROM t ORDER BY id", ["1|null|y", "2|null|null", "3|0|null"])
    .books([3, 1, 0, 0])
    .fillers([kv("{n}", r#"{"a":null}"#)], "DELETE FROM t WHERE id >= 1000")
}
