//! Looks without a lock, words for people, and the one move that is no row's: away from an expired offset.
//!
//! Must not: decide anything, or write `last_offset` without an event.

use sqlx::Row as _;

use super::Postgres;
use super::events::write_event;
use super::places::Places;
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::{EventRow, Fence, Row};

/// See [`crate::store::Store::rows`].
pub(super) async fn rows(store: &Postgres, places: &[TopicPartition]) -> Result<Vec<Row>, Failure> {
    let mut control = store.light().await?;
    let statement = format!(
        "SELECT o.topic, o.partition_id, o.owner_epoch, o.owner_token, o.last_offset
         FROM {} AS o
         JOIN UNNEST($2::text[], $3::integer[]) AS w (topic, partition_id)
           ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = $1
         ORDER BY o.topic, o.partition_id",
        control.names().offsets
    );
    let wanted = Places::of(places.iter());
    let found = sqlx::query(&statement)
        .bind(store.group())
        .bind(&wanted.topics)
        .bind(&wanted.partitions)
        .fetch_all(control.sql())
        .await?;
    store.keep(control.commit().await?);
    found
        .iter()
        .map(|row| {
            Ok(Row {
                place: TopicPartition::new(row.try_get::<String, _>(0)?, row.try_get(1)?),
                fence: Fence { epoch: row.try_get(2)?, token: row.try_get(3)? },
                offset: row.try_get(4)?,
            })
        })
        .collect()
}

/// See [`crate::store::Store::forward`].
pub(super) async fn forward(
    store: &Postgres,
    place: &TopicPartition,
    fence: Fence,
    from: i64,
    to: i64,
    reason: &str,
) -> Result<bool, Failure> {
    let mut control = store.control().await?;
    let names = control.names();
    let statement = format!(
        "UPDATE {}
         SET last_offset = $7, leader_epoch = NULL, updated_at = clock_timestamp()
         WHERE consumer_group = $1 AND topic = $2 AND partition_id = $3
           AND owner_epoch = $4 AND owner_token = $5 AND last_offset = $6",
        names.offsets
    );
    let moved = sqlx::query(&statement)
        .bind(store.group())
        .bind(&*place.topic)
        .bind(place.partition)
        .bind(fence.epoch)
        .bind(fence.token)
        .bind(from)
        .bind(to)
        .execute(control.sql())
        .await?
        .rows_affected();
    if moved == 1 {
        let event = EventRow {
            place: place.clone(),
            kind: "expired",
            old_offset: Some(from),
            new_offset: Some(to),
            reason: reason.to_owned(),
        };
        write_event(control.sql(), &names, store, &event).await?;
    }
    control.commit().await?.close().await;
    Ok(moved == 1)
}

/// See [`crate::store::Store::record`].
pub(super) async fn record(store: &Postgres, event: &EventRow) -> Result<(), Failure> {
    let mut control = store.light().await?;
    let names = control.names();
    write_event(control.sql(), &names, store, event).await?;
    store.keep(control.commit().await?);
    Ok(())
}

/// See [`crate::store::Store::note_state`].
pub(super) async fn note_state(
    store: &Postgres,
    place: &TopicPartition,
    fence: Fence,
    state: &str,
    reason: Option<&str>,
) -> Result<(), Failure> {
    let mut control = store.light().await?;
    let statement = format!(
        "UPDATE {}
         SET state = $6,
             state_reason = $7,
             state_since = CASE WHEN state IS DISTINCT FROM $6 THEN CURRENT_TIMESTAMP ELSE state_since END,
             updated_at = CURRENT_TIMESTAMP
         WHERE consumer_group = $1
           AND topic = $2
           AND partition_id = $3
           AND owner_epoch = $4
           AND owner_token = $5",
        control.names().offsets
    );
    sqlx::query(&statement)
        .bind(store.group())
        .bind(&*place.topic)
        .bind(place.partition)
        .bind(fence.epoch)
        .bind(fence.token)
        .bind(state)
        .bind(reason)
        .execute(control.sql())
        .await?;
    store.keep(control.commit().await?);
    Ok(())
}
