//! Claims: the row lock, the comparison under it, the new epoch and token.
//!
//! Invariant: nothing is raised before the identity was compared under the row's lock, and every position to read from comes out of here.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Postgres;
use super::control::Control;
use super::frozen;
use super::places::{Places, in_order};
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::judge::{self, Locked};
use crate::store::{Claim, Fence, Identity, Wanted};

/// A session that has been in its transaction for this long while a claim waits for it is taken for frozen, once the framework says that it waited long enough.
const FROZEN_AFTER: Duration = Duration::from_secs(1);

/// Claims all rows that are free.
pub(super) async fn claim(
    store: &Postgres,
    identity: &Identity,
    wanted: &[Wanted],
) -> Result<Vec<Claim>, Failure> {
    store.same_group(&identity.group)?;
    let mut control = store.control().await?;
    let absent = absent(&mut control, identity, wanted).await?;
    let locked = lock(&mut control, identity, wanted, "SKIP LOCKED").await?;
    finish(control, identity, wanted, absent, locked).await
}

/// Claims one row, waiting for its lock.
pub(super) async fn claim_waiting(
    store: &Postgres,
    identity: &Identity,
    wanted: &Wanted,
    end_frozen: bool,
) -> Result<Claim, Failure> {
    store.same_group(&identity.group)?;
    let wanted = std::slice::from_ref(wanted);
    let mut control = store.control().await?;
    let absent = absent(&mut control, identity, wanted).await?;
    let id = control.id();
    let waiting = lock(&mut control, identity, wanted, "");
    let locked =
        if end_frozen { frozen::watched(store, id, FROZEN_AFTER, waiting).await } else { waiting.await };
    let locked = match locked {
        Err(failure) if failure.sql_state.as_deref() == Some("55P03") => return Ok(Claim::Busy),
        other => other?,
    };
    let claims = finish(control, identity, wanted, absent, locked).await?;
    claims.into_iter().next().ok_or_else(|| Failure::fatal("a claim of one partition has no answer"))
}

/// Compares, raises, commits.
async fn finish(
    mut control: Control,
    identity: &Identity,
    wanted: &[Wanted],
    absent: HashMap<TopicPartition, Claim>,
    locked: HashMap<TopicPartition, Locked>,
) -> Result<Vec<Claim>, Failure> {
    let (claims, raises) = judge::claims(identity, wanted, absent, locked);
    if raises.is_empty() {
        control.rollback().await?;
        return Ok(claims);
    }
    raise(&mut control, identity, &raises).await?;
    control.commit().await?;
    Ok(claims)
}

/// Wanted partitions without a row, and what that means. Read in one snapshot with the recorded count, before the lock: a row that comes later is found there.
async fn absent(
    control: &mut Control,
    identity: &Identity,
    wanted: &[Wanted],
) -> Result<HashMap<TopicPartition, Claim>, Failure> {
    let names = control.names();
    let statement = format!(
        "SELECT w.topic, w.partition_id, t.partition_count, t.topic_id
         FROM UNNEST($2::text[], $3::integer[]) AS w (topic, partition_id)
         LEFT JOIN {} AS t ON t.consumer_group = $1 AND t.topic = w.topic
         WHERE NOT EXISTS (
             SELECT FROM {} AS o
             WHERE o.consumer_group = $1 AND o.topic = w.topic AND o.partition_id = w.partition_id)",
        names.topics, names.offsets
    );
    let places = Places::of(wanted.iter().map(|want| &want.place));
    let rows = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(&places.topics)
        .bind(&places.partitions)
        .fetch_all(control.sql())
        .await?;
    let recorded = in_order(&rows, |row| {
        let recorded: (Option<i32>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        Ok((row.try_get(0)?, row.try_get(1)?, recorded))
    })?;
    let mut absent = HashMap::new();
    for want in wanted {
        let Some((count, topic_id)) = recorded.get(&want.place) else { continue };
        absent.insert(want.place.clone(), judge::absent(want, *count, topic_id.as_deref())?);
    }
    Ok(absent)
}

fn read(row: &PgRow) -> Result<Locked, sqlx::Error> {
    Ok(Locked {
        offset: row.try_get("last_offset")?,
        fence: Fence { epoch: row.try_get("owner_epoch")?, token: row.try_get("owner_token")? },
        cluster_id: row.try_get("cluster_id")?,
        topic_id: row.try_get("topic_id")?,
        sink: row.try_get("sink")?,
        leader_epoch: row.try_get("leader_epoch")?,
        owner: row.try_get("owner")?,
        state: row.try_get("state")?,
    })
}

/// Locks the wanted rows in the order in which rows are locked everywhere.
async fn lock(
    control: &mut Control,
    identity: &Identity,
    wanted: &[Wanted],
    waiting: &str,
) -> Result<HashMap<TopicPartition, Locked>, Failure> {
    let names = control.names();
    let statement = format!(
        "SELECT o.topic, o.partition_id, o.last_offset, o.owner_epoch, o.owner_token, o.cluster_id, o.topic_id, o.sink, o.leader_epoch, o.owner, o.state
         FROM {} AS o
         JOIN UNNEST($2::text[], $3::integer[]) AS w (topic, partition_id)
           ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = $1
         ORDER BY o.topic, o.partition_id
         FOR UPDATE OF o {waiting}",
        names.offsets
    );
    let places = Places::of(wanted.iter().map(|want| &want.place));
    let rows = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(&places.topics)
        .bind(&places.partitions)
        .fetch_all(control.sql())
        .await?;
    in_order(&rows, |row| Ok((row.try_get(0)?, row.try_get(1)?, read(row)?)))
}

/// Writes the new fences and fills what the identity lacked. A pause, ordered by a person, stays.
async fn raise(
    control: &mut Control,
    identity: &Identity,
    raises: &[(&Wanted, Fence)],
) -> Result<(), Failure> {
    let names = control.names();
    let statement = format!(
        "UPDATE {} AS o
         SET owner_epoch = w.epoch,
             owner_token = w.token,
             owner = $8,
             cluster_id = COALESCE(NULLIF($9, ''), o.cluster_id),
             topic_id = COALESCE(NULLIF(w.topic_id, ''), o.topic_id),
             sink = w.sink,
             state = CASE WHEN o.state = 'paused' THEN o.state ELSE 'running' END,
             state_reason = CASE WHEN o.state = 'paused' THEN o.state_reason END,
             state_since = CASE WHEN o.state IN ('paused', 'running') THEN o.state_since ELSE CURRENT_TIMESTAMP END,
             updated_at = CURRENT_TIMESTAMP
         FROM UNNEST($2::text[], $3::integer[], $4::bigint[], $5::uuid[], $6::text[], $7::text[])
              AS w (topic, partition_id, epoch, token, topic_id, sink)
         WHERE o.consumer_group = $1 AND o.topic = w.topic AND o.partition_id = w.partition_id",
        names.offsets
    );
    let places = Places::of(raises.iter().map(|(want, _)| &want.place));
    let done = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(&places.topics)
        .bind(&places.partitions)
        .bind(raises.iter().map(|(_, fence)| fence.epoch).collect::<Vec<_>>())
        .bind(raises.iter().map(|(_, fence)| fence.token).collect::<Vec<_>>())
        .bind(raises.iter().map(|(want, _)| &*want.topic.id).collect::<Vec<&str>>())
        .bind(raises.iter().map(|(want, _)| &*want.topic.target).collect::<Vec<&str>>())
        .bind(&*identity.owner)
        .bind(&*identity.cluster_id)
        .execute(control.sql())
        .await?;
    judge::all_raised(raises.len(), done.rows_affected())
}
