//! First rows: written once for all partitions of a topic, under its row in `oncesink_topics`.
//!
//! Invariant: a row for a partition is only ever written together with a count that covers it, so that a row missing below the count is an impossible
//! position and never a fresh start.

use std::sync::Arc;

use sqlx::Row;

use super::Postgres;
use super::control::Control;
use crate::error::Failure;
use crate::store::bookkeeping::partition_count;
use crate::store::{Identity, Starts};

/// The recorded counts, in the order asked for.
pub(super) async fn recorded(store: &Postgres, topics: &[Arc<str>]) -> Result<Vec<Option<i32>>, Failure> {
    let mut control = store.light().await?;
    let statement = format!(
        "SELECT t.partition_count
         FROM UNNEST($2::text[]) WITH ORDINALITY AS w (topic, place)
         LEFT JOIN {} AS t ON t.consumer_group = $1 AND t.topic = w.topic
         ORDER BY w.place",
        control.names().topics
    );
    let topics: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
    let counts =
        sqlx::query_scalar(&statement).bind(store.group()).bind(topics).fetch_all(control.sql()).await?;
    store.keep(control.commit().await?);
    Ok(counts)
}

/// See [`crate::store::Store::register`].
pub(super) async fn register(store: &Postgres, identity: &Identity, starts: &Starts) -> Result<(), Failure> {
    store.same_group(&identity.group)?;
    let mut control = store.light().await?;
    if insert_topic(&mut control, identity, starts).await? {
        insert_rows(&mut control, identity, starts, 0, &starts.first).await?;
    } else {
        grow(&mut control, identity, starts).await?;
    }
    store.keep(control.commit().await?);
    Ok(())
}

/// Answers whether this is the first claim of the topic. A racing first claim waits here for the other one's commit.
async fn insert_topic(control: &mut Control, identity: &Identity, starts: &Starts) -> Result<bool, Failure> {
    let statement = format!(
        "INSERT INTO {} (consumer_group, topic, topic_id, partition_count, start_policy)
         VALUES ($1, $2, NULLIF($3, ''), $4, $5)
         ON CONFLICT (consumer_group, topic) DO NOTHING",
        control.names().topics
    );
    let inserted = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(&*starts.topic.name)
        .bind(&*starts.topic.id)
        .bind(partition_count(&starts.first)?)
        .bind(starts.policy.to_string())
        .execute(control.sql())
        .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Adds rows for partitions beyond the recorded count. A topic with another id than the recorded one, or with none now, is left alone: its claim is refused.
async fn grow(control: &mut Control, identity: &Identity, starts: &Starts) -> Result<(), Failure> {
    let names = control.names();
    let lock = format!(
        "SELECT topic_id, partition_count
         FROM {}
         WHERE consumer_group = $1 AND topic = $2
         FOR UPDATE",
        names.topics
    );
    let row =
        sqlx::query(&lock).bind(&*identity.group).bind(&*starts.topic.name).fetch_one(control.sql()).await?;
    let (known, recorded): (Option<String>, i32) = (row.try_get(0)?, row.try_get(1)?);
    let here = &*starts.topic.id;
    if known.as_deref().is_some_and(|known| known != here) {
        return Ok(());
    }
    let new = starts.beginning.get(recorded as usize..).unwrap_or_default();
    if new.is_empty() && (known.is_some() || here.is_empty()) {
        return Ok(());
    }
    insert_rows(control, identity, starts, recorded, new).await?;
    let update = format!(
        "UPDATE {}
         SET topic_id = COALESCE(topic_id, NULLIF($3, '')),
             partition_count = $4,
             resolved_at = CURRENT_TIMESTAMP
         WHERE consumer_group = $1 AND topic = $2",
        names.topics
    );
    sqlx::query(&update)
        .bind(&*identity.group)
        .bind(&*starts.topic.name)
        .bind(here)
        .bind(recorded.saturating_add(partition_count(new)?))
        .execute(control.sql())
        .await?;
    Ok(())
}

/// Rows for the partitions from `first` on; those that exist, from the old recipe perhaps, are never touched.
async fn insert_rows(
    control: &mut Control,
    identity: &Identity,
    starts: &Starts,
    first: i32,
    offsets: &[i64],
) -> Result<(), Failure> {
    let statement = format!(
        "INSERT INTO {} (consumer_group, topic, partition_id, last_offset, cluster_id, topic_id, sink)
         SELECT $1, $2, $3 + w.place::integer - 1, w.start, NULLIF($5, ''), NULLIF($6, ''), $7
         FROM UNNEST($4::bigint[]) WITH ORDINALITY AS w (start, place)
         ORDER BY w.place
         ON CONFLICT (consumer_group, topic, partition_id) DO NOTHING",
        control.names().offsets
    );
    sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(&*starts.topic.name)
        .bind(first)
        .bind(offsets)
        .bind(&*identity.cluster_id)
        .bind(&*starts.topic.id)
        .bind(&*starts.topic.target)
        .execute(control.sql())
        .await?;
    Ok(())
}
