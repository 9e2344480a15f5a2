//! Settling a transaction in doubt, and looking which rows are held.
//!
//! Invariant: after a settle the old session can change nothing, whatever becomes of it: its fence is no longer the row's. Called again with the same
//! token, it gives the same verdict.

use std::time::Duration;

use sqlx::Row;
use uuid::Uuid;

use super::Postgres;
use super::control::Control;
use super::frozen;
use super::places::{Places, in_order};
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::{Fence, Settled, Step, judge};

/// Our own old backend may take this long to end its transaction before it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// See [`crate::store::Store::settle`]. Waits for the old backend up to the lock timeout; the framework calls again.
pub(super) async fn settle(store: &Postgres, steps: &[Step], token: Uuid) -> Result<Vec<Settled>, Failure> {
    let mut control = store.control().await?;
    let id = control.id();
    let shut = shut(&mut control, store.group(), steps, token);
    let verdicts = frozen::watched(store, id, PATIENCE, shut).await?;
    control.commit().await?.close().await;
    Ok(verdicts)
}

/// Locks the rows in order, raises those that are mine, judges what stands there.
async fn shut(
    control: &mut Control,
    group: &str,
    steps: &[Step],
    token: Uuid,
) -> Result<Vec<Settled>, Failure> {
    let names = control.names();
    let places = Places::of(steps.iter().map(|step| &step.place));
    let lock = format!(
        "SELECT o.topic, o.partition_id, o.owner_epoch, o.owner_token, o.last_offset
         FROM {} AS o
         JOIN UNNEST($2::text[], $3::integer[]) AS w (topic, partition_id)
           ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = $1
         ORDER BY o.topic, o.partition_id
         FOR UPDATE OF o",
        names.offsets
    );
    let rows = sqlx::query(&lock)
        .bind(group)
        .bind(&places.topics)
        .bind(&places.partitions)
        .fetch_all(control.sql())
        .await
        .map_err(|error| Failure::from(error).context("settle"))?;
    let found = in_order(&rows, |row| {
        let fence = Fence { epoch: row.try_get(2)?, token: row.try_get(3)? };
        let offset: i64 = row.try_get(4)?;
        Ok((row.try_get(0)?, row.try_get(1)?, (fence, offset)))
    })?;
    let raise = format!(
        "UPDATE {} AS o
         SET owner_epoch = w.epoch + 1, owner_token = $6, updated_at = CURRENT_TIMESTAMP
         FROM UNNEST($2::text[], $3::integer[], $4::bigint[], $5::uuid[]) AS w (topic, partition_id, epoch, token)
         WHERE o.consumer_group = $1
           AND o.topic = w.topic
           AND o.partition_id = w.partition_id
           AND o.owner_epoch = w.epoch
           AND o.owner_token = w.token",
        names.offsets
    );
    sqlx::query(&raise)
        .bind(group)
        .bind(&places.topics)
        .bind(&places.partitions)
        .bind(steps.iter().map(|step| step.fence.epoch).collect::<Vec<_>>())
        .bind(steps.iter().map(|step| step.fence.token).collect::<Vec<_>>())
        .bind(token)
        .execute(control.sql())
        .await
        .map_err(|error| Failure::from(error).context("settle"))?;
    Ok(steps.iter().map(|step| judge::settled(step, token, found.get(&step.place))).collect())
}

/// Which of these rows another transaction holds now. The share lock of this look lets other looks pass, and is gone when it answers.
pub(super) async fn locked(store: &Postgres, steps: &[Step]) -> Result<Vec<TopicPartition>, Failure> {
    let mut control = store.light().await?;
    let names = control.names();
    let statement = format!(
        "WITH wanted AS (
             SELECT * FROM UNNEST($2::text[], $3::integer[]) AS w (topic, partition_id)),
         free AS (
             SELECT o.topic, o.partition_id
             FROM {0} AS o
             JOIN wanted AS w ON o.topic = w.topic AND o.partition_id = w.partition_id
             WHERE o.consumer_group = $1
             FOR SHARE OF o SKIP LOCKED)
         SELECT o.topic, o.partition_id
         FROM {0} AS o
         JOIN wanted AS w ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = $1
           AND NOT EXISTS (SELECT FROM free AS f WHERE f.topic = o.topic AND f.partition_id = o.partition_id)",
        names.offsets
    );
    let places = Places::of(steps.iter().map(|step| &step.place));
    let rows = sqlx::query(&statement)
        .bind(store.group())
        .bind(&places.topics)
        .bind(&places.partitions)
        .fetch_all(control.sql())
        .await?;
    store.keep(control.rollback().await?);
    let held = in_order(&rows, |row| Ok((row.try_get(0)?, row.try_get(1)?, ())))?;
    Ok(steps.iter().map(|step| &step.place).filter(|place| held.contains_key(place)).cloned().collect())
}
