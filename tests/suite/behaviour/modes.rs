//! Modes: what becomes of a row that is there, and of one that is not.

use super::case::{Case, Database, gone, kv, v};

cases!(
    c009_counts_of_the_server_decide_nothing,
    an_absent_column_a_child_and_a_trigger_see_a_change_in_place,
    an_update_needs_its_row,
    an_update_behind_a_delete_has_no_row,
    insert_ignore_leaves_what_is_there,
    insert_ignore_without_a_key_takes_the_first_of_each_conflict,
    insert_takes_no_notice_of_keys,
    tombstones_are_skipped_in_every_mode_that_says_so,
);

const ROWS: &str = "WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 5100)";

/// A trigger leaves out row 13 in silence: the server counts a row less, and nobody minds. A row that an update misses is another matter.
fn c009_counts_of_the_server_decide_nothing() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer); CREATE TABLE u (id integer PRIMARY KEY, v integer); INSERT INTO u VALUES (1, 1)",
        "",
    )
    .then_on(
        Database::Postgres,
        "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE NEW.id WHEN 13 THEN NULL ELSE NEW END; END $$;
         CREATE TRIGGER leave_out BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION leave_out()",
    )
    .then_on(
        Database::Sqlite,
        "CREATE TRIGGER leave_out BEFORE INSERT ON t WHEN NEW.id = 13 BEGIN SELECT RAISE(IGNORE); END",
    )
    .tables(
        r#""t":{"mode":"upsert","key":["id"],"delete":"none"},
           "u":{"mode":"update","key":["id"],"delete":"none"}"#,
    )
    .records([
        kv("12", r#"{"v":1}"#),
        kv("13", r#"{"v":1}"#),
        kv("12", r#"{"v":1}"#),
        kv("14", r#"{"v":1}"#),
        kv("1", r#"{"v":1}"#).at("u", 0),
        kv("2", r#"{"v":2}"#).at("u", 0),
    ])
    .rows("SELECT id, v FROM t ORDER BY id", ["12|1", "14|1"])
    .rows("SELECT id, v FROM u", ["1|1"])
    .bad([("u", 0, 1, "missing_row", None)])
    .books([4, 1, 0, 0])
    .fillers([kv("{n}", r#"{"v":{n}}"#)], "DELETE FROM t WHERE id >= 1000")
}

/// Never deleted and made anew: a column that no record carries keeps its value, a child row stays, a trigger sees one change of the row.
fn an_absent_column_a_child_and_a_trigger_see_a_change_in_place() -> Case {
    let trigger = |op: &str, row: &str| {
        format!(
            "CREATE TRIGGER saw_{op} AFTER {op} ON t FOR EACH ROW WHEN ({row}.id < 1000) BEGIN INSERT INTO seen VALUES ('{op}', {row}.id); END;"
        )
    };
    let on_sqlite =
        format!("{}{}{}", trigger("INSERT", "NEW"), trigger("UPDATE", "NEW"), trigger("DELETE", "OLD"));
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer, kept integer DEFAULT 7);
         CREATE TABLE child (id integer REFERENCES t ON DELETE CASCADE);
         CREATE TABLE seen (op varchar(10), id integer);
         INSERT INTO t VALUES (1, 1, 5), (2, 2, 6); INSERT INTO child VALUES (1), (2);",
        r#""mode":"upsert","key":["id"],"delete":"tombstone""#,
    )
    .then_on(
        Database::Postgres,
        "CREATE FUNCTION saw() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN IF COALESCE(NEW.id, OLD.id) < 1000 THEN INSERT INTO seen VALUES (TG_OP, COALESCE(NEW.id, OLD.id)); END IF; RETURN NULL; END $$;
         CREATE TRIGGER saw AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION saw()",
    )
    .then_on(Database::Sqlite, &on_sqlite)
    .records([kv("1", r#"{"v":10}"#), kv("3", r#"{"v":30}"#), gone("9")])
    .rows("SELECT id, v, kept FROM t ORDER BY id", ["1|10|5", "2|2|6", "3|30|7"])
    .rows("SELECT id FROM child ORDER BY id", ["1", "2"])
    .rows("SELECT op, id FROM seen ORDER BY id", ["UPDATE|1", "INSERT|3"])
    .books([2, 0, 1, 0])
    .fillers([kv("{n}", r#"{"v":{n}}"#)], "DELETE FROM t WHERE id >= 1000")
}

fn an_update_needs_its_row() -> Case {
    Case::new(
        &format!(
            "CREATE TABLE t (id integer PRIMARY KEY, a integer, b varchar(9) NOT NULL);
             INSERT INTO t VALUES (1, 0, 'one'), (2, 0, 'two'); INSERT INTO t {ROWS} SELECT i, 0, 'f' FROM n"
        ),
        r#""mode":"update","key":["id"],"delete":"none""#,
    )
    .records([
        kv("1", r#"{"a":1}"#),
        kv("3", r#"{"a":1}"#),
        kv("2", r#"{"b":"new"}"#),
        kv("1", r#"{"a":2,"b":"x"}"#),
        kv("3", r#"{"b":"y"}"#),
        kv("2", "{}"),
    ])
    .rows("SELECT id, a, b FROM t WHERE id < 1000 ORDER BY id", ["1|2|x", "2|0|new"])
    .bad([("t", 0, 1, "missing_row", None), ("t", 0, 4, "missing_row", None)])
    .books([2, 2, 0, 0])
    .fillers([kv("{n}", r#"{"a":{n}}"#), kv("{n}", r#"{"a":{n},"b":"z"}"#)], "DELETE FROM t WHERE id >= 1000")
}

fn an_update_behind_a_delete_has_no_row() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, a integer); INSERT INTO t VALUES (1, 0), (2, 0)",
        r#""mode":"update","key":["id"],"delete":"tombstone""#,
    )
    .records([
        kv("1", r#"{"a":1}"#),
        gone("1"),
        kv("1", r#"{"a":2}"#),
        kv("2", r#"{"a":3}"#),
        kv("7", r#"{"a":4}"#),
        gone("7"),
    ])
    .rows("SELECT id, a FROM t", ["2|3"])
    .bad([("t", 0, 2, "missing_row", None), ("t", 0, 4, "missing_row", None)])
    .books([1, 1, 2, 0])
}

fn insert_ignore_leaves_what_is_there() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer DEFAULT 7); INSERT INTO t VALUES (1, 0, 0)",
        r#""mode":"insert-ignore","key":["id"],"key_from":"value""#,
    )
    .records([
        v(r#"{"id":1,"a":1}"#),
        v(r#"{"id":9,"a":2,"b":2}"#),
        v(r#"{"id":2,"a":3}"#),
        // The first of a key counts, whatever the shapes and the groups that they fall into.
        v(r#"{"id":2,"a":4,"b":4}"#),
        v(r#"{"id":2}"#),
    ])
    .rows("SELECT id, a, b FROM t ORDER BY id", ["1|0|0", "2|3|7", "9|2|2"])
    .books([3, 2, 0, 0])
    .fillers(
        [v(r#"{"id":{n},"a":1}"#), v(r#"{"id":{n},"a":1,"b":1}"#)],
        "DELETE FROM t WHERE id >= 1000",
    )
}

fn insert_ignore_without_a_key_takes_the_first_of_each_conflict() -> Case {
    Case::new(
        "CREATE TABLE t (id integer PRIMARY KEY, u integer UNIQUE, b integer DEFAULT 7); INSERT INTO t VALUES (1, 1, 0)",
        r#""mode":"insert-ignore""#,
    )
    .records([
        v(r#"{"id":1,"u":5}"#),
        v(r#"{"id":5,"u":1}"#),
        v(r#"{"id":2,"u":2,"b":2}"#),
        v(r#"{"id":3,"u":3}"#),
        v(r#"{"id":3,"u":4,"b":4}"#),
        v(r#"{"id":4,"u":3}"#),
    ])
    .rows("SELECT id, u, b FROM t ORDER BY id", ["1|1|0", "2|2|2", "3|3|7"])
    .books([6, 0, 0, 0])
    .fillers(
        [v(r#"{"id":{n},"u":{n}}"#), v(r#"{"id":{n},"u":{n},"b":1}"#)],
        "DELETE FROM t WHERE id >= 1000",
    )
}

fn insert_takes_no_notice_of_keys() -> Case {
    Case::new(
        "CREATE TABLE t (id integer, v integer); CREATE TABLE k (id integer PRIMARY KEY, v integer)",
        "",
    )
    .tables(r#""t":{},"k":{}"#)
    .records([
        kv("not the id", r#"{"id":1,"v":1}"#),
        v(r#"{"id":1,"v":1}"#),
        v(r#"{"id":1,"v":1}"#).at("k", 0),
        v(r#"{"id":1,"v":2}"#).at("k", 0),
        v(r#"{"id":2,"v":3}"#).at("k", 0),
    ])
    .rows("SELECT count(*) FROM t", ["2"])
    .rows("SELECT id, v FROM k ORDER BY id", ["1|1", "2|3"])
    .bad([("k", 0, 1, "unique", None)])
    .differs(Database::Sqlite, "SQLite names the column of the index, Postgres the constraint", |case| {
        case.bad([("k", 0, 1, "unique", Some("id"))])
    })
}

fn tombstones_are_skipped_in_every_mode_that_says_so() -> Case {
    let ddl = |table: &str| {
        format!(
            "CREATE TABLE {table} (id integer PRIMARY KEY, v integer); INSERT INTO {table} VALUES (1, 0);"
        )
    };
    Case::new(&["ins", "ign", "ups", "upd", "bad"].map(ddl).concat(), "")
        .tables(
            r#""ins":{"delete":"none"},
               "ign":{"mode":"insert-ignore","key":["id"],"delete":"none"},
               "ups":{"mode":"upsert","key":["id"],"delete":"none"},
               "upd":{"mode":"update","key":["id"],"delete":"none"},
               "bad":{}"#,
        )
        .records(["ins", "ign", "ups", "upd", "bad"].map(|topic| gone("1").at(topic, 0)))
        .rows(
            "SELECT (SELECT v FROM ins), (SELECT v FROM ign), (SELECT v FROM ups), (SELECT v FROM upd), (SELECT v FROM bad)",
            ["0|0|0|0|0"],
        )
        .bad([("bad", 0, 0, "tombstone", None)])
        .books([0, 0, 0, 4])
}
