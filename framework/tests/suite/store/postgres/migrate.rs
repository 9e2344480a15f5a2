//! Our tables: created once, by one of many, and never over somebody else's.

use oncesink::Class;
use oncesink::postgres::{Postgres, PostgresConfig};
use oncesink::store::Store;
use oncesink::store::operate::Meaning;
use sqlx::Executor;

use super::{Bench, starts, wanted};

const RECIPE: &str = "
    CREATE TABLE kafka_offsets (topic varchar(249), partition_id int, last_offset bigint, PRIMARY KEY (topic, partition_id));
    INSERT INTO kafka_offsets VALUES ('t', 0, 41), ('t', 1, 0)";

#[tokio::test]
async fn applied_once_and_again_does_nothing() {
    let bench = Bench::empty("migrate_again").await;
    let store = bench.store();
    assert_eq!(store.pending().await.unwrap(), [1]);
    let table = format!("{}.kafka_offsets", bench.schema.name());
    let before = store.preflight().await.unwrap();
    assert_eq!(before.problems.len(), 1, "{before:?}");
    assert!(before.problems[0].contains("Run: oncesink migrate"), "{before:?}");
    assert_eq!(store.apply(None).await.unwrap(), [format!("created {table} (version 1)")]);
    assert_eq!(store.apply(None).await.unwrap(), Vec::<String>::new());
    assert_eq!(store.pending().await.unwrap(), Vec::<i32>::new());
    let after = store.preflight().await.unwrap();
    assert_eq!(after.problems, Vec::<String>::new());
    assert_eq!(after.offsets, table);
    assert!(after.server_version.starts_with(|c: char| c.is_ascii_digit()), "{after:?}");
}

#[tokio::test]
async fn many_at_once_create_one() {
    let bench = Bench::empty("migrate_race").await;
    let runs = (0..8).map(|_| {
        let store = bench.store();
        tokio::spawn(async move { store.apply(None).await })
    });
    let mut created = 0;
    for run in futures_util::future::join_all(runs).await {
        created += run.unwrap().unwrap().len();
    }
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_dba_can_apply_what_is_printed() {
    let bench = Bench::empty("migrate_print").await;
    let store = bench.store();
    let text = store.print().await.unwrap();
    assert!(text.contains(&format!("CREATE TABLE \"{}\".\"kafka_offsets\"", bench.schema.name())), "{text}");
    assert!(!text.contains('@'), "a placeholder is left: {text}");
    bench.schema.execute(&text).await;
    assert_eq!(store.apply(None).await.unwrap(), Vec::<String>::new());
    assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
    // With a schema named nothing is contacted.
    let config = PostgresConfig::new("postgres://nobody@127.0.0.1:1/x").with_offsets("Ops.offsets");
    let text = Postgres::new(config, "g").unwrap().print().await.unwrap();
    assert!(text.contains("CREATE TABLE \"Ops\".\"offsets\""), "{text}");
}

#[tokio::test]
async fn two_tables_of_offsets_may_stand_in_one_schema() {
    let bench = Bench::new("migrate_two").await;
    let second = format!("{}.Other offsets", bench.schema.name());
    let config = PostgresConfig::new(bench.schema.url()).with_offsets(&second);
    let store = Postgres::new(config, &bench.group).unwrap();
    assert_eq!(store.apply(None).await.unwrap(), [format!("created {second} (version 1)")]);
    assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
    store.register(&bench.identity("a"), &starts("t", 1, 5)).await.unwrap();
    assert_eq!(bench.schema.count("kafka_offsets").await, 0);
    assert_eq!(bench.schema.count("\"Other offsets\"").await, 1);
}

#[tokio::test]
async fn the_old_recipes_table_is_asked_about_and_taken_over() {
    for (meaning, expected) in [(Meaning::Next, [41, 0]), (Meaning::Processed, [42, 1])] {
        let bench = Bench::empty("migrate_adopt").await;
        bench.schema.execute(RECIPE).await;
        let store = bench.store();
        let failure = store.apply(None).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal);
        assert!(failure.message.contains("--adopt next|processed --group G"), "{failure}");
        assert!(store.preflight().await.unwrap().problems[0].contains("--adopt"));
        assert_eq!(bench.schema.count("kafka_offsets").await, 2);

        let done = store.apply(Some(meaning)).await.unwrap();
        assert_eq!(done.len(), 3, "{done:?}");
        let offsets: Vec<i64> =
            bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
        assert_eq!(offsets, expected);
        let old: Vec<i64> = bench
            .schema
            .column("SELECT last_offset FROM kafka_offsets_before_oncesink ORDER BY partition_id")
            .await;
        assert_eq!(old, [41, 0]);
        assert_eq!(bench.events().await, ["adopted", "adopted"]);
        assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
        assert_eq!(store.apply(Some(meaning)).await.unwrap_err().class, Class::Fatal, "adopted twice");

        // The adopted rows are claimed where they stand; partition 2, unknown to the recipe, begins by the policy.
        store.register(&bench.identity("a"), &starts("t", 3, 100)).await.unwrap();
        let claims = store
            .claim(&bench.identity("a"), &[wanted("t", 0), wanted("t", 1), wanted("t", 2)])
            .await
            .unwrap();
        let offsets: Vec<i64> = claims.iter().map(|claim| super::claimed(claim).offset).collect();
        assert_eq!(offsets, [expected[0], expected[1], 100]);
    }
}

#[tokio::test]
async fn a_failed_adoption_leaves_everything_as_it_was() {
    let bench = Bench::empty("migrate_failed").await;
    bench.schema.execute(RECIPE).await;
    bench.schema.execute("INSERT INTO kafka_offsets VALUES ('t', 2, -1)").await;
    bench.store().apply(Some(Meaning::Next)).await.unwrap_err();
    assert_eq!(bench.schema.count("kafka_offsets").await, 3);
    let tables: i64 =
        bench.schema.value("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").await;
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn a_strangers_table_is_not_ours() {
    let bench = Bench::empty("migrate_stranger").await;
    bench.schema.execute("CREATE TABLE kafka_offsets (id int)").await;
    for adopt in [None, Some(Meaning::Next)] {
        let failure = bench.store().apply(adopt).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal);
        assert!(failure.message.contains("choose another name"), "{failure}");
    }
}

#[tokio::test]
async fn each_problem_names_the_object_and_what_helps() {
    let bench = Bench::new("migrate_problems").await;
    let role = oncesink_test_support::unique("reader");
    let schema = bench.schema.name();
    bench
        .schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};
             ALTER TABLE oncesink_topics SET UNLOGGED"
        ))
        .await;
    let url = bench.schema.url().replacen("postgres@", &format!("{role}@"), 1);
    let found = bench.store_at(&url).preflight().await.unwrap();
    assert_eq!(found.role.as_deref(), Some(&*role));
    let expected = [
        format!("Run: GRANT INSERT, UPDATE ON \"{schema}\".\"kafka_offsets\" TO \"{role}\""),
        format!("{schema}.oncesink_topics is UNLOGGED"),
        format!("Run: GRANT INSERT ON \"{schema}\".\"oncesink_events\" TO \"{role}\""),
        format!("Run: GRANT INSERT, UPDATE ON \"{schema}\".\"oncesink_dead_letters\" TO \"{role}\""),
    ];
    assert_eq!(found.problems.len(), expected.len(), "{found:?}");
    for (problem, expected) in found.problems.iter().zip(expected) {
        assert!(problem.contains(&expected), "{problem} does not say {expected}");
    }
    let other = Postgres::new(PostgresConfig::new(&url).with_offsets(format!("{schema}.more")), "g").unwrap();
    let failure = other.apply(None).await.unwrap_err();
    assert_eq!(failure.class, Class::Fatal);
    assert!(failure.message.contains("oncesink migrate --print"), "{failure}");
    bench.schema.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn targets_that_lose_rows_in_a_crash_are_known() {
    use oncesink::postgres::{Storage, storage_of};
    let bench = Bench::new("migrate_storage").await;
    let store = bench.store();
    bench
        .schema
        .execute(
            "CREATE TABLE good (n int);
             CREATE UNLOGGED TABLE bad (n int);
             CREATE VIEW seen AS SELECT * FROM good;
             CREATE TABLE parts (n int) PARTITION BY RANGE (n);
             CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
             CREATE TABLE mixed (n int) PARTITION BY RANGE (n);
             CREATE UNLOGGED TABLE mixed_1 PARTITION OF mixed FOR VALUES FROM (0) TO (10)",
        )
        .await;
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("CREATE TEMPORARY TABLE brief (n int)").await.unwrap();
    let schema = bench.schema.name();
    let cases = [
        ("good", None),
        ("parts", None),
        ("bad", Some("bad is UNLOGGED")),
        ("mixed", Some("mixed_1 is UNLOGGED")),
        ("seen", Some("is a view")),
        ("absent", Some("no such table")),
    ];
    for (table, expected) in cases {
        let problem = storage_of(&mut tx, schema, table).await.unwrap().problem(schema, table);
        match (expected, problem) {
            (None, None) => {}
            (Some(expected), Some(problem)) => assert!(problem.contains(expected), "{table}: {problem}"),
            (expected, problem) => panic!("{table}: {problem:?} instead of {expected:?}"),
        }
    }
    let temporary: String =
        sqlx::query_scalar("SELECT nspname::text FROM pg_namespace WHERE oid = pg_my_temp_schema()")
            .fetch_one(tx.sql())
            .await
            .unwrap();
    assert!(matches!(storage_of(&mut tx, &temporary, "brief").await.unwrap(), Storage::Unfit { .. }));
}
