//! The topic: orders of 300 bytes whose partition and place in it are in the record, so that each row tells which record it is.

use std::time::Instant;

use oncesink_test_support::kafka::{Kafka, Record};
use serde::Deserialize;

/// The topic, and the table that gets its name.
pub(crate) const TOPIC: &str = "orders";
/// Partitions of the topic.
pub(crate) const PARTITIONS: i32 = 6;
const BYTES: usize = 300;
const STEP: i64 = 5_000;

/// The columns of the table, none of them a key that could hide a duplicate.
pub(crate) const TABLE: &str =
    "CREATE TABLE orders (partition_id int, seq bigint, customer bigint, amount numeric(12,2), note text)";

/// What was produced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Orders {
    total: i64,
}

/// A record's value.
#[derive(Debug, Deserialize)]
pub(crate) struct Order {
    pub(crate) partition_id: i32,
    pub(crate) seq: i64,
    pub(crate) customer: i64,
    pub(crate) amount: serde_json::Number,
    pub(crate) note: String,
}

impl Orders {
    /// Orders of one partition.
    pub(crate) fn of(self, partition: i32) -> i64 {
        let partitions = i64::from(PARTITIONS);
        self.total / partitions + i64::from(i64::from(partition) < self.total % partitions)
    }

    /// All orders.
    pub(crate) fn total(self) -> i64 {
        self.total
    }

    /// The sum of all amounts, in hundredths.
    pub(crate) fn cents(self) -> i64 {
        (0..PARTITIONS).flat_map(|partition| (0..self.of(partition)).map(cents)).sum()
    }
}

fn cents(seq: i64) -> i64 {
    seq % 9_973 + 1
}

fn value(partition: i32, seq: i64) -> Vec<u8> {
    let cents = cents(seq);
    let head = format!(
        "{{\"partition_id\":{partition},\"seq\":{seq},\"customer\":{},\"amount\":{}.{:02},\"note\":\"",
        seq % 50_021,
        cents / 100,
        cents % 100
    );
    let filler = BYTES - head.len() - 2;
    format!("{head}{}\"}}", "o".repeat(filler)).into_bytes()
}

/// Makes the topic and writes all orders, round after round over the partitions.
pub(crate) async fn produce(kafka: &Kafka, total: i64) -> Orders {
    let (orders, begin) = (Orders { total }, Instant::now());
    kafka.create_topic(TOPIC, PARTITIONS, &[]).await;
    let longest = orders.of(0);
    for first in (0..longest).step_by(STEP as usize) {
        let records = (0..PARTITIONS).flat_map(|partition| {
            let last = (first + STEP).min(orders.of(partition));
            (first..last).map(move |seq| Record::to(partition).value(value(partition, seq)))
        });
        kafka.produce(TOPIC, records).await;
    }
    eprintln!("produced {total} orders in {:.0} s", begin.elapsed().as_secs_f64());
    orders
}
