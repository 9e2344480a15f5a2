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

/// How rows are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Every record a new row: no key could hide a duplicate.
    #[default]
    Insert,
    /// Each record's row by its key: a trigger counts how often a row was written, so that a duplicate shows all the same.
    Upsert,
}

impl Mode {
    /// The table, and the view `written` that tells how often each order was.
    pub(crate) const fn tables(self) -> &'static str {
        match self {
            Self::Insert => {
                "CREATE TABLE orders (partition_id int, seq bigint, customer bigint, amount numeric(12,2), note text);
                 CREATE VIEW written AS SELECT partition_id, seq, count(*) AS times, sum(amount) AS amount FROM orders GROUP BY partition_id, seq;"
            }
            Self::Upsert => {
                "CREATE TABLE orders (partition_id int, seq bigint, customer bigint, amount numeric(12,2), note text, times bigint NOT NULL DEFAULT 1,
                                      PRIMARY KEY (partition_id, seq));
                 CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.times := OLD.times + 1; RETURN NEW; END';
                 CREATE TRIGGER again BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION again();
                 CREATE VIEW written AS SELECT partition_id, seq, times, amount FROM orders;"
            }
        }
    }

    /// The command's keys for it.
    pub(crate) const fn keys(self) -> &'static str {
        match self {
            Self::Insert => "",
            Self::Upsert => {
                "[sinks.orders.table]\nmode = \"upsert\"\nkey = [\"partition_id\", \"seq\"]\nkey_from = \"value\"\ndelete = \"none\"\n"
            }
        }
    }

    /// What a control adds to its INSERT.
    pub(crate) const fn conflict(self) -> &'static str {
        match self {
            Self::Insert => "",
            Self::Upsert => {
                " ON CONFLICT (partition_id, seq) DO UPDATE SET amount = EXCLUDED.amount, note = EXCLUDED.note"
            }
        }
    }

    /// The word on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Upsert => "upsert",
        }
    }
}

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
