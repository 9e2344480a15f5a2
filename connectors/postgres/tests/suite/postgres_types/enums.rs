//! Enums: a label goes as the column's own type; which labels there are, the server says.

use oncesink::Class;

use crate::fixture::{Fixture, batch, failure};

const UPSERT: &str = r#"{"table":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"}}"#;

#[tokio::test]
async fn c181_labels_are_cast_to_the_columns_own_type_and_judged_by_the_server() {
    for (config, rows) in [("{}", 1), ("{}", 300), (UPSERT, 1), (UPSERT, 1500)] {
        let fixture = Fixture::new("enums", "SELECT 1").await;
        let shop = format!("{} Shop", fixture.schema.name());
        fixture
            .schema
            .execute(&format!(
                r#"CREATE SCHEMA "{shop}"; CREATE TYPE "{shop}".state_t AS ENUM ('NEW', 'PAID');
                   CREATE TYPE state_t AS ENUM ('LOST'); CREATE TABLE t (id integer PRIMARY KEY, state "{shop}".state_t)"#
            ))
            .await;
        let sink = fixture.open(config, &["t"]).await.unwrap();
        let with = |label: &str| -> Vec<_> {
            (0..rows)
                .map(|id| {
                    format!(r#"{{"id":{id},"state":"{}"}}"#, if id == rows / 2 { label } else { "PAID" })
                })
                .collect()
        };
        let refused = failure(fixture.write(&sink, &mut batch(&with("LOST"))).await.unwrap_err());
        assert_eq!(
            (refused.class, refused.sql_state.as_deref()),
            (Class::BadRecord, Some("22P02")),
            "{refused}"
        );
        assert!(refused.session_alive && !refused.message.contains("LOST"), "{refused}");
        assert_eq!(fixture.schema.count("t").await, 0);
        // The same open sink takes a label that is added later.
        fixture.schema.execute(&format!(r#"ALTER TYPE "{shop}".state_t ADD VALUE 'LOST'"#)).await;
        fixture.write(&sink, &mut batch(&with("LOST"))).await.unwrap();
        let lost: i64 = fixture.schema.value("SELECT count(*) FROM t WHERE state::text = 'LOST'").await;
        assert_eq!((lost, fixture.schema.count("t").await), (1, rows));
        fixture.schema.execute(&format!(r#"DROP SCHEMA "{shop}" CASCADE"#)).await;
    }
}

#[tokio::test]
async fn a_type_can_be_dropped_beside_a_connection_that_staged_rows_of_it() {
    let fixture = Fixture::new(
        "dropped",
        "CREATE TYPE old_t AS ENUM ('a'); CREATE TYPE new_t AS ENUM ('a', 'b'); CREATE DOMAIN d AS integer;
         CREATE TABLE t (id integer PRIMARY KEY, state old_t, n d)",
    )
    .await;
    let sink = fixture.open(UPSERT, &["t"]).await.unwrap();
    let values: Vec<_> = (0..1500).map(|id| format!(r#"{{"id":{id},"state":"a","n":1}}"#)).collect();
    let (sent, session) = fixture.try_on(fixture.session().await, &sink, &batch(&values)).await;
    sent.unwrap();
    let session = session.unwrap();
    fixture.schema.execute("ALTER TABLE t ALTER state TYPE new_t USING state::text::new_t, ALTER n TYPE integer; DROP TYPE old_t; DROP DOMAIN d").await;
    let (sent, _) = fixture.try_on(session, &sink, &batch(&values)).await;
    assert_eq!(failure(sent.unwrap_err()).class, Class::StaleCatalog);
}

#[tokio::test]
async fn a_type_that_makes_way_for_another_of_its_name_is_noticed() {
    for (config, rows) in [("{}", 5), (UPSERT, 5), (UPSERT, 1500)] {
        let fixture = Fixture::new(
            "replaced",
            "CREATE TYPE state_t AS ENUM ('a'); CREATE TABLE t (id integer PRIMARY KEY, state state_t)",
        )
        .await;
        let values = |first: i64| -> Vec<_> {
            (first..first + rows).map(|id| format!(r#"{{"id":{id},"state":"a"}}"#)).collect()
        };
        let sink = fixture.open(config, &["t"]).await.unwrap();
        let session = fixture.commit_on(fixture.session().await, &sink, &batch(&values(0))).await.unwrap();
        fixture
            .schema
            .execute(
                "CREATE TYPE next_t AS ENUM ('b', 'a'); ALTER TABLE t ALTER state TYPE next_t USING state::text::next_t;
                 DROP TYPE state_t; ALTER TYPE next_t RENAME TO state_t",
            )
            .await;
        let sink = fixture.open(config, &["t"]).await.unwrap();
        fixture.commit_on(session, &sink, &batch(&values(rows))).await.unwrap();
        assert_eq!(fixture.schema.count("t").await, 2 * rows);
    }
}
