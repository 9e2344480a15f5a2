//! Domains: what they are made of is ours to encode; their rules are the server's.

use oncesink::{Class, Reason};

use crate::fixture::{Fixture, failure};

const UPSERT: &str = r#"{"table":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"}}"#;

#[tokio::test]
async fn rules_are_the_servers_and_limits_are_ours() {
    let fixture = Fixture::new(
        "domains",
        "CREATE DOMAIN code AS varchar(3) CHECK (VALUE <> 'bad'); CREATE DOMAIN must AS integer NOT NULL;
         CREATE DOMAIN few AS integer[] CHECK (cardinality(VALUE) < 3);
         CREATE TABLE t (id integer PRIMARY KEY, c code, m must DEFAULT 1, f few, cs code[])",
    )
    .await;
    for config in ["{}", UPSERT] {
        for (value, state) in [
            (r#"{"id":1,"c":"bad"}"#, "23514"),
            (r#"{"id":1,"m":null}"#, "23502"),
            (r#"{"id":1,"f":[1,2,3]}"#, "23514"),
            (r#"{"id":1,"cs":["bad"]}"#, "23514"),
        ] {
            let refused = failure(fixture.put(config, &[value]).await.unwrap_err());
            assert_eq!(
                (refused.class, refused.sql_state.as_deref()),
                (Class::BadRecord, Some(state)),
                "{value}: {refused}"
            );
            assert!(!refused.message.contains("bad\""), "{refused}");
        }
        let bad = fixture.bad(config, &[r#"{"id":1,"c":"abcd"}"#, r#"{"id":1,"m":1.5}"#]).await;
        let found: Vec<_> = bad.iter().map(|bad| bad.reason).collect();
        assert_eq!(found, [Reason::TooLong, Reason::Inexact]);
        assert!(bad[0].message.ends_with("t.c code"), "{}", bad[0].message);
    }
    fixture.put("{}", &[r#"{"id":1,"c":"abc","m":2,"f":[1],"cs":["x",null]}"#]).await.unwrap();
    // A rule that is added later holds at once; the sink stays open.
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    fixture.schema.execute("ALTER DOMAIN must ADD CHECK (VALUE < 10)").await;
    let refused =
        fixture.write(&sink, &mut crate::fixture::batch(&[r#"{"id":2,"m":11}"#])).await.unwrap_err();
    assert_eq!(failure(refused).sql_state.as_deref(), Some("23514"));
    assert_eq!(fixture.schema.count("t").await, 1);
}
