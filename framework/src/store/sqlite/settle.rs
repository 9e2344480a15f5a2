//! Settling a transaction in doubt, and looking whether the file is held.
//!
//! Invariant: a settle judges only with the write lock in hand. The old connection, whatever its thread still does, has held that lock since its BEGIN, so it
//! has ended; and its fence is no longer the row's. Called again with the same token, it gives the same verdict.
//!
//! Why a write, also after a COMMIT whose pages could not be synced: the frames that it may have left in the log are overwritten by this one's.

use serde_json::json;
use sqlx::Row;
use uuid::Uuid;

use super::places::{PLACES, in_order, list, places, token as token_of};
use super::{NOW, Sqlite, is_busy};
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::{Fence, Settled, Step, judge};

/// See [`crate::store::Store::settle`]. Waits for the old connection as long as a session waits for the lock; the framework calls again.
pub(super) async fn settle(store: &Sqlite, steps: &[Step], token: Uuid) -> Result<Vec<Settled>, Failure> {
    let mut control = store.control().await.map_err(|failure| failure.context("settle"))?;
    let names = control.names();
    let find = format!(
        "SELECT o.topic, o.partition_id, o.owner_epoch, o.owner_token, o.last_offset
         FROM {PLACES}
         JOIN {} AS o ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = ?1",
        names.offsets
    );
    let rows = sqlx::query(&find)
        .bind(store.group())
        .bind(places(steps.iter().map(|step| &step.place)))
        .fetch_all(control.sql())
        .await
        .map_err(|error| Failure::from(error).context("settle"))?;
    let found = in_order(&rows, |row| {
        let fence = Fence { epoch: row.try_get(2)?, token: token_of(row, 3)? };
        let offset: i64 = row.try_get(4)?;
        Ok((fence, offset))
    })?;
    let raise = format!(
        "UPDATE {} AS o
         SET owner_epoch = w.epoch + 1, owner_token = ?3, updated_at = {NOW}
         FROM (SELECT value ->> 0 AS topic, value ->> 1 AS partition_id, value ->> 2 AS epoch, value ->> 3 AS token
               FROM json_each(?2)) AS w
         WHERE o.consumer_group = ?1
           AND o.topic = w.topic
           AND o.partition_id = w.partition_id
           AND o.owner_epoch = w.epoch
           AND o.owner_token = w.token",
        names.offsets
    );
    let fences = list(steps.iter().map(|step| {
        json!([&*step.place.topic, step.place.partition, step.fence.epoch, step.fence.token.to_string()])
    }));
    sqlx::query(&raise)
        .bind(store.group())
        .bind(fences)
        .bind(token.to_string())
        .execute(control.sql())
        .await
        .map_err(|error| Failure::from(error).context("settle"))?;
    control.commit().await?.close().await;
    Ok(steps.iter().map(|step| judge::settled(step, token, found.get(&step.place))).collect())
}

/// Which of these rows another transaction holds now: all or none, since there is one write lock.
pub(super) async fn locked(store: &Sqlite, steps: &[Step]) -> Result<Vec<TopicPartition>, Failure> {
    match store.control().await {
        Ok(control) => {
            control.rollback().await?.close().await;
            Ok(Vec::new())
        }
        Err(failure) if is_busy(&failure) => Ok(steps.iter().map(|step| step.place.clone()).collect()),
        Err(failure) => Err(failure),
    }
}
