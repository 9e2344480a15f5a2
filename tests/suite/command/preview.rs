//! `preview`, and what `check` says of the mapping: records as they come and what they become; nothing is written, and no group is joined.

use std::path::PathBuf;

use oncesink::sqlx::sqlite::SqliteConnectOptions;
use oncesink::sqlx::{ConnectOptions, Executor};
use oncesink_test_support::kafka::Record;

use super::bench::{Bench, PARTITIONS, RECORDS, run};

#[tokio::test]
async fn rows_are_shown_on_postgres_and_nothing_is_written() {
    let bench = Bench::new("preview").await;
    let (topic, table) = (&bench.topic, format!("{}.{}", bench.schema.name(), bench.topic));
    let shown = bench.run("preview --limit 3").await.done();
    let record =
        |place: &str, n: i64| format!("{topic}/{place}  key none\n  {{\"n\":{n}}}\n  -> {table}: n = {n}");
    assert_eq!(shown, [record("0@0", 0), record("0@1", 1), record("1@0", 0)].join("\n"));

    let all: serde_json::Value =
        serde_json::from_str(&bench.run("preview o --limit 1000 --json").await.done()).unwrap();
    let records = all["records"].as_array().unwrap();
    assert_eq!(records.len() as i64, RECORDS * i64::from(PARTITIONS));
    assert_eq!(records[7]["becomes"]["row"]["n"], 2);
    assert_eq!((&records[7]["offset"], &records[7]["timestamp"]), (&2.into(), &1_002_000.into()));

    assert_eq!(bench.schema.count(&bench.topic).await, 0);
    let made: bool = bench.schema.value("SELECT to_regclass('kafka_offsets') IS NOT NULL").await;
    assert!(!made, "preview needs no table of ours, and makes none");
    assert!(!bench.kafka.has_group(&bench.group()).await, "a group was joined");
    bench.run("preview x").await.failed(1, "there is no sink \"x\"");
}

#[tokio::test]
async fn each_record_shows_its_row_its_delete_or_why_it_is_bad() {
    let bench = Bench::new("becomes").await;
    bench.schema.execute(&format!("ALTER TABLE {} ADD PRIMARY KEY (n)", bench.topic)).await;
    let secret = "hunter2";
    let records = [
        Record::to(1).key("7").value("{}").header("h", Some(b"x")),
        Record::to(1).key("8"),
        Record::to(1).key("9").value(format!(r#"{{"n":9,"x":"{secret}"}}"#)),
        Record::to(1).key("10").value(b"\xff".to_vec()),
    ];
    bench.kafka.produce(&bench.topic, records).await;
    let file = bench.file().replace(
        "[sinks.o]\n",
        "[sinks.o]\ntable = { mode = \"upsert\", key = [\"n\"], delete = \"tombstone\" }\n",
    );
    let ended = run(&file, "preview --limit 100").await;
    assert!(!ended.err.contains(secret), "a value reached the log: {}", ended.err);
    let shown = ended.done();
    let table = format!("{}.{}", bench.schema.name(), bench.topic);
    for expected in [
        format!("{}/0@0  key none\n  {{\"n\":0}}\n  -> bad record (no_key): key column", bench.topic),
        format!("/1@5  key 7  header h x\n  {{}}\n  -> {table}: n = 7\n"),
        format!("/1@6  key 8\n  no value\n  -> {table}: deletes n = 8\n"),
        format!(
            "/1@7  key 9\n  {{\"n\":9,\"x\":\"{secret}\"}}\n  -> bad record (unknown_field): field \"x\""
        ),
        "/1@8  key 10\n  \\xff\n  -> bad record (invalid_utf8)".to_owned(),
    ] {
        assert!(shown.contains(&expected), "{expected}\nin\n{shown}");
    }
    let skipping = run(&file.replace("tombstone", "none"), "preview --limit 100").await.done();
    assert!(skipping.contains("  no value\n  -> skipped"), "{skipping}");
}

#[tokio::test]
async fn rows_are_shown_on_sqlite() {
    let bench = Bench::new("previewfile").await;
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.db", bench.topic));
    let mut file =
        SqliteConnectOptions::new().filename(&path).create_if_missing(true).connect().await.unwrap();
    file.execute(format!("CREATE TABLE {} (n integer)", bench.topic).as_str()).await.unwrap();
    let target = format!("kind = \"sqlite\", url = \"sqlite://{}\"", path.display());
    let config = bench.file();
    let (before, _) = config.split_once("kind = ").unwrap();
    let shown = run(&format!("{before}{target} }}\n"), "preview --limit 1").await.done();
    assert!(shown.ends_with(&format!("  -> {}: n = 0", bench.topic)), "{shown}");
    let _ = std::fs::remove_file(path);
}

#[tokio::test]
async fn check_tells_how_records_fit_their_table() {
    let bench = Bench::migrated("mapping").await;
    let (topic, schema) = (&bench.topic, bench.schema.name());
    let well = bench.run("check").await.done();
    let line = well.lines().find(|line| line.starts_with("mapping")).expect("a line on the mapping");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[1..5].join(" "), format!("{topic} -> {schema}.{topic} ok"));
    assert!(
        line.ends_with("10 records sampled; 1 of 1 fields have a column; mode insert, no key needed"),
        "{line}"
    );
    assert!(!bench.kafka.has_group(&bench.group()).await, "a group was joined");

    // Some are bad: told, and no reason against a start. All are: the table is not the one that was meant.
    bench.kafka.produce(topic, [Record::to(0).value("{\"m\":1}")]).await;
    let well = bench.run("check").await.done();
    assert!(
        well.contains("11 records sampled, 1 of them bad (oncesink preview shows them); first "),
        "{well}"
    );
    bench.schema.execute(&format!("ALTER TABLE {topic} RENAME n TO k")).await;
    let bad = bench.run("check").await;
    let line =
        bad.out.lines().find(|line| line.starts_with("mapping")).expect("a line on the mapping").to_owned();
    assert!(line.contains(" FIX "), "{line}");
    bad.failed(3, &format!("11 records sampled, 11 of them bad (oncesink preview shows them); first {topic}/0@0: field \"n\" has no column"));
}
