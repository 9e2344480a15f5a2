//! Records that cannot become rows, under the policies that go on behind them: kept once, passed over once, and nothing else with them.

mod postgres;
mod postgres_faults;
mod postgres_orphans;
mod postgres_refused;
mod sqlite;

use std::collections::BTreeSet;

use oncesink_test_support::eventually_within;
use oncesink_test_support::kafka::Record;

use crate::rig::{PATIENCE, Rig, row};
use crate::scrape::{Http, Scrape};

/// A rig whose sink keeps bad records; further lines for the sink.
async fn rig(stem: &str, partitions: i32, lines: &str) -> Rig {
    let mut rig = Rig::new(stem, partitions).await;
    rig.sink_lines = format!("on_bad_record = \"dead-letter\"\n{lines}");
    rig
}

/// A record of the ledger that the encoder refuses: its amount is a word.
fn spoilt(partition: i32, seq: i64) -> Record {
    let value = row(partition, seq);
    let (before, _) = value.split_once("\"amount\"").expect("an amount");
    Record::to(partition).value(format!("{before}\"amount\":\"much\"}}"))
}

/// The next `count` records of a partition, of which those in these places of its sequence are spoilt.
fn with_spoilt(rig: &mut Rig, partition: i32, count: i64, places: &[i64]) -> Vec<Record> {
    let first = rig.produced_each()[partition as usize];
    let good = rig.records(partition, count);
    let spoil = |(seq, good)| if places.contains(&seq) { spoilt(partition, seq) } else { good };
    (first..).zip(good).map(spoil).collect()
}

/// Partition and place of every row in the ledger; each is there once.
async fn rows(rig: &Rig) -> BTreeSet<(i32, i64)> {
    let sql = format!("SELECT format('%s %s', partition_id, seq) FROM \"{}\"", rig.topic);
    distinct(rig.schema.column(&sql).await)
}

/// Partition and offset of every dead letter.
async fn dead(rig: &Rig) -> BTreeSet<(i32, i64)> {
    distinct(
        rig.schema
            .column(
                "SELECT format('%s %s', partition_id, record_offset) FROM oncesink_dead_letters WHERE status = 'new'",
            )
            .await,
    )
}

fn distinct(places: Vec<String>) -> BTreeSet<(i32, i64)> {
    let count = places.len();
    let read = |place: String| {
        let (partition, seq) = place.split_once(' ').expect("two numbers");
        (partition.parse().expect("a partition"), seq.parse().expect("an offset"))
    };
    let set: BTreeSet<(i32, i64)> = places.into_iter().map(read).collect();
    assert_eq!(set.len(), count, "each is there once");
    set
}

/// Waits until every record of the rig is passed over, then: these are dead letters, seen once, and all others are rows.
async fn each_once_with(rig: &Rig, bad: &[(i32, i64)]) {
    let stored = "SELECT last_offset FROM kafka_offsets ORDER BY partition_id";
    let stored = async || rig.schema.column::<i64>(stored).await;
    eventually_within(PATIENCE, stored, |stored| *stored == rig.produced_each()).await;
    let bad: BTreeSet<(i32, i64)> = bad.iter().copied().collect();
    let all = rig.produced_each().into_iter().zip(0..);
    let all = all.flat_map(|(count, partition)| (0..count).map(move |seq| (partition, seq)));
    assert_eq!(dead(rig).await, bad);
    assert_eq!(rows(rig).await, all.filter(|place| !bad.contains(place)).collect());
    let again: i64 = rig.schema.value("SELECT count(*) FROM oncesink_dead_letters WHERE attempts <> 1").await;
    assert_eq!(again, 0, "a dead letter was committed twice");
    assert_eq!(rig.schema.silent_rewinds().await, 0);
}

/// read, and written + collapsed + deleted + skipped + dead-lettered.
fn books(scrape: &Scrape, topic: &str) -> (f64, f64) {
    let of = |what: &str| scrape.sum(&format!("oncesink_records_{what}_total"), &[("topic", topic)]);
    (of("read"), ["written", "collapsed", "deleted", "skipped", "dead_lettered"].map(of).iter().sum())
}

/// Waits until this many records were read; the books balance all the while.
async fn read(http: &Http, rig: &Rig, wanted: i64) -> Scrape {
    oncesink_test_support::eventually(PATIENCE, || async {
        let scrape = http.scrape().await;
        let (read, total) = books(&scrape, &rig.topic);
        assert_eq!(read, total, "at any moment");
        (read == wanted as f64).then_some(scrape)
    })
    .await
}
