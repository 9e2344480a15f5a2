//! The books: read = written + collapsed + deleted + skipped + dead-lettered, by topic, also when topics share batches.

use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Launch;

use super::scraped;
use crate::rig::{PATIENCE, Rig, row};
use crate::scrape::{Http, Scrape};

/// read, written, collapsed, deleted, skipped.
fn books(scrape: &Scrape, topic: &str) -> [f64; 5] {
    ["read", "written", "collapsed", "deleted", "skipped"]
        .map(|what| scrape.sum(&format!("oncesink_records_{what}_total"), &[("topic", topic)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_by_topic_in_mixed_batches() {
    let mut rig = Rig::new("books", 2).await;
    let other = rig.kafka.topic("books_other", 1).await;
    rig.schema.execute(&format!("CREATE TABLE \"{other}\" (LIKE \"{}\")", rig.topic)).await;
    // One writer, so that both topics meet in its batches.
    rig.sink_lines = "writers = 1\ntable = { delete = \"none\" }\nbatch = { linger = \"200 ms\" }".to_owned();
    let topics = format!("[\"{}\", \"{other}\"]", rig.topic);
    let config = rig.config().replace(&format!("[\"{}\"]", rig.topic), &topics);
    let start = || {
        let launch = Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &config);
        launch.args(["run"]).env("RUST_LOG", "info").start()
    };
    let process = start();
    let http = Http::of(&process).await;
    let mut expected = [[0.0; 5]; 2];
    for round in 0..4_u8 {
        let mut records = rig.records(0, 30);
        records.extend(rig.records(1, 20));
        records.extend((0..round).map(|n| Record::to(i32::from(n % 2)).key("gone")));
        let (there, gone) = (f64::from(7 * round), 3.0);
        let mut others: Vec<Record> =
            (0..7 * i64::from(round)).map(|n| Record::to(0).value(row(0, n))).collect();
        others.extend((0..3).map(|_| Record::to(0).key("gone")));
        tokio::join!(rig.kafka.produce(&rig.topic, records), rig.kafka.produce(&other, others));
        let skipped = f64::from(round);
        for (total, add) in expected[0].iter_mut().zip([50.0 + skipped, 50.0, 0.0, 0.0, skipped]) {
            *total += add;
        }
        for (total, add) in expected[1].iter_mut().zip([there + gone, there, 0.0, 0.0, gone]) {
            *total += add;
        }
        scraped(&http, |scrape| {
            let [read, written, collapsed, deleted, skipped] = books(scrape, &rig.topic);
            assert_eq!(read, written + collapsed + deleted + skipped, "at any moment");
            [books(scrape, &rig.topic), books(scrape, &other)] == expected
        })
        .await;
    }
    let scrape = http.scrape().await;
    assert_eq!(
        scrape.sum("oncesink_records_read_total", &[]),
        expected[0][0] + expected[1][0],
        "no other topic, and none without a name"
    );
    let rows = scrape.sum("oncesink_batch_rows_sum", &[]);
    assert_eq!(rows, expected[0][0] + expected[1][0]);
    let committed = scrape.value("oncesink_transactions_total", &[("outcome", "committed")]).unwrap();
    assert_eq!(scrape.sum("oncesink_batch_rows_count", &[]), committed);
    for phase in ["advance", "write", "guard", "commit"] {
        assert_eq!(scrape.sum("oncesink_transaction_seconds_count", &[("phase", phase)]), committed);
    }
    assert!(scrape.sum("oncesink_commit_latency_seconds_count", &[]) >= 8.0);
    // Positive control: some transactions did carry both topics.
    assert!(committed < scrape.sum("oncesink_commit_latency_seconds_count", &[]));
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    rig.each_once().await;
    assert_eq!(rig.schema.count(&format!("\"{other}\"")).await as f64, expected[1][1]);
}
