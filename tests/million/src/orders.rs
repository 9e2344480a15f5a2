//! The topic: orders of 300 bytes whose partition and place in it are in the record, so that each row tells which record it is. On demand one in a hundred
//! is bad, most of them for whoever reads them, a few for the table alone.

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
                "CREATE TABLE orders (partition_id int, seq bigint, customer bigint CONSTRAINT known CHECK (customer >= 0), amount numeric(12,2), note text);
                 CREATE VIEW written AS SELECT partition_id, seq, count(*) AS times, sum(amount) AS amount FROM orders GROUP BY partition_id, seq;"
            }
            Self::Upsert => {
                "CREATE TABLE orders (partition_id int, seq bigint, customer bigint CONSTRAINT known CHECK (customer >= 0), amount numeric(12,2), note text, times bigint NOT NULL DEFAULT 1,
                                      PRIMARY KEY (partition_id, seq));
                 CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.times := OLD.times + 1; RETURN NEW; END';
                 CREATE TRIGGER again BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION again();
                 CREATE VIEW written AS SELECT partition_id, seq, times, amount FROM orders;"
            }
        }
    }

    /// The same in a SQLite file.
    pub(crate) const fn file_tables(self) -> &'static str {
        match self {
            Self::Insert => {
                "CREATE TABLE orders (partition_id INTEGER, seq INTEGER, customer INTEGER, amount DECIMAL(12, 2), note TEXT);
                 CREATE VIEW written AS SELECT partition_id, seq, COUNT(*) AS times, SUM(amount) AS amount FROM orders GROUP BY partition_id, seq;"
            }
            Self::Upsert => {
                "CREATE TABLE orders (partition_id INTEGER NOT NULL, seq INTEGER NOT NULL, customer INTEGER, amount DECIMAL(12, 2), note TEXT,
                                      times INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (partition_id, seq));
                 CREATE TRIGGER again AFTER UPDATE OF note ON orders FOR EACH ROW
                 BEGIN UPDATE orders SET times = OLD.times + 1 WHERE rowid = NEW.rowid; END;
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
    /// One in a hundred is bad.
    bad: bool,
}

/// What is wrong with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its amount is a word.
    Spoilt,
    /// Its customer is below zero, which only the table refuses.
    Refused,
}

/// Places of bad orders, in turns of so many; one in `REFUSED_EVERY` is for the table.
const BAD_EVERY: i64 = 100;
const REFUSED_EVERY: i64 = 5_000;
/// One in a hundred of a million, exactly; the last order of some partitions is one of them.
const BAD_PLACE: i64 = 66;

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

    /// What is wrong with the order in this place of a partition, if anything.
    pub(crate) fn fault(self, seq: i64) -> Option<Fault> {
        match (self.bad, seq % BAD_EVERY, seq % REFUSED_EVERY) {
            (true, _, BAD_PLACE) => Some(Fault::Refused),
            (true, BAD_PLACE, _) => Some(Fault::Spoilt),
            _ => None,
        }
    }

    /// The same as a condition on the place, for the database.
    pub(crate) fn is_bad(self) -> String {
        format!("{} AND seq % {BAD_EVERY} = {BAD_PLACE}", self.bad)
    }

    /// Places of a partition whose orders are good.
    fn good_places(self, partition: i32) -> impl Iterator<Item = i64> {
        (0..self.of(partition)).filter(move |seq| self.fault(*seq).is_none())
    }

    /// Good orders of one partition.
    pub(crate) fn good(self, partition: i32) -> i64 {
        self.good_places(partition).count() as i64
    }

    /// The place behind the last good order of a partition.
    pub(crate) fn end(self, partition: i32) -> i64 {
        self.good_places(partition).last().map_or(0, |seq| seq + 1)
    }

    /// All good orders.
    pub(crate) fn total_good(self) -> i64 {
        (0..PARTITIONS).map(|partition| self.good(partition)).sum()
    }

    /// All orders with this fault.
    pub(crate) fn total_of(self, fault: Fault) -> i64 {
        let places = (0..PARTITIONS).flat_map(|partition| 0..self.of(partition));
        places.filter(|seq| self.fault(*seq) == Some(fault)).count() as i64
    }

    /// Whether there are bad ones.
    pub(crate) fn with_bad(self) -> bool {
        self.bad
    }

    /// The sum of the amounts of all good orders, in hundredths.
    pub(crate) fn cents(self) -> i64 {
        (0..PARTITIONS).flat_map(|partition| self.good_places(partition).map(cents)).sum()
    }
}

fn cents(seq: i64) -> i64 {
    seq % 9_973 + 1
}

fn value(partition: i32, seq: i64, fault: Option<Fault>) -> Vec<u8> {
    let cents = cents(seq);
    let amount = match fault {
        Some(Fault::Spoilt) => "\"much\"".to_owned(),
        _ => format!("{}.{:02}", cents / 100, cents % 100),
    };
    let customer = if fault == Some(Fault::Refused) { -1 } else { seq % 50_021 };
    let head = format!(
        "{{\"partition_id\":{partition},\"seq\":{seq},\"customer\":{customer},\"amount\":{amount},\"note\":\""
    );
    let filler = BYTES - head.len() - 2;
    format!("{head}{}\"}}", "o".repeat(filler)).into_bytes()
}

/// Makes the topic and writes all orders, round after round over the partitions.
pub(crate) async fn produce(kafka: &Kafka, total: i64, bad: bool) -> Orders {
    let (orders, begin) = (Orders { total, bad }, Instant::now());
    kafka.create_topic(TOPIC, PARTITIONS, &[]).await;
    let longest = orders.of(0);
    for first in (0..longest).step_by(STEP as usize) {
        let records = (0..PARTITIONS).flat_map(|partition| {
            let last = (first + STEP).min(orders.of(partition));
            (first..last)
                .map(move |seq| Record::to(partition).value(value(partition, seq, orders.fault(seq))))
        });
        kafka.produce(TOPIC, records).await;
    }
    eprintln!("produced {total} orders in {:.0} s", begin.elapsed().as_secs_f64());
    orders
}
