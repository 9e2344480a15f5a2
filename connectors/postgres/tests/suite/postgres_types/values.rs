//! What a column would alter, or what is not said clearly, is a bad record: named, and never quoted.

use oncesink::Reason::{self, Inexact, NotANumber, NotATime, NullCharacter, OutOfRange, TooLong, WrongType};

use crate::fixture::{Fixture, batch, keyed};

const TABLE: &str = r#"CREATE TABLE t (by bytea, ti time, tz timetz, iv interval, ivd interval day, iv0 interval(0), fixed char(3), one "char", nm name, ob oid,
    ip inet, net cidr, mac macaddr, mac8 macaddr8, b3 bit(3), vb varbit(3), ai integer[], at text[], cash money, doc xml, mood mood)"#;

#[tokio::test]
async fn what_would_be_altered_or_guessed_is_bad() {
    let long = format!("\"{}\"", "n".repeat(64));
    let table: &[(&str, &str, Reason)] = &[
        ("by", r#""hush""#, WrongType),
        ("by", "1", WrongType),
        ("ti", r#""24:00:00""#, NotATime),
        ("ti", r#""12:00""#, NotATime),
        ("ti", "1", WrongType),
        ("tz", r#""12:00:00""#, NotATime),
        ("tz", r#""12:00:00+16:00""#, OutOfRange),
        ("iv", r#""1 fortnight hush""#, NotATime),
        ("iv", r#""P0.5Y""#, NotATime),
        ("iv", r#""P1D2Y""#, NotATime),
        ("iv", r#""P""#, NotATime),
        ("iv", r#""PT""#, NotATime),
        ("iv", r#""""#, NotATime),
        ("iv", r#""1 day ago""#, NotATime),
        ("iv", r#""00:60:00""#, NotATime),
        ("iv", r#""PT0.0000001S""#, Inexact),
        ("iv", r#""PT9999999999999999999S""#, OutOfRange),
        ("iv", r#""P99999999999D""#, OutOfRange),
        ("iv", "5", WrongType),
        ("ivd", r#""PT1H""#, Inexact),
        ("iv0", r#""PT1.5S""#, Inexact),
        ("fixed", r#""abcd""#, TooLong),
        ("fixed", r#""abc ""#, TooLong),
        ("one", r#""ab""#, TooLong),
        ("one", r#""é""#, TooLong),
        ("nm", &long, TooLong),
        ("nm", r#""a\u0000""#, NullCharacter),
        ("ob", "-1", OutOfRange),
        ("ob", "4294967296", OutOfRange),
        ("ip", r#""10.1""#, WrongType),
        ("ip", r#""10.0.0.1/33""#, WrongType),
        ("ip", r#""hush""#, WrongType),
        ("net", r#""10.0.0.1/8""#, WrongType),
        ("mac", r#""08:00:2b:01:02""#, WrongType),
        ("mac8", r#""08:00:2b:01:02:03""#, WrongType),
        ("b3", r#""10""#, WrongType),
        ("b3", r#""1010""#, TooLong),
        ("b3", r#""102""#, WrongType),
        ("vb", r#""1010""#, TooLong),
        ("ai", "1", WrongType),
        ("ai", r#""{1,2}""#, WrongType),
        ("ai", r#"["hush"]"#, NotANumber),
        ("ai", "[1.5]", Inexact),
        ("ai", "[[1],[2,3]]", WrongType),
        ("ai", "[[1],2]", WrongType),
        ("ai", "[1,[2]]", WrongType),
        ("ai", "[[1],null]", WrongType),
        ("ai", "[[]]", WrongType),
        ("ai", "[[[[[[[1]]]]]]]", WrongType),
        ("at", r#"["\u0000"]"#, NullCharacter),
        ("at", r#"[{"hush":1}]"#, WrongType),
        ("cash", r#""1""#, WrongType),
        ("doc", r#""<hush/>""#, WrongType),
        ("mood", r#""a\u0000""#, NullCharacter),
        ("mood", "1", WrongType),
    ];
    let fixture = Fixture::new("refused", &format!("CREATE TYPE mood AS ENUM ('sad'); {TABLE}")).await;
    let values: Vec<_> = table.iter().map(|(column, value, _)| format!("{{\"{column}\":{value}}}")).collect();
    let values: Vec<_> = values.iter().map(String::as_str).collect();
    let bad = fixture.bad("{}", &values).await;
    assert_eq!(bad.len(), table.len());
    for (offset, (bad, (column, value, reason))) in bad.iter().zip(table).enumerate() {
        assert_eq!(
            (bad.offset, bad.reason, bad.column.as_deref()),
            (offset as i64, *reason, Some(*column)),
            "{value}: {bad}"
        );
        for quoted in ["hush", "fortnight", "nnnnn", "10.1", "9999", "{1,2}"] {
            assert!(!bad.message.contains(quoted), "{bad}");
        }
        assert!(bad.sql_state.is_some() || *reason == Inexact, "{bad}");
    }
    assert_eq!(fixture.schema.count("t").await, 0);
}

#[tokio::test]
async fn bytes_are_read_in_the_named_form_and_whole_payloads_are_kept() {
    let fixture = Fixture::new("bytes", "CREATE TABLE t (a bytea, b bytea, c bytea, k bytea, v bytea)").await;
    let config = r#"{"table":{"columns":{"a":{"as":"base64"},"b":{"as":"hex"},"c":{"as":"utf8"},"k":"key","v":"value"}}}"#;
    let sink = fixture.open(config, &["t"]).await.unwrap();
    let value = r#"{"a":"AP8=","b":"00FF","c":"\u0000é"}"#;
    fixture.write(&sink, &mut keyed(&[("k\u{1}", Some(value))])).await.unwrap();
    assert_eq!(
        fixture.rows("SELECT a, b, c, k, convert_from(v, 'UTF8') AS v FROM t").await,
        [format!(
            r#"{{"a":"\\x00ff","b":"\\x00ff","c":"\\x00c3a9","k":"\\x6b01","v":{}}}"#,
            serde_json::Value::from(value)
        )]
    );
    for (config, expected) in [
        (r#"{"table":{"columns":{"a":{"as":"epoch-ms"}}}}"#, "does not suit column"),
        (r#"{"table":{"columns":{"a":{"as":"json-text"}}}}"#, "does not suit column"),
    ] {
        let message = fixture.refusal(config, "t").await;
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn c119_a_text_with_a_null_character_is_bad_alone_and_bytes_keep_it() {
    let fixture = Fixture::new("nul", "CREATE TABLE t (id integer, note text, raw bytea)").await;
    let config = r#"{"table":{"columns":{"raw":{"as":"utf8"}}}}"#;
    for note in [r#""ab\u0000cd""#, r#""\u0000""#] {
        let bad = fixture
            .bad(
                config,
                &[
                    r#"{"id":0,"note":"x"}"#,
                    &format!(r#"{{"id":1,"note":{note}}}"#),
                    r#"{"id":2,"note":"y"}"#,
                ],
            )
            .await;
        let found: Vec<_> = bad.iter().map(|bad| (bad.offset, bad.reason, bad.column.as_deref())).collect();
        assert_eq!(found, [(1, NullCharacter, Some("note"))]);
    }
    fixture.put(config, &[r#"{"id":3,"raw":"a\u0000b"}"#]).await.unwrap();
    assert_eq!(fixture.rows("SELECT raw FROM t").await, [r#"{"raw":"\\x610062"}"#]);
}

#[tokio::test]
async fn a_longer_name_is_never_taken_for_the_63_bytes_that_it_begins_with() {
    let name = "c".repeat(63);
    let fixture =
        Fixture::new("long", &format!("CREATE TABLE t (\"{name}\" integer, id integer PRIMARY KEY)")).await;
    let bad = fixture.bad("{}", &[&format!("{{\"{name}c\":1}}")]).await;
    assert_eq!(bad[0].reason, Reason::UnknownField);
    fixture.put("{}", &[&format!("{{\"id\":1,\"{name}\":1}}")]).await.unwrap();
    for config in [
        format!(r#"{{"table":{{"columns":{{"{name}c":"value.x"}}}}}}"#),
        format!(r#"{{"table":{{"mode":"upsert","key":["{name}c"],"delete":"none"}}}}"#),
        format!(r#"{{"table":{{"unknown_fields":"column:{name}c"}}}}"#),
    ] {
        let message = fixture.refusal(&config, "t").await;
        assert!(message.contains("no column") || message.contains("no such column"), "{message}");
    }
    fixture.schema.execute(&format!("CREATE TABLE \"{}\" (n integer)", "t".repeat(63))).await;
    let message = fixture.refusal("{}", &"t".repeat(64)).await;
    assert!(message.contains("no table"), "{message}");
}

#[tokio::test]
async fn null_goes_into_a_column_that_is_not_written_and_values_do_not() {
    for rows in [1, 300] {
        let fixture =
            Fixture::new("unwritten", "CREATE TABLE t (id integer, cash money, spot point, r int4range)")
                .await;
        let values = vec![r#"{"id":1,"cash":null,"spot":null,"r":null}"#; rows];
        fixture.put("{}", &values).await.unwrap();
        assert_eq!(fixture.schema.count("t").await, rows as i64);
        let bad = fixture.bad("{}", &[r#"{"id":1,"cash":1}"#, r#"{"spot":"(1,2)"}"#]).await;
        assert!(
            bad.iter().all(|bad| bad.message.contains("is of a type that this version does not write")),
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn text_of_citext_is_kept() {
    let fixture = Fixture::new("citext", "SELECT 1").await;
    fixture.schema.execute("CREATE EXTENSION IF NOT EXISTS citext").await;
    let home: String = fixture.schema.value("SELECT n.nspname::text FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'citext'").await;
    fixture
        .schema
        .execute(&format!("CREATE TABLE t (v \"{home}\".citext PRIMARY KEY, w \"{home}\".citext[])"))
        .await;
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    fixture.write(&sink, &mut batch(&[r#"{"v":"ÄbC ","w":["X"]}"#])).await.unwrap();
    assert_eq!(
        fixture.rows("SELECT v::text AS v, w[1]::text AS w FROM t").await,
        [r#"{"v":"ÄbC ","w":"X"}"#]
    );
    let message = fixture.refusal(r#"{"table":{"mode":"upsert","key":["v"],"delete":"none"}}"#, "t").await;
    assert!(message.contains("two of its values can be equal and still differ"), "{message}");
    fixture.schema.execute("DROP TABLE t; DROP EXTENSION citext").await;
}
