//! Claims: under the file's write lock rows are read, compared, and given a new epoch and token.
//!
//! Invariant: nothing is raised before the identity was compared under the lock, and every position to read from comes out of here. The lock waits for a
//! transaction under way, so that its outcome is what is read.

use std::collections::HashMap;

use serde_json::json;
use sqlx::Row;

use super::control::Control;
use super::places::{PLACES, in_order, list, no_answer, places, token};
use super::{NOW, Sqlite, is_busy};
use crate::error::Failure;
use crate::record::TopicPartition;
use crate::store::judge::{self, Locked};
use crate::store::{Claim, Fence, Identity, Wanted};

/// Claims all rows, or none while somebody else holds the write lock.
pub(super) async fn claim(
    store: &Sqlite,
    identity: &Identity,
    wanted: &[Wanted],
) -> Result<Vec<Claim>, Failure> {
    store.enter(&identity.group)?;
    let mut control = match store.control().await {
        Ok(control) => control,
        Err(failure) if is_busy(&failure) => return Ok(vec![Claim::Busy; wanted.len()]),
        Err(failure) => return Err(failure),
    };
    let absent = absent(&mut control, identity, wanted).await?;
    let locked = locked(&mut control, identity, wanted).await?;
    let (claims, raises) = judge::claims(identity, wanted, absent, locked);
    if raises.is_empty() {
        control.rollback().await?.close().await;
        return Ok(claims);
    }
    raise(&mut control, identity, &raises).await?;
    control.commit().await?.close().await;
    Ok(claims)
}

/// Claims one row. A holder of the write lock that does not move is named; it cannot be ended from here.
pub(super) async fn claim_waiting(
    store: &Sqlite,
    identity: &Identity,
    wanted: &Wanted,
    name_holder: bool,
) -> Result<Claim, Failure> {
    let claims = claim(store, identity, std::slice::from_ref(wanted)).await?;
    let claim = claims.into_iter().next().ok_or_else(no_answer)?;
    if name_holder && claim == Claim::Busy {
        store.name_holder();
    }
    Ok(claim)
}

/// Wanted partitions without a row, and what that means.
async fn absent(
    control: &mut Control,
    identity: &Identity,
    wanted: &[Wanted],
) -> Result<HashMap<TopicPartition, Claim>, Failure> {
    let names = control.names();
    let statement = format!(
        "SELECT w.topic, w.partition_id, t.partition_count, t.topic_id
         FROM {PLACES}
         LEFT JOIN {} AS t ON t.consumer_group = ?1 AND t.topic = w.topic
         WHERE NOT EXISTS (
             SELECT 1 FROM {} AS o
             WHERE o.consumer_group = ?1 AND o.topic = w.topic AND o.partition_id = w.partition_id)",
        names.topics, names.offsets
    );
    let rows = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(places(wanted.iter().map(|want| &want.place)))
        .fetch_all(control.sql())
        .await?;
    let recorded = in_order(&rows, |row| {
        let recorded: (Option<i32>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        Ok(recorded)
    })?;
    let mut absent = HashMap::new();
    for want in wanted {
        let Some((count, topic_id)) = recorded.get(&want.place) else { continue };
        absent.insert(want.place.clone(), judge::absent(want, *count, topic_id.as_deref())?);
    }
    Ok(absent)
}

async fn locked(
    control: &mut Control,
    identity: &Identity,
    wanted: &[Wanted],
) -> Result<HashMap<TopicPartition, Locked>, Failure> {
    let statement = format!(
        "SELECT o.topic, o.partition_id, o.last_offset, o.owner_epoch, o.owner_token, o.cluster_id, o.topic_id, o.sink, o.leader_epoch, o.owner, o.state
         FROM {PLACES}
         JOIN {} AS o ON o.topic = w.topic AND o.partition_id = w.partition_id
         WHERE o.consumer_group = ?1",
        control.names().offsets
    );
    let rows = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(places(wanted.iter().map(|want| &want.place)))
        .fetch_all(control.sql())
        .await?;
    in_order(&rows, |row| {
        Ok(Locked {
            offset: row.try_get(2)?,
            fence: Fence { epoch: row.try_get(3)?, token: token(row, 4)? },
            cluster_id: row.try_get(5)?,
            topic_id: row.try_get(6)?,
            sink: row.try_get(7)?,
            leader_epoch: row.try_get(8)?,
            owner: row.try_get(9)?,
            state: row.try_get(10)?,
        })
    })
}

/// Writes the new fences and fills what the identity lacked. A pause, ordered by a person, stays.
async fn raise(
    control: &mut Control,
    identity: &Identity,
    raises: &[(&Wanted, Fence)],
) -> Result<(), Failure> {
    let statement = format!(
        "UPDATE {} AS o
         SET owner_epoch = w.epoch,
             owner_token = w.token,
             owner = ?3,
             cluster_id = COALESCE(NULLIF(?4, ''), o.cluster_id),
             topic_id = COALESCE(NULLIF(w.topic_id, ''), o.topic_id),
             sink = w.sink,
             state = CASE WHEN o.state = 'paused' THEN o.state ELSE 'running' END,
             state_reason = CASE WHEN o.state = 'paused' THEN o.state_reason END,
             state_since = CASE WHEN o.state IN ('paused', 'running') THEN o.state_since ELSE {NOW} END,
             updated_at = {NOW}
         FROM (SELECT value ->> 0 AS topic, value ->> 1 AS partition_id, value ->> 2 AS epoch, value ->> 3 AS token,
                      value ->> 4 AS topic_id, value ->> 5 AS sink
               FROM json_each(?2)) AS w
         WHERE o.consumer_group = ?1 AND o.topic = w.topic AND o.partition_id = w.partition_id",
        control.names().offsets
    );
    let rows = list(raises.iter().map(|(want, fence)| {
        json!([
            &*want.place.topic,
            want.place.partition,
            fence.epoch,
            fence.token.to_string(),
            &*want.topic.id,
            &*want.topic.target,
        ])
    }));
    let done = sqlx::query(&statement)
        .bind(&*identity.group)
        .bind(rows)
        .bind(&*identity.owner)
        .bind(&*identity.cluster_id)
        .execute(control.sql())
        .await?;
    judge::all_raised(raises.len(), done.rows_affected())
}
