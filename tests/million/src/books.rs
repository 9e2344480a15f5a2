//! What is in the table, asked of the database alone: count, sum, and the sequence of each partition.

use std::fmt;

use sqlx::Row;

use crate::contender::Contender;
use crate::orders::{Orders, PARTITIONS};

/// The account of a contender's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) rows: i64,
    pub(crate) missing: i64,
    pub(crate) doubled: i64,
    /// Sum of the amounts against what was produced, in hundredths.
    cents: (i64, i64),
    /// Partitions whose sequence is not 0 to its end, each once.
    broken: Vec<String>,
}

const SEQUENCES: &str = "
    SELECT partition_id, sum(times)::bigint AS rows, count(*) AS different, min(seq) AS first, max(seq) AS last, (sum(amount) * 100)::bigint AS cents
    FROM written
    GROUP BY partition_id ORDER BY partition_id";

/// What is there of one partition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    pub(crate) partition: i32,
    pub(crate) rows: i64,
    pub(crate) different: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) cents: i64,
}

impl Books {
    /// Reads the table.
    pub(crate) async fn read(contender: &Contender) -> Self {
        let found = sqlx::query(SEQUENCES).fetch_all(&contender.pool).await.expect("the sequences");
        let sequences = found.iter().map(|row| {
            let [rows, different, first, last, cents] =
                ["rows", "different", "first", "last", "cents"].map(|name| row.get::<i64, _>(name));
            Sequence { partition: row.get("partition_id"), rows, different, first, last, cents }
        });
        let mut books = Self::of(contender.orders, &sequences.collect::<Vec<_>>());
        let bad = format!("SELECT count(*) FROM orders WHERE {}", contender.orders.is_bad());
        match contender.integer(&bad).await {
            0 => {}
            bad => books.broken.push(format!("{bad} rows of bad orders")),
        }
        books
    }

    /// The account of what was found.
    pub(crate) fn of(orders: Orders, found: &[Sequence]) -> Self {
        let mut books =
            Self { rows: 0, missing: 0, doubled: 0, cents: (0, orders.cents()), broken: Vec::new() };
        let mut distinct = 0;
        for Sequence { partition, rows, different, first, last, cents } in found {
            let (good, end) = (orders.good(*partition), orders.end(*partition));
            books.rows += rows;
            books.cents.0 += cents;
            distinct += different;
            if (*rows, *different, *first, *last) != (good, good, 0, end - 1) {
                books.broken.push(format!(
                    "partition {partition}: {rows} rows, {different} different, {first}..={last}, of {good} before {end}"
                ));
            }
        }
        let seen = |partition: &i32| found.iter().any(|sequence| sequence.partition == *partition);
        books.broken.extend((0..PARTITIONS).filter(|p| !seen(p)).map(|p| format!("partition {p}: no row")));
        books.missing = orders.total_good() - distinct;
        books.doubled = books.rows - distinct;
        books
    }

    /// What is wrong with rows that should be there once.
    pub(crate) fn faults(&self, rows: i64) -> Vec<String> {
        let mut faults = self.broken.clone();
        if (self.rows, self.missing, self.doubled) != (rows, 0, 0) {
            faults.push(self.to_string());
        }
        if self.cents.0 != self.cents.1 {
            faults.push(format!(
                "the amounts sum up to {} hundredths instead of {}",
                self.cents.0, self.cents.1
            ));
        }
        faults
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows {}, missing {}, doubled {}", self.rows, self.missing, self.doubled)
    }
}
