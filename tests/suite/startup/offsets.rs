//! Our own tables: missing, of others, of another time, not durable, not ours to use.

use super::stage::refused;

#[tokio::test(flavor = "multi_thread")]
async fn tables() {
    let rows = vec![
        refused(
            "none",
            "DROP TABLE kafka_offsets",
            &[],
            &["@s.kafka_offsets", "no such table", "oncesink migrate"],
        ),
        refused(
            "in a schema that is not there",
            "",
            &[("kind = \"postgres\"", "kind = \"postgres\"\noffsets = \"nowhere.kafka_offsets\"")],
            &["nowhere.kafka_offsets", "oncesink migrate"],
        ),
        refused(
            "of the recipe",
            "DROP TABLE kafka_offsets; CREATE TABLE kafka_offsets (topic text, partition_id int, last_offset bigint, PRIMARY KEY (topic, partition_id))",
            &[],
            &["@s.kafka_offsets", "oncesink migrate --adopt next|processed --group G"],
        ),
        refused(
            "of somebody else",
            "DROP TABLE kafka_offsets; CREATE TABLE kafka_offsets (id int)",
            &[],
            &["@s.kafka_offsets is not a table of offsets", "choose another name"],
        ),
        refused(
            "unlogged",
            "ALTER TABLE kafka_offsets SET UNLOGGED",
            &[],
            &["@s.kafka_offsets is UNLOGGED", "SET LOGGED"],
        ),
        refused(
            "unlogged events",
            "ALTER TABLE oncesink_events SET UNLOGGED",
            &[],
            &["@s.oncesink_events is UNLOGGED", "SET LOGGED"],
        ),
        refused(
            "no table of events",
            "DROP TABLE oncesink_events",
            &[],
            &["@s.oncesink_events: no such table", "oncesink migrate"],
        ),
        refused(
            "a newer version",
            "INSERT INTO oncesink_migrations (offsets_table, version) VALUES ('kafka_offsets', 99)",
            &[],
            &["@s.kafka_offsets is at version 99", "Run the newer release"],
        ),
        refused(
            "an older version",
            "DELETE FROM oncesink_migrations",
            &[],
            &["@s.kafka_offsets is at version 0", "oncesink migrate"],
        ),
        refused(
            "no UPDATE",
            "REVOKE UPDATE ON kafka_offsets FROM @r",
            &[("@url", "@role")],
            &["role @r lacks a privilege", "GRANT UPDATE ON \"@s\".\"kafka_offsets\" TO \"@r\""],
        ),
        refused(
            "nothing granted",
            "REVOKE ALL ON kafka_offsets FROM @r",
            &[("@url", "@role")],
            &["GRANT SELECT, INSERT, UPDATE ON \"@s\".\"kafka_offsets\" TO \"@r\""],
        ),
        refused(
            "no INSERT of topics",
            "REVOKE INSERT ON oncesink_topics FROM @r",
            &[("@url", "@role")],
            &["GRANT INSERT ON \"@s\".\"oncesink_topics\" TO \"@r\""],
        ),
    ];
    super::all("offsets", rows).await;
}
