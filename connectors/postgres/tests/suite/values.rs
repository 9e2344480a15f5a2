//! Nothing is altered in silence: what a column would change is a bad record, with its place, its column and no value.

use oncesink::Reason::{
    self, Inexact, InvalidJson, NotANumber, NotATime, NullCharacter, OutOfRange, TooLong, WrongType,
};

use crate::fixture::{Fixture, batch};

const TABLE: &str = "CREATE TABLE t (small smallint, big bigint, re real, dbl double precision, amount numeric(12,2), vc varchar(3), txt text, yes boolean,
    id uuid, at timestamptz, wall timestamp, day date, jsb jsonb)";

#[tokio::test]
async fn what_would_be_altered_is_bad() {
    let table: &[(&str, &str, Reason)] = &[
        ("small", "32768", OutOfRange),
        ("small", "1.5", Inexact),
        ("small", "true", WrongType),
        ("big", "9223372036854775808", OutOfRange),
        ("re", "16777217", Inexact),
        ("re", "1e39", OutOfRange),
        ("dbl", "1e309", OutOfRange),
        ("amount", "0.001", Inexact),
        ("amount", "12345678901", OutOfRange),
        ("amount", "\"12,5 hush\"", NotANumber),
        ("amount", "\"NaN\"", NotANumber),
        ("vc", "\"abcd\"", TooLong),
        ("vc", "\"abc \"", TooLong),
        ("txt", "\"a\\u0000\"", NullCharacter),
        ("txt", "\"\\ud800\"", InvalidJson),
        ("txt", "{\"hush\":1}", WrongType),
        ("yes", "1", WrongType),
        ("yes", "\"true\"", WrongType),
        ("id", "\"hush\"", WrongType),
        ("at", "\"2026-11-30T00:00:00\"", NotATime),
        ("at", "\"infinity\"", NotATime),
        ("at", "1700000000", WrongType),
        ("wall", "\"2026-02-30T00:00:00\"", NotATime),
        ("day", "\"2026-11-30T00:00:00Z\"", NotATime),
        ("jsb", "\"\\u0000\"", NullCharacter),
        ("jsb", "[1e200000]", OutOfRange),
    ];
    let fixture = Fixture::new("altered", TABLE).await;
    let values: Vec<_> = table
        .iter()
        .map(|(column, value, _)| {
            format!("{{\"txt\":\"hush\",\"{column}\":{value}}}")
                .replace("\"txt\":\"hush\",\"txt\"", "\"txt\"")
        })
        .collect();
    let values: Vec<_> = values.iter().map(String::as_str).collect();
    let bad = fixture.bad("{}", &values).await;
    assert_eq!(bad.len(), table.len());
    for (offset, (bad, (column, value, reason))) in bad.iter().zip(table).enumerate() {
        assert_eq!(
            (bad.offset, bad.reason, bad.column.as_deref()),
            (offset as i64, *reason, Some(*column)),
            "{value}: {bad}"
        );
        assert_eq!(bad.table.as_deref(), Some(&*format!("{}.t", fixture.schema.name())));
        assert!(!bad.message.contains("hush"), "{bad}");
    }
    let schema = fixture.schema.name();
    assert_eq!(
        bad[9].message,
        format!(
            "field \"amount\": a string that is no number does not fit column {schema}.t.amount numeric(12,2)"
        )
    );
    assert_eq!(fixture.schema.count("t").await, 0);
}

#[tokio::test]
async fn a_zone_can_be_given_to_times_without_one() {
    let fixture = Fixture::new("zones", TABLE).await;
    let value = r#"{"at":"2024-10-27T02:30:00","wall":"2024-07-01T00:00:00Z"}"#;
    fixture.put(r#"{"table":{"zone":"Europe/Berlin"}}"#, &[value]).await.unwrap();
    fixture.put(r#"{"table":{"zone":"+02:00"}}"#, &[value]).await.unwrap();
    fixture.put(r#"{"table":{"zone":"UTC"}}"#, &[value]).await.unwrap();
    assert_eq!(
        fixture.rows("SELECT at AT TIME ZONE 'UTC' AS at, wall FROM t").await,
        [
            r#"{"at":"2024-10-27T00:30:00","wall":"2024-07-01T02:00:00"}"#,
            r#"{"at":"2024-10-27T00:30:00","wall":"2024-07-01T02:00:00"}"#,
            r#"{"at":"2024-10-27T02:30:00","wall":"2024-07-01T00:00:00"}"#,
        ]
    );
    let bad =
        fixture.bad(r#"{"table":{"zone":"Europe/Berlin"}}"#, &[r#"{"at":"2024-03-31T02:30:00"}"#]).await;
    assert_eq!(bad[0].reason, NotATime);
}

#[tokio::test]
async fn what_only_the_server_can_refuse_is_its_error_with_the_names() {
    let fixture = Fixture::new(
        "server",
        "CREATE TABLE t (n integer UNIQUE, c integer CONSTRAINT small CHECK (c < 10))",
    )
    .await;
    for (values, state, name) in
        [(vec![r#"{"n":1}"#, r#"{"n":1}"#], "23505", "t_n_key"), (vec![r#"{"c":10}"#], "23514", "small")]
    {
        let failure = crate::fixture::failure(fixture.put("{}", &values).await.unwrap_err());
        assert_eq!(failure.sql_state.as_deref(), Some(state));
        assert!(
            failure.message.contains(&format!("INSERT INTO {}.t (table t", fixture.schema.name())),
            "{failure}"
        );
        assert!(failure.message.contains(&format!("constraint {name}")), "{failure}");
        assert!(failure.session_alive);
    }
    let many = vec![r#"{"n":1}"#; 300];
    let failure = crate::fixture::failure(fixture.put("{}", &many).await.unwrap_err());
    assert_eq!(failure.sql_state.as_deref(), Some("23505"));
    assert_eq!(failure.class, oncesink::Class::BadRecord);
    assert!(failure.message.starts_with("COPY "), "{failure}");
    assert_eq!(fixture.schema.count("t").await, 0);
}

#[tokio::test]
async fn a_refused_copy_leaves_the_session_usable() {
    let fixture = Fixture::new("usable", "CREATE TABLE t (n integer UNIQUE, note text)").await;
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    // Several messages of a COPY, refused near the beginning, in the middle and at the end.
    let note = "x".repeat(100);
    let mut session = Some(fixture.session().await);
    for twice in [1, 5_000, 9_999] {
        let mut values: Vec<_> = (0..10_000).map(|n| format!(r#"{{"n":{n},"note":"{note}"}}"#)).collect();
        values[twice] = r#"{"n":0,"note":""}"#.to_owned();
        let (written, rest) = fixture.try_on(session.take().unwrap(), &sink, &batch(&values)).await;
        let failure = crate::fixture::failure(written.unwrap_err());
        assert_eq!(failure.sql_state.as_deref(), Some("23505"));
        assert!(failure.session_alive);
        session = rest;
        assert!(session.is_some(), "the session answers after {twice}");
    }
    let (written, _) = fixture.try_on(session.unwrap(), &sink, &batch(&[r#"{"n":0}"#])).await;
    assert_eq!(written.unwrap().total().records, 1);
}
