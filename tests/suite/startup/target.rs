//! Target tables that cannot take rows exactly once, or not at all.

use super::stage::refused;

/// Foreign servers are made once in a database.
const FILE_FDW: &str = "
    SELECT pg_advisory_lock(4711);
    CREATE EXTENSION IF NOT EXISTS file_fdw SCHEMA public;
    SELECT pg_advisory_unlock(4711);
    CREATE SERVER \"f_@s\" FOREIGN DATA WRAPPER file_fdw;
    DROP TABLE \"@t\"; CREATE FOREIGN TABLE \"@t\" (n bigint) SERVER \"f_@s\" OPTIONS (filename '/dev/null')";

#[tokio::test(flavor = "multi_thread")]
async fn tables() {
    let rows = vec![
        refused(
            "no such table",
            "DROP TABLE \"@t\"",
            &[],
            &["no table @t", "search_path", "Create it, or name another in [sinks.s.table]"],
        ),
        refused(
            "no such schema",
            "",
            &[("table = \"@t\"", "table = \"nowhere.@t\"")],
            &["no table nowhere.@t", "Create it"],
        ),
        refused(
            "another case",
            "DROP TABLE \"@t\"; CREATE TABLE \"@s\".\"Other_Case\" (n bigint)",
            &[("table = \"@t\"", "table = \"@s.other_case\"")],
            &["no table @s.other_case", "Other_Case", "names are compared exactly"],
        ),
        refused(
            "a view",
            "ALTER TABLE \"@t\" RENAME TO behind; CREATE VIEW \"@t\" AS SELECT * FROM behind",
            &[],
            &["@s.@t is a view", "name the table behind it"],
        ),
        refused(
            "a materialized view",
            "DROP TABLE \"@t\"; CREATE MATERIALIZED VIEW \"@t\" AS SELECT 1 AS n",
            &[],
            &["@s.@t is a materialized view", "name a table"],
        ),
        refused("unlogged", "ALTER TABLE \"@t\" SET UNLOGGED", &[], &["@s.@t is unlogged", "SET LOGGED"]),
        refused(
            "an unlogged partition",
            "DROP TABLE \"@t\"; CREATE TABLE \"@t\" (n bigint) PARTITION BY RANGE (n); CREATE UNLOGGED TABLE part PARTITION OF \"@t\" DEFAULT",
            &[],
            &["@s.@t has a partition", "part", "SET LOGGED"],
        ),
        refused("foreign", FILE_FDW, &[], &["@s.@t is a foreign table", "name a table of this server"]),
        refused(
            "a rule",
            "CREATE RULE away AS ON INSERT TO \"@t\" DO INSTEAD NOTHING",
            &[],
            &["@s.@t has a rule on INSERT", "Replace it by a trigger"],
        ),
        refused(
            "no INSERT",
            "REVOKE ALL ON \"@t\" FROM @r",
            &[("@url", "@role")],
            &["@s.@t does not let role @r write", "GRANT INSERT ON \"@s\".\"@t\" TO \"@r\""],
        ),
        refused(
            "no USAGE",
            "CREATE SCHEMA @s_x; CREATE TABLE @s_x.\"@t\" (n bigint)",
            &[("@url", "@role"), ("table = \"@t\"", "table = \"@s_x.@t\"")],
            &["is in a schema that role @r may not use", "GRANT USAGE ON SCHEMA \"@s_x\" TO \"@r\""],
        ),
        refused(
            "no USAGE of the search path",
            "REVOKE ALL ON SCHEMA @s FROM @r",
            &[("@url", "@role")],
            &["no schema of the search_path", "GRANT USAGE", "offsets = \"schema.kafka_offsets\""],
        ),
        refused(
            "no columns",
            "DROP TABLE \"@t\"; CREATE TABLE \"@t\" ()",
            &[],
            &["@s.@t has no columns", "ADD COLUMN"],
        ),
    ];
    super::all("target", rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns() {
    let rows = vec![
        refused(
            "no such column",
            "",
            &[("table = \"@t\"", "table = \"@t\"\nunknown_fields = \"column:extra\"")],
            &[
                "[sinks.s.table]: unknown_fields = \"column:extra\"",
                "@s.@t has no such column",
                "it has n, doc, note",
            ],
        ),
        refused(
            "not json",
            "",
            &[("table = \"@t\"", "table = \"@t\"\nunknown_fields = \"column:note\"")],
            &["@s.@t.note is text", "must be json or jsonb"],
        ),
        refused(
            "not writable",
            "REVOKE INSERT ON \"@t\" FROM @r; GRANT INSERT (n) ON \"@t\" TO @r",
            &[("@url", "@role"), ("table = \"@t\"", "table = \"@t\"\nunknown_fields = \"column:doc\"")],
            &[
                "[sinks.s.table]: unknown_fields = \"column:doc\"",
                "GRANT INSERT (\"doc\") ON \"@s\".\"@t\" TO",
            ],
        ),
        refused(
            "no such zone",
            "",
            &[("table = \"@t\"", "table = \"@t\"\nzone = \"Mars/Olympus\"")],
            &["[sinks.s.table]: zone = \"Mars/Olympus\"", "write a name such as"],
        ),
    ];
    super::all("columns", rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_table() {
    use oncesink::sqlx::{self, Executor};

    let mut holder = oncesink_test_support::Servers::shared().await.postgres().connection().await;
    holder.execute("CREATE TEMPORARY TABLE passing (n bigint)").await.unwrap();
    let schema: String =
        sqlx::query_scalar("SELECT nspname::text FROM pg_namespace WHERE oid = pg_my_temp_schema()")
            .fetch_one(&mut holder)
            .await
            .unwrap();
    let table: &str = format!("table = \"{schema}.passing\"").leak();
    let file: &[(&str, &str)] = vec![("table = \"@t\"", table)].leak();
    let says = &["passing is a temporary table", "name a permanent one"];
    super::all("temporary", vec![refused("temporary", "", file, says)]).await;
}
