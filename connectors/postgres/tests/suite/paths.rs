//! COPY, UNNEST and VALUES write identical rows, and each is used where it should be.

use crate::fixture::{Fixture, batch};

const TYPES: &str = "
    small smallint, int integer, big bigint, re real, dbl double precision, num numeric, num_bound numeric(12,2), num_scale numeric(3,5),
    txt text, vc varchar, vc_bound varchar(5), yes boolean, id uuid, at timestamptz, at_short timestamptz(2), wall timestamp, wall_short timestamp(0),
    day date, js json, jsb jsonb";

/// Records the first word of each statement that wrote a row.
const WITNESS: &str = "
    CREATE TABLE paths (path text);
    CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO paths SELECT CASE WHEN current_query() LIKE 'COPY%' THEN 'copy' WHEN current_query() LIKE '%UNNEST%' THEN 'unnest' ELSE 'values' END;
        RETURN NULL;
    END $$;
    CREATE TRIGGER witness AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION witness();";

const RECORDS: [&str; 4] = [
    r#""small":-32768,"int":2147483647,"big":-9223372036854775808,"re":0.1,"dbl":1e-7,"num":123456789012345678901234567890.123456789,
       "num_bound":"9999999999.99","num_scale":0.00999,"txt":"a\"b\\c\n\u20ac😀","vc":"x ","vc_bound":"äöüß€","yes":true,
       "id":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","at":"2026-11-30T23:59:59.123456+01:00","at_short":"2026-11-30T23:59:59.129Z",
       "wall":"0001-01-01T00:00:00","wall_short":"1999-12-31T23:59:59.9","day":"9999-12-31","js":{"b": 1,"a":[1.0,null]},"jsb":{"b": 1,"a":[1.0,null]}"#,
    r#""small":0,"int":-1,"big":1e3,"re":-3.4028235e38,"dbl":1.7976931348623157e308,"num":-0.000000001,"num_bound":-0.5,"num_scale":0,"txt":"","vc":"",
       "vc_bound":"","yes":false,"id":"00000000-0000-0000-0000-000000000000","at":"0001-01-01T00:00:00Z","at_short":"9999-12-31T23:59:59.99Z",
       "wall":"9999-12-31T23:59:59.999999","wall_short":"2024-02-29T00:00:00","day":"0001-01-01","js":"a string","jsb":"a string""#,
    r#""small":1.0,"int":10e1,"big":"42","re":1,"dbl":1,"num":1.500,"num_bound":7,"num_scale":1e-5,"txt":1.0,"vc":true,"vc_bound":12345,"yes":true,
       "id":"{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}","at":"1970-01-01T00:00:00Z","at_short":"1970-01-01T00:00:00Z","wall":"1970-01-01T00:00:00",
       "wall_short":"1970-01-01T00:00:00","day":"1970-01-01","js":1.50,"jsb":1.50"#,
    r#""small":null,"int":null,"big":null,"re":null,"dbl":null,"num":null,"num_bound":null,"num_scale":null,"txt":null,"vc":null,"vc_bound":null,
       "yes":null,"id":null,"at":null,"at_short":null,"wall":null,"wall_short":null,"day":null,"js":null,"jsb":null"#,
];

/// What Postgres itself makes of the literals.
const EXPECTED: [&str; 4] = [
    "-32768, 2147483647, -9223372036854775808, 0.1, 1e-7, 123456789012345678901234567890.123456789, 9999999999.99, 0.00999, E'a\"b\\\\c\\n€😀', 'x ', 'äöüß€',
     true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-11-30T23:59:59.123456+01:00', '2026-11-30T23:59:59.12Z', '0001-01-01T00:00:00',
     '1999-12-31T23:59:59', '9999-12-31', '{\"b\": 1,\"a\":[1.0,null]}', '{\"b\": 1,\"a\":[1.0,null]}'",
    "0, -1, 1000, '-3.4028235e38', 1.7976931348623157e308, -0.000000001, -0.5, 0, '', '', '', false, '00000000-0000-0000-0000-000000000000',
     '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.99Z', '9999-12-31T23:59:59.999999', '2024-02-29T00:00:00', '0001-01-01', '\"a string\"', '\"a string\"'",
    "1, 100, 42, 1, 1, 1.500, 7, 0.00001, '1.0', 'true', '12345', true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '1970-01-01T00:00:00Z',
     '1970-01-01T00:00:00Z', '1970-01-01T00:00:00', '1970-01-01T00:00:00', '1970-01-01', '1.50', '1.50'",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
];

async fn check(stem: &str, path: &str, rows: usize, statements: i64, filler: impl Fn(usize) -> String) {
    let fillers: Vec<_> = (0..17).map(|index| format!("f{index} integer DEFAULT -1")).collect();
    let fixture = Fixture::new(
        stem,
        &format!(
            "CREATE TABLE expected ({TYPES});
             INSERT INTO expected VALUES ({});
             CREATE TABLE t ({TYPES}, {}); {WITNESS}",
            EXPECTED.join("), ("),
            fillers.join(", ")
        ),
    )
    .await;
    let values: Vec<_> = (0..rows).map(|row| format!("{{{}{}}}", RECORDS[row % 4], filler(row))).collect();
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let written = fixture.write(&sink, &mut batch(&values)).await.unwrap();
    assert_eq!(written.total().records, rows);
    assert_eq!(fixture.schema.count("t").await, rows as i64);
    let columns: Vec<_> = TYPES.split(", ").map(|column| column.split_whitespace().next().unwrap()).collect();
    let columns = columns.join(", ");
    let columns =
        columns.replace("num_bound", "num_bound::text AS num_bound").replace("num,", "num::text AS num,");
    let found = fixture
        .rows(&format!("SELECT DISTINCT ON (t.*::text) {columns} FROM (SELECT {} FROM t) AS t", plain()))
        .await;
    let expected = fixture.rows(&format!("SELECT {columns} FROM expected")).await;
    assert_eq!(found, expected);
    let paths = fixture.rows("SELECT path, count(*) AS n FROM paths GROUP BY path").await;
    assert_eq!(paths, [format!(r#"{{"path":"{path}","n":{statements}}}"#)]);
}

fn plain() -> String {
    let names: Vec<_> = TYPES.split(", ").map(|column| column.split_whitespace().next().unwrap()).collect();
    names.join(", ")
}

#[tokio::test]
async fn copy_writes_every_type() {
    check("copy", "copy", 204, 1, |_| String::new()).await;
}

#[tokio::test]
async fn unnest_writes_every_type() {
    check("unnest", "unnest", 200, 1, |_| String::new()).await;
}

#[tokio::test]
async fn values_write_every_type() {
    // Seventeen shapes: one row carries f0, the next f1, ...
    check("values", "values", 1020, 3, |row| format!(r#","f{}":{row}"#, row % 17)).await;
}

#[tokio::test]
async fn rows_under_row_level_security_go_without_copy() {
    let fixture = Fixture::new(
        "rls",
        &format!("CREATE TABLE t (n integer); {WITNESS} ALTER TABLE t ENABLE ROW LEVEL SECURITY;"),
    )
    .await;
    let schema = fixture.schema.name();
    let role = format!("role_{schema}");
    fixture
        .schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT INSERT ON t, paths TO {role};
             CREATE POLICY below ON t FOR INSERT WITH CHECK (n < 5000)"
        ))
        .await;
    let theirs = fixture.acting_as(&role);
    let sink = theirs.open("{}", &["t"]).await.unwrap();
    let values: Vec<_> = (0..2500).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    theirs.write(&sink, &mut batch(&values)).await.unwrap();
    assert_eq!(fixture.schema.count("t").await, 2500);
    assert_eq!(
        fixture.rows("SELECT path, count(*) AS n FROM paths GROUP BY path").await,
        [r#"{"path":"unnest","n":3}"#]
    );
}
