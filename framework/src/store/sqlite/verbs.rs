//! What people order: skip, resume, reset. Each is a fenced transaction of its own.
//!
//! Invariant: under the write lock a verb compares what the person expects, raises epoch and token so that the running owner notices, and writes its event in
//! the same transaction. It needs no more than the database's own lock, so that it works beside a running sink.

use serde_json::json;
use sqlx::Row;
use uuid::Uuid;

use super::control::Control;
use super::events::write_moves;
use super::places::list;
use super::{NOW, Sqlite};
use crate::error::Failure;
use crate::position::StartPolicy;
use crate::record::TopicPartition;
use crate::store::operate::{Moved, Reset, ResetTo, Standing, VerbError};
use crate::store::operate::{reset_all, reset_one, resumed, skipped, standing};

impl Sqlite {
    /// Leaves out the record at `expect`, at which the partition stands.
    ///
    /// # Errors
    /// Refused when the partition stands elsewhere or has no row.
    pub async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError> {
        let mut control = self.patient().await?;
        let row = standing(find(&mut control, self.group(), place).await?, self.group(), place)?;
        let moved = skipped(place, expect, &row)?;
        let names = control.names();
        write_moves(control.sql(), &names, self, "skipped", reason, std::slice::from_ref(&moved)).await?;
        let statement = format!(
            "UPDATE {}
             SET last_offset = ?4,
                 leader_epoch = NULL,
                 owner_epoch = owner_epoch + 1,
                 owner_token = ?5,
                 state = CASE WHEN state = 'paused' THEN state ELSE 'running' END,
                 state_reason = CASE WHEN state = 'paused' THEN state_reason END,
                 state_since = CASE WHEN state IN ('paused', 'running') THEN state_since ELSE {NOW} END,
                 updated_at = {NOW}
             WHERE consumer_group = ?1 AND topic = ?2 AND partition_id = ?3",
            names.offsets
        );
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*place.topic)
            .bind(place.partition)
            .bind(moved.new)
            .bind(Uuid::new_v4().to_string())
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
        let mut control = self.patient().await?;
        let row = standing(find(&mut control, self.group(), place).await?, self.group(), place)?;
        let moved = resumed(place, &row)?;
        let names = control.names();
        let reason = reason.unwrap_or("resumed");
        write_moves(control.sql(), &names, self, "resumed", reason, std::slice::from_ref(&moved)).await?;
        let statement = format!(
            "UPDATE {}
             SET owner_epoch = owner_epoch + 1,
                 owner_token = ?4,
                 state = 'running',
                 state_reason = NULL,
                 state_since = {NOW},
                 updated_at = {NOW}
             WHERE consumer_group = ?1 AND topic = ?2 AND partition_id = ?3",
            names.offsets
        );
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*place.topic)
            .bind(place.partition)
            .bind(Uuid::new_v4().to_string())
            .execute(control.sql())
            .await?;
        control.commit().await?.close().await;
        Ok(moved)
    }

    /// Moves stored offsets to where the caller says, and takes over the identity.
    ///
    /// # Errors
    /// Refused when the expected offset differs, or when one partition is named of a topic that has no record here or does not cover it.
    pub async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError> {
        let mut control = self.patient().await?;
        let moves = match reset.to {
            ResetTo::One { partition, expect, to } => {
                let count = self.retake_topic(&mut control, reset).await?;
                let place = TopicPartition::new(reset.topic.name.clone(), partition);
                let row = find(&mut control, self.group(), &place).await?;
                vec![reset_one(self.group(), &place, expect, to, count, row.as_ref())?]
            }
            ResetTo::All { to, policy } => {
                self.replace_topic(&mut control, reset, to, policy).await?;
                let rows = self.rows_of_topic(&mut control, reset).await?;
                reset_all(reset.topic, to, &rows)
            }
        };
        let names = control.names();
        write_moves(control.sql(), &names, self, "reset", reset.reason, &moves).await?;
        self.move_rows(&mut control, reset, &moves).await?;
        self.delete_rows(&mut control, reset, &moves).await?;
        control.commit().await?.close().await;
        Ok(moves)
    }

    /// The topic's row takes over the id. Answers its recorded count.
    async fn retake_topic(&self, control: &mut Control, reset: &Reset<'_>) -> Result<Option<i32>, Failure> {
        let statement = format!(
            "UPDATE {}
             SET topic_id = NULLIF(?3, '')
             WHERE consumer_group = ?1 AND topic = ?2
             RETURNING partition_count",
            control.names().topics
        );
        Ok(sqlx::query_scalar(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .bind(&*reset.topic.id)
            .fetch_optional(control.sql())
            .await?)
    }

    /// The topic's row takes over id, count and policy.
    async fn replace_topic(
        &self,
        control: &mut Control,
        reset: &Reset<'_>,
        to: &[i64],
        policy: StartPolicy,
    ) -> Result<(), Failure> {
        let statement = format!(
            "INSERT INTO {} AS t (consumer_group, topic, topic_id, partition_count, start_policy)
             VALUES (?1, ?2, NULLIF(?3, ''), ?4, ?5)
             ON CONFLICT (consumer_group, topic) DO UPDATE
             SET topic_id = excluded.topic_id,
                 partition_count = excluded.partition_count,
                 start_policy = excluded.start_policy,
                 resolved_at = {NOW}",
            control.names().topics
        );
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .bind(&*reset.topic.id)
            .bind(i32::try_from(to.len()).unwrap_or(i32::MAX))
            .bind(policy.to_string())
            .execute(control.sql())
            .await?;
        Ok(())
    }

    async fn rows_of_topic(
        &self,
        control: &mut Control,
        reset: &Reset<'_>,
    ) -> Result<Vec<(i32, i64)>, Failure> {
        let statement = format!(
            "SELECT partition_id, last_offset
             FROM {}
             WHERE consumer_group = ?1 AND topic = ?2
             ORDER BY partition_id",
            control.names().offsets
        );
        Ok(sqlx::query_as(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .fetch_all(control.sql())
            .await?)
    }

    async fn move_rows(
        &self,
        control: &mut Control,
        reset: &Reset<'_>,
        moves: &[Moved],
    ) -> Result<(), Failure> {
        let statement = format!(
            "INSERT INTO {} AS o
                 (consumer_group, topic, partition_id, last_offset, owner_epoch, owner_token, cluster_id, topic_id, sink)
             SELECT ?1, ?2, w.value ->> 0, w.value ->> 1, 1, w.value ->> 2, NULLIF(?3, ''), NULLIF(?4, ''), ?5
             FROM json_each(?6) AS w
             WHERE true
             ON CONFLICT (consumer_group, topic, partition_id) DO UPDATE
             SET last_offset = excluded.last_offset,
                 owner_epoch = o.owner_epoch + 1,
                 owner_token = excluded.owner_token,
                 cluster_id = COALESCE(excluded.cluster_id, o.cluster_id),
                 topic_id = excluded.topic_id,
                 sink = excluded.sink,
                 leader_epoch = NULL,
                 record_timestamp = NULL,
                 state = CASE WHEN o.state = 'paused' THEN o.state ELSE 'running' END,
                 state_reason = CASE WHEN o.state = 'paused' THEN o.state_reason END,
                 state_since = CASE WHEN o.state IN ('paused', 'running') THEN o.state_since ELSE {NOW} END,
                 updated_at = {NOW}",
            control.names().offsets
        );
        let targets = list(moves.iter().filter_map(|moved| {
            Some(json!([moved.place.partition, moved.new?, Uuid::new_v4().to_string()]))
        }));
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .bind(reset.cluster_id)
            .bind(&*reset.topic.id)
            .bind(&*reset.topic.target)
            .bind(targets)
            .execute(control.sql())
            .await?;
        Ok(())
    }

    /// Rows of partitions that the topic no longer has.
    async fn delete_rows(
        &self,
        control: &mut Control,
        reset: &Reset<'_>,
        moves: &[Moved],
    ) -> Result<(), Failure> {
        let statement = format!(
            "DELETE FROM {}
             WHERE consumer_group = ?1 AND topic = ?2 AND partition_id IN (SELECT value FROM json_each(?3))",
            control.names().offsets
        );
        let gone = moves.iter().filter(|moved| moved.new.is_none()).map(|moved| moved.place.partition.into());
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .bind(list(gone))
            .execute(control.sql())
            .await?;
        Ok(())
    }
}

/// The row of a place, if there is one.
async fn find(
    control: &mut Control,
    group: &str,
    place: &TopicPartition,
) -> Result<Option<Standing>, Failure> {
    let statement = format!(
        "SELECT last_offset, state
         FROM {}
         WHERE consumer_group = ?1 AND topic = ?2 AND partition_id = ?3",
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
