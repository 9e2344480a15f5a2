//! Partitions as one bound list, and answers put back into the order asked for.
//!
//! Why a list: SQLite has no arrays; a JSON text read by `json_each` is one variable, however many partitions it names.

use std::collections::HashMap;

use serde_json::{Value, json};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::error::{Class, Failure};
use crate::record::TopicPartition;

/// A list of rows for `json_each`.
pub(super) fn list(rows: impl Iterator<Item = Value>) -> String {
    Value::Array(rows.collect()).to_string()
}

/// Topic and number of each partition.
pub(super) fn places<'a>(places: impl Iterator<Item = &'a TopicPartition>) -> String {
    list(places.map(|place| json!([&*place.topic, place.partition])))
}

/// What a list of [`places`] reads as, bound as the second variable.
pub(super) const PLACES: &str =
    "(SELECT value ->> 0 AS topic, value ->> 1 AS partition_id FROM json_each(?2)) AS w";

/// The partition that the first two columns of a row name.
pub(super) fn place(row: &SqliteRow) -> Result<TopicPartition, sqlx::Error> {
    Ok(TopicPartition::new(row.try_get::<String, _>(0)?, row.try_get(1)?))
}

/// Rows by partition.
pub(super) fn in_order<T>(
    rows: &[SqliteRow],
    read: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
) -> Result<HashMap<TopicPartition, T>, Failure> {
    rows.iter().map(|row| Ok((place(row)?, read(row)?))).collect()
}

/// A token as it stands in a column.
pub(super) fn token(row: &SqliteRow, column: usize) -> Result<uuid::Uuid, sqlx::Error> {
    let text: String = row.try_get(column)?;
    text.parse().map_err(|_| sqlx::Error::ColumnDecode {
        index: column.to_string(),
        source: "not a token of ours".into(),
    })
}

/// A call that must have an answer.
pub(super) fn no_answer() -> Failure {
    Failure::new(Class::Transient, "a claim of one partition has no answer")
}
