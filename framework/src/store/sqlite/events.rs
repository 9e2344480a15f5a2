//! Lines of `oncesink_events`, written in the transaction that they tell of.
//!
//! Must not: be written after the fact, or ever changed.

use serde_json::json;
use sqlx::SqliteConnection;

use super::Sqlite;
use super::names::Names;
use super::places::list;
use crate::error::Failure;
use crate::store::EventRow;
use crate::store::operate::Moved;

/// Writes an event.
pub(super) async fn write_event(
    connection: &mut SqliteConnection,
    names: &Names,
    store: &Sqlite,
    event: &EventRow,
) -> Result<(), Failure> {
    let moved = Moved { place: event.place.clone(), old: event.old_offset, new: event.new_offset };
    write_moves(connection, names, store, event.kind, &event.reason, &[moved]).await
}

/// Writes an event for each partition moved.
pub(super) async fn write_moves(
    connection: &mut SqliteConnection,
    names: &Names,
    store: &Sqlite,
    kind: &str,
    reason: &str,
    moves: &[Moved],
) -> Result<(), Failure> {
    let statement = format!(
        "INSERT INTO {} (who, consumer_group, topic, partition_id, kind, old_offset, new_offset, reason)
         SELECT ?1, ?2, value ->> 0, value ->> 1, ?3, value ->> 2, value ->> 3, ?4
         FROM json_each(?5)
         ORDER BY key",
        names.events
    );
    let moves = list(
        moves.iter().map(|moved| json!([&*moved.place.topic, moved.place.partition, moved.old, moved.new])),
    );
    sqlx::query(&statement)
        .bind(store.who())
        .bind(store.group())
        .bind(kind)
        .bind(reason)
        .bind(moves)
        .execute(connection)
        .await?;
    Ok(())
}
