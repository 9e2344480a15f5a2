//! What people order: skip, resume, reset. Each is a fenced transaction of its own.
//!
//! Invariant: under the row's lock a verb compares what the person expects, raises epoch and token so that the running owner notices, and writes its event
//! in the same transaction.

use std::time::Duration;

use sqlx::Row;
use uuid::Uuid;

use super::Postgres;
use super::control::Control;
use super::events::{Moved, write_moves};
use crate::error::Failure;
use crate::position::after;
use crate::record::TopicPartition;

/// A verb waits for a transaction under way for this long.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Why a verb did nothing.
#[derive(Debug)]
pub enum VerbError {
    /// The state of things is not what the person expected; the text says what it is.
    Refused(String),
    /// The database failed.
    Failed(Failure),
}

impl std::fmt::Display for VerbError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for VerbError {}

impl From<Failure> for VerbError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<sqlx::Error> for VerbError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Postgres {
    /// Leaves out the record at `expect`, at which the partition stands.
    ///
    /// # Errors
    /// Refused when the partition stands elsewhere or has no row.
    pub async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError> {
        let mut control = self.patient(LOCK_PATIENCE).await?;
        let row = lock(&mut control, self.group(), place).await?;
        expected(place, expect, row.offset)?;
        let moved = Moved { place: place.clone(), old: Some(row.offset), new: Some(after(row.offset)) };
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
        let row = lock(&mut control, self.group(), place).await?;
        let state = row.state.as_deref().unwrap_or("never claimed");
        if !matches!(state, "stopped" | "paused") {
            let offset = row.offset;
            return Err(VerbError::Refused(format!(
                "{place} is neither stopped nor paused: it is {state}, at offset {offset}"
            )));
        }
        let moved = Moved { place: place.clone(), old: Some(row.offset), new: Some(row.offset) };
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

/// A row under a verb's lock.
pub(super) struct Standing {
    pub(super) offset: i64,
    pub(super) state: Option<String>,
}

/// Locks a row; refuses a place that has none.
pub(super) async fn lock(
    control: &mut Control,
    group: &str,
    place: &TopicPartition,
) -> Result<Standing, VerbError> {
    find(control, group, place)
        .await?
        .ok_or_else(|| VerbError::Refused(format!("{place} has no stored offset in group {group}")))
}

/// Locks a row if there is one.
pub(super) async fn find(
    control: &mut Control,
    group: &str,
    place: &TopicPartition,
) -> Result<Option<Standing>, VerbError> {
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

/// Compares what a person expects.
pub(super) fn expected(place: &TopicPartition, expect: i64, stands: i64) -> Result<(), VerbError> {
    if expect == stands {
        return Ok(());
    }
    Err(VerbError::Refused(format!(
        "{place} stands at offset {stands}, not at {expect}; nothing was changed"
    )))
}
