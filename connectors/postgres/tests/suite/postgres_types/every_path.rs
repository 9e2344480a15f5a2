//! The same values by COPY, UNNEST, VALUES, a staging table and an update: the rows are what the server makes of the literals.

use crate::fixture::{Fixture, batch};

/// Column, type, value as JSON, literal as the server reads it.
const SCALARS: &[(&str, &str, &str, &str)] = &[
    ("by", "bytea", r#""00fF""#, r"'\x00ff'"),
    ("ti", "time", r#""23:59:59.999999""#, "'23:59:59.999999'"),
    ("ti3", "time(3)", r#""00:00:00.1239""#, "'00:00:00.123'"),
    ("tz", "timetz", r#""12:34:56.5+05:30""#, "'12:34:56.5+05:30'"),
    ("iv", "interval", r#""P1Y-2M3DT-4H5M6.5S""#, "'1 year -2 mons 3 days -03:54:53.5'"),
    ("iv2", "interval day to minute", r#""1 day -02:03:00""#, "'1 day -02:03:00'"),
    ("fixed", "char(5)", r#""ab""#, "'ab   '"),
    ("loosely", "bpchar", r#""ab ""#, "'ab '"),
    ("one", r#""char""#, r#""x""#, "'x'"),
    ("nothing", r#""char""#, r#""""#, "''"),
    ("nm", "name", r#""aName""#, "'aName'"),
    ("ob", "oid", "4294967295", "'4294967295'"),
    ("ip", "inet", r#""192.0.2.7/24""#, "'192.0.2.7/24'"),
    ("ip6", "inet", r#""2001:db8::1""#, "'2001:db8::1'"),
    ("net", "cidr", r#""10.0.0.0/8""#, "'10.0.0.0/8'"),
    ("net6", "cidr", r#""::/0""#, "'::/0'"),
    ("mac", "macaddr", r#""08-00-2B-01-02-03""#, "'08:00:2b:01:02:03'"),
    ("mac8", "macaddr8", r#""08:00:2b:01:02:03:04:05""#, "'08:00:2b:01:02:03:04:05'"),
    ("b1", "bit", r#""1""#, "'1'"),
    ("b10", "bit(10)", r#""1010101011""#, "B'1010101011'"),
    ("vb", "varbit(9)", r#""101""#, "B'101'"),
    ("vb0", "varbit", r#""""#, "B''"),
    ("mood", r#""Moods"."mood of""#, r#""it's""#, "'it''s'"),
    ("dom", "d_text", r#""äöü""#, "'äöü'"),
    ("dom2", "d_deep", "12.50", "12.50"),
    ("cash", "money", "null", "NULL"),
];

/// The same of arrays, which UNNEST cannot carry.
const ARRAYS: &[(&str, &str, &str, &str)] = &[
    ("ai", "integer[]", "[1, null ,-3]", "'{1,NULL,-3}'"),
    ("ae", "integer[]", "[]", "'{}'"),
    ("a2", "integer[]", "[[1,2],[3,null],[5,6]]", "'{{1,2},{3,NULL},{5,6}}'"),
    ("at", "text[]", r#"["a,b","","NULL","\"{}\\",null]"#, r#"ARRAY['a,b','','NULL','"{}\',NULL]"#),
    ("an", "numeric(6,2)[]", "[1.5,\"2.25\"]", "'{1.5,2.25}'"),
    ("aj", "jsonb[]", r#"[[1,2],{"a":null},"s",null]"#, r#"ARRAY['[1,2]'::jsonb,'{"a":null}','"s"',NULL]"#),
    ("am", r#""Moods"."mood of"[]"#, r#"["sad","it's"]"#, r#"ARRAY['sad','it''s']::"Moods"."mood of"[]"#),
    ("ad", "d_text[]", r#"["x"]"#, "'{x}'"),
    ("da", "d_array", "[7,8]", "'{7,8}'"),
    ("ab", "bytea[]", r#"["00ff"]"#, r#"ARRAY['\x00ff'::bytea]"#),
    ("az", "timestamptz[]", r#"["2026-11-30T00:00:00Z"]"#, "ARRAY['2026-11-30T00:00:00Z'::timestamptz]"),
    ("ac", "char(3)[]", r#"["ab"]"#, "'{ab}'"),
    ("absent", "money[]", "null", "NULL"),
];

const READINGS: &str = r#""columns":{"by":{"as":"hex"}}"#;
const ARRAY_READINGS: &str = r#""columns":{"ab":{"as":"hex"}}"#;

type Columns = [(&'static str, &'static str, &'static str, &'static str)];

async fn check(stem: &str, columns: &Columns, readings: &str, mode: &str, rows: usize) {
    let list = |part: fn(&(&str, &str, &str, &str)) -> String| {
        columns.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    let fixture = Fixture::new(stem, "SELECT 1").await;
    let schema = fixture.schema.name();
    let types = list(|(name, sort, _, _)| format!("{name} {sort}"))
        .replace("\"Moods\"", &format!("\"{schema} Moods\""));
    let literals =
        list(|(_, _, _, literal)| (*literal).to_owned()).replace("\"Moods\"", &format!("\"{schema} Moods\""));
    let key = if mode == "insert" { "" } else { "PRIMARY KEY" };
    fixture
        .schema
        .execute(&format!(
            r#"CREATE SCHEMA "{schema} Moods"; CREATE TYPE "{schema} Moods"."mood of" AS ENUM ('sad', 'it''s');
               CREATE DOMAIN d_text AS varchar(3) CHECK (VALUE <> 'bad'); CREATE DOMAIN d_num AS numeric(4,2) NOT NULL;
               CREATE DOMAIN d_deep AS d_num; CREATE DOMAIN d_array AS integer[] CHECK (cardinality(VALUE) < 3);
               CREATE TABLE t (n integer {key}, {types}); CREATE TABLE expected (LIKE t);
               INSERT INTO expected VALUES (0, {literals})"#
        ))
        .await;
    if mode == "update" {
        fixture
            .schema
            .execute(&format!(
                "ALTER DOMAIN d_num DROP NOT NULL; INSERT INTO t (n) SELECT generate_series(0, {rows} - 1)"
            ))
            .await;
    }
    let keys = if mode == "insert" {
        String::new()
    } else {
        r#","key":["n"],"key_from":"value","delete":"none""#.to_owned()
    };
    let sink =
        fixture.open(&format!(r#"{{"table":{{"mode":"{mode}"{keys},{readings}}}}}"#), &["t"]).await.unwrap();
    let values = list(|(name, _, value, _)| format!("\"{name}\":{value}"));
    let values: Vec<_> = (0..rows).map(|n| format!("{{\"n\":{n},{values}}}")).collect();
    let written = fixture.write(&sink, &mut batch(&values)).await.unwrap();
    assert_eq!(written.total().records, rows);
    let names = list(|(name, _, _, _)| (*name).to_owned());
    let expected = fixture.rows(&format!("SELECT {names} FROM expected")).await;
    let found = fixture.rows(&format!("SELECT {names} FROM t")).await;
    assert_eq!(found.len(), rows);
    assert_eq!(found[0], expected[0], "{stem}");
    assert!(found.iter().all(|row| *row == expected[0]));
    // How many blanks there are and what kind of network it is, JSON does not tell apart from what is equal; the binary form does.
    let exact = columns
        .iter()
        .filter(|(name, ..)| !name.starts_with("absent"))
        .map(|(name, ..)| format!("t.{name}::text IS DISTINCT FROM e.{name}::text"));
    let exact = exact.collect::<Vec<_>>().join(" OR ");
    let wrong: i64 = fixture.schema.value(&format!("SELECT count(*) FROM t, expected e WHERE {exact}")).await;
    assert_eq!(wrong, 0);
    fixture.schema.execute(&format!(r#"DROP SCHEMA "{schema} Moods" CASCADE"#)).await;
}

#[tokio::test]
async fn inserted_few_and_many() {
    check("few", SCALARS, READINGS, "insert", 3).await;
    check("many", SCALARS, READINGS, "insert", 201).await;
}

#[tokio::test]
async fn upserted_and_updated_few_and_many() {
    for mode in ["upsert", "update"] {
        check(mode, SCALARS, READINGS, mode, 3).await;
        check(mode, SCALARS, READINGS, mode, 1001).await;
    }
}

#[tokio::test]
async fn arrays_by_every_way() {
    for (mode, rows) in
        [("insert", 3), ("insert", 501), ("upsert", 501), ("upsert", 1001), ("update", 3), ("update", 1001)]
    {
        check("arrays", ARRAYS, ARRAY_READINGS, mode, rows).await;
    }
}
