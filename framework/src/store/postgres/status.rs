//! The rows as people see them.

use sqlx::Row;

use super::Postgres;
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::operate::StatusRow;

impl Postgres {
    /// All rows of a group, or of all groups in the table, in order.
    ///
    /// # Errors
    /// As the driver's, by class.
    pub async fn status(&self, group: Option<&str>) -> Result<Vec<StatusRow>, Failure> {
        let mut control = self.light().await?;
        let names = control.names();
        let statement = format!(
            "SELECT consumer_group, topic, partition_id, last_offset, owner, owner_epoch, sink, state, state_reason,
                    (EXTRACT(EPOCH FROM state_since) * 1000)::bigint AS state_since,
                    (EXTRACT(EPOCH FROM record_timestamp) * 1000)::bigint AS record_timestamp,
                    (EXTRACT(EPOCH FROM updated_at) * 1000)::bigint AS updated_at,
                    (SELECT count(*) FROM {} AS d
                     WHERE d.consumer_group = o.consumer_group AND d.topic = o.topic AND d.partition_id = o.partition_id
                       AND d.status = 'new') AS new_dead_letters
             FROM {} AS o
             WHERE $1::text IS NULL OR consumer_group = $1
             ORDER BY consumer_group, topic, partition_id",
            names.dead_letters, names.offsets
        );
        let rows = sqlx::query(&statement).bind(group).fetch_all(control.sql()).await?;
        self.keep(control.commit().await?);
        rows.iter()
            .map(|row| {
                Ok(StatusRow {
                    group: row.try_get("consumer_group")?,
                    place: TopicPartition::new(
                        row.try_get::<String, _>("topic")?,
                        row.try_get("partition_id")?,
                    ),
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
