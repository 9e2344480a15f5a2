//! Lines of `oncesink_events`, written in the transaction that they tell of.
//!
//! Must not: be written after the fact, or ever changed.

use sqlx::PgConnection;

use super::Postgres;
use super::names::Names;
use crate::error::Failure;
use crate::store::EventRow;
use crate::store::operate::Moved;

/// Writes an event.
pub(super) async fn write_event(
    connection: &mut PgConnection,
    names: &Names,
    store: &Postgres,
    event: &EventRow,
) -> Result<(), Failure> {
    let moved = Moved { place: event.place.clone(), old: event.old_offset, new: event.new_offset };
    write_moves(connection, names, store, event.kind, &event.reason, &[moved]).await
}

/// Writes an event for each partition moved.
pub(super) async fn write_moves(
    connection: &mut PgConnection,
    names: &Names,
    store: &Postgres,
    kind: &str,
    reason: &str,
    moves: &[Moved],
) -> Result<(), Failure> {
    let statement = format!(
        "INSERT INTO {} (who, consumer_group, topic, partition_id, kind, old_offset, new_offset, reason)
         SELECT $1, $2, w.topic, w.partition_id, $3, w.old_offset, w.new_offset, $4
         FROM UNNEST($5::text[], $6::integer[], $7::bigint[], $8::bigint[])
              AS w (topic, partition_id, old_offset, new_offset)",
        names.events
    );
    sqlx::query(&statement)
        .bind(store.who())
        .bind(store.group())
        .bind(kind)
        .bind(reason)
        .bind(moves.iter().map(|moved| &*moved.place.topic).collect::<Vec<&str>>())
        .bind(moves.iter().map(|moved| moved.place.partition).collect::<Vec<_>>())
        .bind(moves.iter().map(|moved| moved.old).collect::<Vec<_>>())
        .bind(moves.iter().map(|moved| moved.new).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}
