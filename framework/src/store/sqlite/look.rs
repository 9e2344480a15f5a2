//! Looks without a lock, words for people, and the one move that is no row's: away from an expired offset.
//!
//! Must not: decide anything, or write `last_offset` without an event.

use sqlx::Row as _;

use super::events::write_event;
use super::places::{PLACES, place, places, token};
use super::{NOW, Sqlite};
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::operate::StatusRow;
use crate::store::{EventRow, Fence, Row};

/// See [`crate::store::Store::rows`].
pub(super) async fn rows(store: &Sqlite, wanted: &[TopicPartition]) -> Result<Vec<Row>, Failure> {
    let mut control = store.look().await?;
    let statement = format!(
        "SELECT o.topic, o.partition_id, o.owner_epoch, o.owner_token, o.last_offset
         FROM {PLACES}
         JOIN {} AS o ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = ?1
         ORDER BY o.topic, o.partition_id",
        control.names().offsets
    );
    let found = sqlx::query(&statement)
        .bind(store.group())
        .bind(places(wanted.iter()))
        .fetch_all(control.sql())
        .await?;
    store.keep(control.commit().await?);
    found
        .iter()
        .map(|row| {
            Ok(Row {
                place: place(row)?,
                fence: Fence { epoch: row.try_get(2)?, token: token(row, 3)? },
                offset: row.try_get(4)?,
            })
        })
        .collect()
}

/// See [`crate::store::Store::forward`].
pub(super) async fn forward(
    store: &Sqlite,
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
         SET last_offset = ?7, leader_epoch = NULL, updated_at = {NOW}
         WHERE consumer_group = ?1 AND topic = ?2 AND partition_id = ?3
           AND owner_epoch = ?4 AND owner_token = ?5 AND last_offset = ?6",
        names.offsets
    );
    let moved = sqlx::query(&statement)
        .bind(store.group())
        .bind(&*place.topic)
        .bind(place.partition)
        .bind(fence.epoch)
        .bind(fence.token.to_string())
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
pub(super) async fn record(store: &Sqlite, event: &EventRow) -> Result<(), Failure> {
    let mut control = store.control().await?;
    let names = control.names();
    write_event(control.sql(), &names, store, event).await?;
    control.commit().await?.close().await;
    Ok(())
}

/// See [`crate::store::Store::note_state`].
pub(super) async fn note_state(
    store: &Sqlite,
    place: &TopicPartition,
    fence: Fence,
    state: &str,
    reason: Option<&str>,
) -> Result<(), Failure> {
    let mut control = store.control().await?;
    let statement = format!(
        "UPDATE {}
         SET state = ?6,
             state_reason = ?7,
             state_since = CASE WHEN state IS NOT ?6 THEN {NOW} ELSE state_since END,
             updated_at = {NOW}
         WHERE consumer_group = ?1
           AND topic = ?2
           AND partition_id = ?3
           AND owner_epoch = ?4
           AND owner_token = ?5",
        control.names().offsets
    );
    sqlx::query(&statement)
        .bind(store.group())
        .bind(&*place.topic)
        .bind(place.partition)
        .bind(fence.epoch)
        .bind(fence.token.to_string())
        .bind(state)
        .bind(reason)
        .execute(control.sql())
        .await?;
    control.commit().await?.close().await;
    Ok(())
}

impl Sqlite {
    /// All rows of a group, or of all groups in the table, in order.
    ///
    /// # Errors
    /// As the driver's, by class.
    pub async fn status(&self, group: Option<&str>) -> Result<Vec<StatusRow>, Failure> {
        let mut control = self.look().await?;
        let statement = format!(
            "SELECT topic, partition_id, consumer_group, last_offset, owner, owner_epoch, sink, state, state_reason,
                    CAST(round(unixepoch(state_since, 'subsec') * 1000) AS INTEGER) AS state_since,
                    CAST(round(unixepoch(record_timestamp, 'subsec') * 1000) AS INTEGER) AS record_timestamp,
                    CAST(round(unixepoch(updated_at, 'subsec') * 1000) AS INTEGER) AS updated_at,
                    (SELECT count(*) FROM {} AS d
                     WHERE d.consumer_group = o.consumer_group AND d.topic = o.topic AND d.partition_id = o.partition_id
                       AND d.status = 'new') AS new_dead_letters
             FROM {} AS o
             WHERE ?1 IS NULL OR consumer_group = ?1
             ORDER BY consumer_group, topic, partition_id",
            control.names().dead_letters,
            control.names().offsets
        );
        let rows = sqlx::query(&statement).bind(group).fetch_all(control.sql()).await?;
        self.keep(control.commit().await?);
        rows.iter()
            .map(|row| {
                Ok(StatusRow {
                    group: row.try_get("consumer_group")?,
                    place: place(row)?,
                    offset: row.try_get("last_offset")?,
                    owner: row.try_get("owner")?,
                    epoch: row.try_get("owner_epoch")?,
                    sink: row.try_get("sink")?,
                    state: row.try_get("state")?,
                    state_reason: row.try_get("state_reason")?,
                    state_since: row.try_get("state_since")?,
                    record_timestamp: row.try_get("record_timestamp")?,
                    updated_at: row.try_get("updated_at")?,
                    new_dead_letters: row.try_get("new_dead_letters")?,
                })
            })
            .collect()
    }
}
