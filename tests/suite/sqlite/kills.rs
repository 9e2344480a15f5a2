//! `kill -9` again and again, most of them inside a transaction: what the file holds then is exact.

use std::time::Instant;

use oncesink_test_support::kafka::Record;

use super::rig::{MOMENT, Rig};
use crate::rig::row;

const KILLS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn c003_rows_flow_into_a_file_and_triggers_fire_once_through_kills_on_sqlite() {
    let mut rig = Rig::new("kill9", 3).await;
    rig.file
        .execute(&format!(
            "CREATE TABLE audit (seq INTEGER);
             CREATE TRIGGER audited AFTER INSERT ON \"{}\" BEGIN INSERT INTO audit VALUES (NEW.seq); END",
            rig.topic
        ))
        .await;
    // A bearer of the same name has its partitions back at once, so that there is time for many kills.
    rig.kafka_lines = "group.instance.id = \"one\"".to_owned();
    rig.sink_lines = "batch = { rows = 100 }".to_owned();
    let mut inside = 0;
    for _ in 0..KILLS {
        rig.produce(2_000).await;
        let before = rig.count().await;
        let process = rig.run();
        rig.rows_reach(before + 1).await;
        let began = Instant::now();
        while began.elapsed() < MOMENT {
            if rig.is_locked().await {
                inside += 1;
                break;
            }
        }
        process.kill9();
    }
    assert!(inside >= KILLS / 2, "only {inside} kills were inside a transaction");
    rig.verb("run --until-end").await.done();
    rig.each_once().await;
    assert_eq!(rig.file.count("audit").await, rig.count().await, "one line of the audit for each record");
}

/// A bad record is kept once, and the good ones around it are there once, whatever is killed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn bad_records_are_kept_once_under_kills_on_sqlite() {
    const RECORDS: i64 = 600;
    let mut rig = Rig::new("kill9bad", 1).await;
    rig.kafka_lines = "group.instance.id = \"one\"".to_owned();
    rig.sink_lines = "batch = { rows = 50 }\non_bad_record = \"dead-letter\"".to_owned();
    let spoilt = |seq: i64| seq % 37 == 5;
    let records = (0..RECORDS).map(|seq| {
        let good = row(0, seq);
        Record::to(0).value(if spoilt(seq) {
            good.replace("\"seq\":", "\"seq\":\"x\",\"seq2\":")
        } else {
            good
        })
    });
    rig.kafka.produce(&rig.topic, records).await;
    for _ in 0..2 {
        let before = rig.count().await;
        let process = rig.run();
        rig.rows_reach((before + 1).min(RECORDS / 2)).await;
        process.kill9();
    }
    rig.verb("run --until-end").await.done();
    let bad = (0..RECORDS).filter(|seq| spoilt(*seq)).count() as i64;
    let good: i64 = rig.file.value(&format!("SELECT count(DISTINCT seq) FROM \"{}\"", rig.topic)).await;
    assert_eq!((rig.count().await, good), (RECORDS - bad, RECORDS - bad));
    let kept: Vec<String> = rig
        .file
        .column("SELECT reason || ' ' || record_offset FROM oncesink_dead_letters ORDER BY record_offset")
        .await;
    let expected: Vec<_> =
        (0..RECORDS).filter(|seq| spoilt(*seq)).map(|seq| format!("unknown_field {seq}")).collect();
    assert_eq!(kept, expected);
    assert_eq!(rig.stored(0).await, format!("{RECORDS} running"));
}
