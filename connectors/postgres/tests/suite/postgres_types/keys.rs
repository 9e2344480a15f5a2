//! Key columns of every kind that can be one: values that the server takes for equal are one key, in one batch and in the next.

use crate::fixture::{Fixture, batch, keyed};

#[tokio::test]
async fn equal_values_are_one_key_and_others_are_not() {
    for (sort, values, keys) in [
        ("char(5)", [r#""ab""#, r#""ab  ""#, r#""ab   ""#, r#""b""#], 2),
        ("bpchar", [r#""ab""#, r#""ab  ""#, r#""ab ""#, r#"" ab""#], 2),
        ("interval", [r#""1 day""#, r#""PT24H""#, r#""P1D""#, r#""1 mon""#], 2),
        ("interval", [r#""1 mon""#, r#""P30D""#, r#""PT720H""#, r#""P1M1D""#], 2),
        (
            "timetz",
            [r#""12:00:00+00:00""#, r#""12:00:00Z""#, r#""12:00:00-00:00""#, r#""13:00:00+01:00""#],
            2,
        ),
        ("time(0)", [r#""12:00:00.1""#, r#""12:00:00.9""#, r#""12:00:00""#, r#""12:00:01""#], 2),
        ("inet", [r#""10.0.0.1""#, r#""10.0.0.1/32""#, r#""10.0.0.1""#, r#""10.0.0.1/24""#], 2),
        (
            "macaddr",
            [r#""08:00:2b:01:02:03""#, r#""08002B010203""#, r#""0800.2b01.0203""#, r#""08:00:2b:01:02:04""#],
            2,
        ),
        ("varbit", [r#""10""#, r#""10""#, r#""100""#, r#""1""#], 3),
        ("mood", [r#""sad""#, r#""sad""#, r#""SAD""#, r#""sad""#], 2),
        ("d_num", ["1", "1.0", "1.00", "2"], 2),
        ("name", [r#""a""#, r#""a""#, r#""A""#, r#""a""#], 2),
        ("oid", ["7", r#""7""#, "7.0", "8"], 2),
        ("bytea", [r#""00""#, r#""00""#, r#""""#, r#""0000""#], 3),
    ] {
        let fixture = Fixture::new(
            "keys",
            &format!(
                "CREATE TYPE mood AS ENUM ('sad', 'SAD'); CREATE DOMAIN d_num AS numeric(5,2);
                 CREATE TABLE t (id {sort} PRIMARY KEY, n integer)"
            ),
        )
        .await;
        let reading = if sort == "bytea" { r#","columns":{"id":{"as":"hex"}}"# } else { "" };
        let config = format!(
            r#"{{"table":{{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"{reading}}}}}"#
        );
        let sink = fixture.open(&config, &["t"]).await.unwrap();
        let values: Vec<_> =
            values.iter().enumerate().map(|(n, id)| format!(r#"{{"id":{id},"n":{n}}}"#)).collect();
        for _ in 0..2 {
            fixture.write(&sink, &mut batch(&values)).await.unwrap();
            assert_eq!(fixture.schema.count("t").await, keys, "{sort}");
        }
    }
}

#[tokio::test]
async fn deletes_find_the_key_whatever_its_form() {
    for (sort, put, delete) in [
        ("char(5)", "'ab'", r#""ab  ""#),
        ("interval", "'1 day'", r#""PT24H""#),
        ("mood", "'sad'", r#""sad""#),
        ("inet", "'10.0.0.1'", r#""10.0.0.1/32""#),
        ("d_num", "1.50", "1.5"),
    ] {
        let fixture = Fixture::new(
            "deletes",
            &format!(
                "CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d_num AS numeric(5,2);
                 CREATE TABLE t (id {sort} PRIMARY KEY); INSERT INTO t VALUES ({put})"
            ),
        )
        .await;
        let sink = fixture
            .open(r#"{"table":{"mode":"upsert","key":["id"],"delete":"tombstone"}}"#, &["t"])
            .await
            .unwrap();
        fixture.write(&sink, &mut keyed(&[(delete, None)])).await.unwrap();
        assert_eq!(fixture.schema.count("t").await, 0, "{sort}");
    }
}

#[tokio::test]
async fn a_key_may_be_named_in_another_order_than_the_tables() {
    let fixture = Fixture::new(
        "order",
        "CREATE TABLE t (a integer, b text, c integer, n integer, PRIMARY KEY (a, b, c));
         INSERT INTO t SELECT a, 'x', c, 0 FROM generate_series(1, 3) a, generate_series(1, 2) c",
    )
    .await;
    for key in [r#"["c","b","a"]"#, r#"["b","c","a"]"#, r#"["c","a","b"]"#] {
        let before = fixture.schema.count("t").await;
        let config = format!(r#"{{"table":{{"mode":"upsert","key":{key},"delete":"tombstone"}}}}"#);
        let sink = fixture.open(&config, &["t"]).await.unwrap();
        let gone: i32 = fixture.schema.value("SELECT min(a) FROM t").await;
        let record = format!(r#"{{"b":"x","c":2,"a":{gone}}}"#);
        let other = format!(r#"{{"b":"x","c":1,"a":{gone}}}"#);
        fixture
            .write(&sink, &mut keyed(&[(&record, None), (&other, Some("{\"n\":1}")), (&other, None)]))
            .await
            .unwrap();
        assert_eq!(fixture.schema.count("t").await, before - 2, "{key}");
    }
}

#[tokio::test]
async fn what_has_no_one_form_is_refused_as_a_key() {
    for sort in ["jsonb", "integer[]", "money"] {
        let fixture = Fixture::new("nokey", &format!("CREATE TABLE t (id {sort} PRIMARY KEY)")).await;
        let message =
            fixture.refusal(r#"{"table":{"mode":"upsert","key":["id"],"delete":"none"}}"#, "t").await;
        assert!(message.contains("two of its values can be equal and still differ"), "{sort}: {message}");
    }
}
