//! Starting over: the operator's word that takes over cluster, topic id and sink, and moves stored offsets wherever the caller says.
//!
//! Invariant: under the topic's row, then the rows in order, with an event each, in one transaction; whoever owned them is fenced.

use uuid::Uuid;

use super::Postgres;
use super::admin::{LOCK_PATIENCE, find};
use super::control::Control;
use super::events::write_moves;
use crate::error::Failure;
use crate::position::StartPolicy;
use crate::record::TopicPartition;
use crate::store::operate::{Moved, Reset, ResetTo, VerbError, reset_all, reset_one};

impl Postgres {
    /// Moves stored offsets to where the caller says, and takes over the identity.
    ///
    /// # Errors
    /// Refused when the expected offset differs, or when one partition is named of a topic that has no record here or does not cover it.
    pub async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError> {
        let mut control = self.patient(LOCK_PATIENCE).await?;
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

    /// The topic's row takes over the id, also that there is none. Answers its recorded count.
    async fn retake_topic(&self, control: &mut Control, reset: &Reset<'_>) -> Result<Option<i32>, Failure> {
        let statement = format!(
            "UPDATE {}
             SET topic_id = NULLIF($3, '')
             WHERE consumer_group = $1 AND topic = $2
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
             VALUES ($1, $2, NULLIF($3, ''), $4, $5)
             ON CONFLICT (consumer_group, topic) DO UPDATE
             SET topic_id = EXCLUDED.topic_id,
                 partition_count = EXCLUDED.partition_count,
                 start_policy = EXCLUDED.start_policy,
                 resolved_at = CURRENT_TIMESTAMP",
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

    /// Locks all rows of the topic: partition and offset.
    async fn rows_of_topic(
        &self,
        control: &mut Control,
        reset: &Reset<'_>,
    ) -> Result<Vec<(i32, i64)>, Failure> {
        let statement = format!(
            "SELECT partition_id, last_offset
             FROM {}
             WHERE consumer_group = $1 AND topic = $2
             ORDER BY partition_id
             FOR UPDATE",
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
             SELECT $1, $2, w.partition_id, w.to_offset, 1, w.token, NULLIF($3, ''), NULLIF($4, ''), $5
             FROM UNNEST($6::integer[], $7::bigint[], $8::uuid[]) AS w (partition_id, to_offset, token)
             ON CONFLICT (consumer_group, topic, partition_id) DO UPDATE
             SET last_offset = EXCLUDED.last_offset,
                 owner_epoch = o.owner_epoch + 1,
                 owner_token = EXCLUDED.owner_token,
                 cluster_id = COALESCE(EXCLUDED.cluster_id, o.cluster_id),
                 topic_id = EXCLUDED.topic_id,
                 sink = EXCLUDED.sink,
                 leader_epoch = NULL,
                 record_timestamp = NULL,
                 state = CASE WHEN o.state = 'paused' THEN o.state ELSE 'running' END,
                 state_reason = CASE WHEN o.state = 'paused' THEN o.state_reason END,
                 state_since = CASE WHEN o.state IN ('paused', 'running') THEN o.state_since ELSE CURRENT_TIMESTAMP END,
                 updated_at = CURRENT_TIMESTAMP",
            control.names().offsets
        );
        let targets: Vec<(i32, i64)> =
            moves.iter().filter_map(|moved| Some((moved.place.partition, moved.new?))).collect();
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .bind(reset.cluster_id)
            .bind(&*reset.topic.id)
            .bind(&*reset.topic.target)
            .bind(targets.iter().map(|(partition, _)| *partition).collect::<Vec<_>>())
            .bind(targets.iter().map(|(_, to)| *to).collect::<Vec<_>>())
            .bind(targets.iter().map(|_| Uuid::new_v4()).collect::<Vec<_>>())
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
        let gone: Vec<i32> =
            moves.iter().filter(|moved| moved.new.is_none()).map(|moved| moved.place.partition).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let statement = format!(
            "DELETE FROM {} WHERE consumer_group = $1 AND topic = $2 AND partition_id = ANY ($3)",
            control.names().offsets
        );
        sqlx::query(&statement)
            .bind(self.group())
            .bind(&*reset.topic.name)
            .bind(gone)
            .execute(control.sql())
            .await?;
        Ok(())
    }
}
