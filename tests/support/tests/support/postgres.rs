//! Schemas, the guard on stored offsets, and a server that is killed and started again.

use oncesink_test_support::Servers;
use oncesink_test_support::postgres::{PostgresServer, Schema};
use sqlx::Executor;

async fn offsets() -> Schema {
    let schema = Servers::shared().await.postgres().schema("guard").await;
    schema
        .execute(
            "CREATE TABLE kafka_offsets (
                 consumer_group text, topic text, partition_id int, last_offset bigint,
                 PRIMARY KEY (consumer_group, topic, partition_id));
             CREATE TABLE oncesink_events (
                 consumer_group text, topic text, partition_id int, kind text, old_offset bigint, new_offset bigint);
             INSERT INTO kafka_offsets VALUES ('g', 't', 0, 10)",
        )
        .await;
    schema.guard_offsets().await;
    schema
}

#[tokio::test]
async fn sessions_live_in_the_schema() {
    let postgres = Servers::shared().await.postgres();
    let (one, other) = (postgres.schema("one").await, postgres.schema("one").await);
    for schema in [&one, &other] {
        schema.execute("CREATE TABLE orders (seq bigint)").await;
    }
    one.execute("INSERT INTO orders SELECT generate_series(1, 3)").await;
    assert_eq!((one.count("orders").await, other.count("orders").await), (3, 0));
    assert_eq!(one.column::<i64>("SELECT seq FROM orders ORDER BY seq").await, [1, 2, 3]);
    let mut connection = one.connection().await;
    let name: String =
        sqlx::query_scalar("SELECT current_schema()").fetch_one(&mut connection).await.unwrap();
    assert_eq!(name, one.name());
}

#[tokio::test]
async fn a_silent_rewind_is_refused() {
    let schema = offsets().await;
    schema.execute("UPDATE kafka_offsets SET last_offset = 12").await;
    let refused = schema.pool().execute("UPDATE kafka_offsets SET last_offset = 11").await.unwrap_err();
    let error = refused.into_database_error().unwrap();
    assert_eq!(error.code().unwrap(), "XX001");
    assert!(error.message().contains("silent rewind of t/0 in group g: 12 to 11"), "{error}");
    assert_eq!(schema.silent_rewinds().await, 1, "counted, though it was rolled back");
    assert_eq!(schema.value::<i64>("SELECT last_offset FROM kafka_offsets").await, 12);
}

#[tokio::test]
async fn a_rewind_with_an_event_passes_and_an_old_event_does_not_count() {
    let schema = offsets().await;
    schema
        .execute(
            "BEGIN;
             UPDATE kafka_offsets SET last_offset = 5;
             INSERT INTO oncesink_events VALUES ('g', 't', 0, 'reset', 10, 5);
             COMMIT",
        )
        .await;
    assert_eq!(schema.value::<i64>("SELECT last_offset FROM kafka_offsets").await, 5);
    schema.pool().execute("UPDATE kafka_offsets SET last_offset = 4").await.unwrap_err();
}

#[tokio::test]
async fn an_event_behind_a_savepoint_counts() {
    let schema = offsets().await;
    schema
        .execute(
            "BEGIN; SAVEPOINT s;
             UPDATE kafka_offsets SET last_offset = 5;
             INSERT INTO oncesink_events VALUES ('g', 't', 0, 'rewind', 10, 5);
             RELEASE SAVEPOINT s; SET CONSTRAINTS ALL IMMEDIATE; COMMIT",
        )
        .await;
    schema.execute_unguarded("UPDATE kafka_offsets SET last_offset = 1").await;
    assert_eq!(schema.value::<i64>("SELECT last_offset FROM kafka_offsets").await, 1);
}

#[tokio::test]
async fn a_killed_server_keeps_what_was_committed() {
    let server = PostgresServer::start_with(&[("deadlock_timeout", "200ms")]).await;
    let schema = server.schema("kept").await;
    schema.execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").await;
    assert_eq!(schema.value::<String>("SHOW deadlock_timeout").await, "200ms");
    let pid = server.pid();
    server.kill9();
    server.restart().await;
    assert_ne!(server.pid(), pid);
    let schema_again = server.connection().await;
    drop(schema_again);
    server.stop_immediate().await;
    server.restart().await;
    server.stop_fast().await;
    server.restart().await;
    let mut connection = schema.connection().await;
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM kept").fetch_one(&mut connection).await.unwrap();
    assert_eq!(kept, 1);
    assert_eq!(server.version().await, Servers::shared().await.postgres().version().await);
}
