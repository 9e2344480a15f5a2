//! Partitions as bind arrays, and answers put back into the order asked for.

use std::collections::HashMap;

use sqlx::postgres::PgRow;

use crate::error::Failure;
use crate::record::TopicPartition;

/// Topics and partition numbers, as two arrays for `UNNEST`.
pub(super) struct Places<'a> {
    pub(super) topics: Vec<&'a str>,
    pub(super) partitions: Vec<i32>,
}

impl<'a> Places<'a> {
    pub(super) fn of(places: impl Iterator<Item = &'a TopicPartition>) -> Self {
        let (topics, partitions) = places.map(|place| (&*place.topic, place.partition)).unzip();
        Self { topics, partitions }
    }
}

/// Rows by partition.
pub(super) fn in_order<T>(
    rows: &[PgRow],
    read: impl Fn(&PgRow) -> Result<(String, i32, T), sqlx::Error>,
) -> Result<HashMap<TopicPartition, T>, Failure> {
    rows.iter()
        .map(|row| {
            let (topic, partition, rest) = read(row)?;
            Ok((TopicPartition::new(topic, partition), rest))
        })
        .collect()
}
