//! What people order: skip, resume, reset. Each is a fenced transaction of its own.
//!
//! Invariant: under the row's lock a verb compares what the person expects, raises epoch and token so that the running owner notices, and writes its event
//! in the same transaction.

use std::time::Duration;

use sqlx::Row;
use uuid::Uuid;

use super::Postgres;
use super::control::Control;
use super::events::write_moves;
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::operate::{Moved, Standing, VerbError, resumed, skipped, standing};

/// A verb waits for a transaction under way for this long.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(10);

impl Postgres {
    /// Leaves out the record at `expect`, at which the partition stands.
    ///
    /// # Errors
    /// Refused when the partition stands elsewhere or has no row.
    pub async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError> {
        let mut control = self.patient(LOCK_PATIENCE).await?;
        let row = standing(find(&mut control, self.group(), place).await?, self.group(), place)?;
        let moved = skipped(place, expect, &row)?;
        let names = control.names();
        write_moves(control.sql(), &names, self, "skipped", reason, std::slice::from_ref(&moved)).await?;
        let statement = format!(
            "UPDATE {}
             SET last_offset = $4,
                 leader_epoch = NULL,
                 owner_epoch = owner_epoch + 1,
                 owner_token = $5,
                 {RUNNING},
                 updated_at = CURRENT_TIMESTAMP
             WHERE consumer_group = $1 AND topic = $2 AND partition_id = $3",
            names.offsets
        );
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*place.topic)
            .bind(place.partition)
            .bind(moved.new)
            .bind(Uuid::new_v4())
            .execute(control.sql())
            .await?;
        control.commit().await?.close().await;
        Ok(moved)
    }

    /// Ends a stop or a pause: the partition is tried again from where it stands.
    ///
    /// # Errors
    /// Refused when the partition is neither stopped nor paused, or has no row.
    pub async fn resume(&self, place: &TopicPartition, reason: Option<&str>) -> Result<Moved, VerbError> {
        let mut control = self.patient(LOCK_PATIENCE).await?;
        let row = standing(find(&mut control, self.group(), place).await?, self.group(), place)?;
        let moved = resumed(place, &row)?;
        let names = control.names();
        let reason = reason.unwrap_or("resumed");
        write_moves(control.sql(), &names, self, "resumed", reason, std::slice::from_ref(&moved)).await?;
        let statement = format!(
            "UPDATE {}
             SET owner_epoch = owner_epoch + 1,
                 owner_token = $4,
                 state = 'running',
                 state_reason = NULL,
                 state_since = CURRENT_TIMESTAMP,
                 updated_at = CURRENT_TIMESTAMP
             WHERE consumer_group = $1 AND topic = $2 AND partition_id = $3",
            names.offsets
        );
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*place.topic)
            .bind(place.partition)
            .bind(Uuid::new_v4())
            .execute(control.sql())
            .await?;
        control.commit().await?.close().await;
        Ok(moved)
    }
}

/// A stop ends with the verb; a pause stays until a person resumes.
pub(super) const RUNNING: &str = "
    state = CASE WHEN state = 'paused' THEN state ELSE 'running' END,
    state_reason = CASE WHEN state = 'paused' THEN state_reason END,
    state_since = CASE WHEN state IN ('paused', 'running') THEN state_since ELSE CURRENT_TIMESTAMP END";

/// Locks a row if there is one.
pub(super) async fn find(
    control: &mut Control,
    group: &str,
    place: &TopicPartition,
) -> Result<Option<Standing>, Failure> {
    let statement = format!(
        "SELECT last_offset, state
         FROM {}
         WHERE consumer_group = $1 AND topic = $2 AND partition_id = $3
         FOR UPDATE",
        control.names().offsets
    );
    let row = sqlx::query(&statement)
        .bind(group)
        .bind(&*place.topic)
        .bind(place.partition)
        .fetch_optional(control.sql())
        .await?;
    match row {
        None => Ok(None),
        Some(row) => Ok(Some(Standing { offset: row.try_get(0)?, state: row.try_get(1)? })),
    }
}
