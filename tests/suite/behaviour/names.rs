//! Names: of schemas, tables, columns and fields, compared exactly.

use super::case::{Case, gone, kv, v};

cases!(
    c061_a_schema_that_is_named_is_the_only_one_looked_in only postgres,
    c091_names_are_compared_with_the_catalogs_own_spelling only postgres,
    names_that_need_quotes_are_names_like_any_other,
    c091_a_field_that_differs_from_its_column_by_case_is_unknown,
);

/// The search path of the sessions holds a table of the same name with another shape.
fn c061_a_schema_that_is_named_is_the_only_one_looked_in() -> Case {
    Case::new(
        "CREATE SCHEMA {schema}_sales; CREATE TABLE {schema}_sales.orders (id integer PRIMARY KEY, v integer);
         CREATE TABLE orders (id varchar(9), other integer)",
        "",
    )
    .tables(r#""x.orders":{"table":"{schema}_sales.${topic[1]}","mode":"upsert","key":["id"],"delete":"tombstone"}"#)
    .records([
        kv("1", r#"{"v":1}"#).at("x.orders", 0),
        kv("2", r#"{"v":2}"#).at("x.orders", 0),
        gone("1").at("x.orders", 0),
    ])
    .rows("SELECT id, v FROM {schema}_sales.orders", ["2|2"])
    .rows("SELECT count(*) FROM orders", ["0"])
}

fn c091_names_are_compared_with_the_catalogs_own_spelling() -> Case {
    Case::new(
        r#"CREATE TABLE "Orders" ("OrderId" integer PRIMARY KEY, qty integer); CREATE TABLE orders (orderid integer PRIMARY KEY)"#,
        "",
    )
    .tables(
        r#""Orders":{"mode":"upsert","key":["OrderId"],"delete":"tombstone"},"orders":{"mode":"upsert","key":["orderid"],"delete":"tombstone"}"#,
    )
    .records([
        kv(r#"{"OrderId":1}"#, r#"{"qty":5}"#).at("Orders", 0),
        kv(r#"{"OrderId":2}"#, r#"{"OrderId":2,"qty":6}"#).at("Orders", 0),
        gone(r#"{"OrderId":1}"#).at("Orders", 0),
        kv(r#"{"orderid":7}"#, "{}").at("orders", 0),
        kv(r#"{"OrderId":8}"#, "{}").at("orders", 0),
    ])
    .rows(r#"SELECT "OrderId", qty FROM "Orders""#, ["2|6"])
    .rows("SELECT orderid FROM orders", ["7"])
    .bad([("orders", 0, 1, "unknown_field", None)])
}

fn names_that_need_quotes_are_names_like_any_other() -> Case {
    Case::new(
        r#"CREATE TABLE "a.b; c" ("or""der" integer PRIMARY KEY, "select" integer, "x y" varchar(9), "$1" integer)"#,
        "",
    )
    .tables(r#""a.b; c":{"mode":"upsert","key":["or\"der"],"delete":"tombstone"}"#)
    .records([
        kv("1", r#"{"select":1,"x y":"a","$1":2}"#).at("a.b; c", 0),
        kv("1", r#"{"select":3}"#).at("a.b; c", 0),
        kv("2", r#"{"select":3}"#).at("a.b; c", 0),
        gone("2").at("a.b; c", 0),
        kv("3", r#"{"a\"; DROP TABLE t; --":3}"#).at("a.b; c", 0),
    ])
    .rows(r#"SELECT "or""der", "select", "x y", "$1" FROM "a.b; c""#, ["1|3|a|2"])
    .bad([("a.b; c", 0, 4, "unknown_field", None)])
    .fillers(
        [kv("{n}", r#"{"select":1,"x y":"a","$1":2}"#).at("a.b; c", 0)],
        r#"DELETE FROM "a.b; c" WHERE "or""der" >= 1000"#,
    )
}

fn c091_a_field_that_differs_from_its_column_by_case_is_unknown() -> Case {
    Case::new(r#"CREATE TABLE t ("Qty" integer, n integer)"#, "")
        .records([
            v(r#"{"Qty":1,"n":1}"#),
            v(r#"{"qty":2,"n":2}"#),
            v(r#"{"QTY":3}"#),
            v(r#"{"Qty":4,"N":4}"#),
        ])
        .rows(r#"SELECT "Qty", n FROM t"#, ["1|1"])
        .bad([1, 2, 3].map(|offset| ("t", 0, offset, "unknown_field", None)))
}
