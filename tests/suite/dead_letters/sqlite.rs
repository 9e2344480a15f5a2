//! The same into a file, which has one writer and needs no server.

use std::time::Duration;

use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::process::Launch;
use oncesink_test_support::sqlite::File;
use oncesink_test_support::{Servers, eventually_within};

use crate::rig::{PATIENCE, row};

/// A topic of one partition, a file with its table, and the command between them.
struct OnFile {
    kafka: &'static Kafka,
    file: File,
    topic: String,
}

impl OnFile {
    async fn new(stem: &str, columns: &str) -> Self {
        let kafka = Servers::shared().await.kafka();
        let (file, topic) = (File::new(stem), kafka.topic(stem, 1).await);
        file.execute(&format!("PRAGMA journal_mode = WAL; CREATE TABLE \"{topic}\" ({columns})")).await;
        let on_file = Self { kafka, file, topic };
        let (code, lines) = on_file.command(&["migrate"]).run(PATIENCE).await;
        assert_eq!(code, 0, "migrate: {lines:?}");
        on_file.file.guard_offsets().await;
        on_file
    }

    fn command(&self, args: &[&str]) -> Launch {
        let config = format!(
            "[kafka]\nbrokers = \"{}\"\n\n[http]\nlisten = \"127.0.0.1:0\"\n\n[sinks.ledger]\ntopics = [\"{topic}\"]\ngroup = \"{topic}\"\n\
             on_bad_record = \"dead-letter\"\nbatch = {{ rows = 50 }}\ntarget = {{ kind = \"sqlite\", url = \"{}\" }}\n",
            self.kafka.bootstrap(),
            self.file.url(),
            topic = self.topic
        );
        let mut all = vec!["--config", "oncesink.toml"];
        all.extend(args);
        Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &config).args(all)
    }

    async fn stored(&self) -> i64 {
        self.file.value("SELECT last_offset FROM kafka_offsets").await
    }
}

const LEDGER: &str = "partition_id INTEGER, seq INTEGER, note TEXT, amount NUMERIC";

#[tokio::test(flavor = "multi_thread")]
async fn c065_a_field_that_does_not_fit_is_kept_with_its_reason_and_told_without_its_value() {
    let on_file = OnFile::new("misfit_file", LEDGER).await;
    let mut records: Vec<Record> = (0..1_000).map(|seq| Record::to(0).value(row(0, seq))).collect();
    let value = "{\"partition_id\":0,\"seq\":\"TOP-SECRET-4711\",\"note\":\"n\",\"amount\":1}";
    records.insert(500, Record::to(0).key("k-1").value(value));
    on_file.kafka.produce(&on_file.topic, records).await;
    let (code, lines) = on_file.command(&["run", "--until-end"]).run(PATIENCE).await;
    let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    assert_eq!(code, 0, "{text}");
    assert_eq!(
        (on_file.file.count(&format!("\"{}\"", on_file.topic)).await, on_file.stored().await),
        (1_000, 1_001)
    );
    let letter: String = on_file
        .file
        .value(
            "SELECT record_offset || ' ' || CAST(record_key AS text) || ' ' || CAST(record_value AS text) || ' ' || class || ' ' || reason
                    || ' ' || target_column || ' ' || attempts FROM oncesink_dead_letters",
        )
        .await;
    assert_eq!(letter, format!("500 k-1 {value} value not_a_number seq 1"));
    assert!(
        text.contains(&format!("{}/0@500 dead-lettered: ", on_file.topic)) && text.contains("seq"),
        "{text}"
    );
    assert!(!text.contains("TOP-SECRET-4711"), "{text}");
}

/// A file that somebody else writes to refuses the first flush; what was read meanwhile comes behind it.
#[tokio::test(flavor = "multi_thread")]
async fn c089_after_a_failed_flush_the_order_holds() {
    let on_file =
        OnFile::new("flush_file", &format!("arrived INTEGER PRIMARY KEY AUTOINCREMENT, {LEDGER}")).await;
    on_file.kafka.produce(&on_file.topic, (0..100).map(|seq| Record::to(0).value(row(0, seq)))).await;
    let process = on_file.command(&["run"]).env("RUST_LOG", "info").start();
    let table = format!("\"{}\"", on_file.topic);
    eventually_within(PATIENCE, || on_file.file.count(&table), |count| *count == 100).await;
    let mut lock = on_file.file.connection().await;
    oncesink::sqlx::Executor::execute(&mut lock, "BEGIN IMMEDIATE").await.unwrap();
    let bad = |seq: i64| row(0, seq).replace("\"amount\":", "\"amount\":\"much\",\"amounts\":");
    let more = (100..500).map(|seq| Record::to(0).value(if seq % 49 == 0 { bad(seq) } else { row(0, seq) }));
    on_file.kafka.produce(&on_file.topic, more).await;
    // Longer than a flush waits for the file.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(on_file.file.count(&table).await, 100);
    oncesink::sqlx::Executor::execute(&mut lock, "ROLLBACK").await.unwrap();
    eventually_within(PATIENCE, || on_file.stored(), |stored| *stored == 500).await;
    let order = format!(
        "SELECT count(*) FROM (SELECT seq - lag(seq) OVER (ORDER BY arrived) AS step FROM {table}) WHERE step <= 0"
    );
    assert_eq!(on_file.file.value::<i64>(&order).await, 0, "rows stand in the order of their offsets");
    let dead = on_file.file.count("oncesink_dead_letters WHERE attempts = 1").await;
    assert_eq!((on_file.file.count(&table).await, dead), (492, 8), "{}", process.text());
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

/// A file holds it: nothing is bad, nothing is altered.
#[tokio::test(flavor = "multi_thread")]
async fn c119_a_null_character_is_stored_as_it_is() {
    let on_file = OnFile::new("nul_file", "id INTEGER PRIMARY KEY, note TEXT").await;
    let record = |id: i32, note: &str| Record::to(0).value(format!("{{\"id\":{id},\"note\":\"{note}\"}}"));
    let notes = ["clean", "ab\\u0000cd", "\\u0000", "clean too"];
    on_file.kafka.produce(&on_file.topic, (0..).zip(notes).map(|(id, note)| record(id, note))).await;
    let (code, lines) = on_file.command(&["run", "--until-end"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    let hex = format!("SELECT hex(CAST(note AS blob)) FROM \"{}\" ORDER BY id", on_file.topic);
    let expected = ["636C65616E", "6162006364", "00", "636C65616E20746F6F"];
    assert_eq!(on_file.file.column::<String>(&hex).await, expected);
    assert_eq!((on_file.file.count("oncesink_dead_letters").await, on_file.stored().await), (0, 4));
}
