//! `migrate` meets a table of the three-column recipe: asked, not guessed.

use super::bench::Bench;

async fn recipe(stem: &str) -> Bench {
    let bench = Bench::new(stem).await;
    bench
        .schema
        .execute(&format!(
            "CREATE TABLE kafka_offsets (topic text, partition_id int, last_offset bigint, PRIMARY KEY (topic, partition_id));
             INSERT INTO kafka_offsets VALUES ('{0}', 0, 3), ('{0}', 1, 4)",
            bench.topic
        ))
        .await;
    bench
}

#[tokio::test]
async fn a_recipe_table_is_never_overwritten() {
    let bench = recipe("recipe").await;
    for line in ["migrate", "check", "run"] {
        bench.run(line).await.failed(3, "oncesink migrate --adopt next|processed --group G");
    }
    bench.run("migrate --adopt next --group nobody").await.failed(1, "no sink has group \"nobody\"");
    assert_eq!(bench.schema.count("kafka_offsets").await, 2);
}

#[tokio::test]
async fn next_and_processed_differ_by_one() {
    for (meaning, offsets) in [("next", ["3", "4"]), ("processed", ["4", "5"])] {
        let bench = recipe(meaning).await;
        let line = format!("migrate --adopt {meaning} --group {}", bench.group());
        let said = bench.run(&line).await.done();
        assert!(said.contains("copied 2 rows"), "{said}");
        let stored: Vec<String> =
            bench.schema.column("SELECT last_offset::text FROM kafka_offsets ORDER BY partition_id").await;
        assert_eq!(stored, offsets, "{meaning}");
        assert_eq!(bench.schema.count("kafka_offsets_before_oncesink").await, 2);
    }
}
