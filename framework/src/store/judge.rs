//! What a claim and a settle make of the rows that they read under the lock: the decisions, without a database.
//!
//! Invariant: nothing is raised whose identity differs; in a settle, mine is only what carried my fence under the lock, or what this very settle wrote.

use std::collections::HashMap;

use uuid::Uuid;

use crate::error::{Class, Failure};
use crate::record::TopicPartition;
use crate::store::{Claim, Claimed, Fence, Identity, Refusal, Settled, Step, Wanted};

/// A row under its lock.
pub(super) struct Locked {
    pub(super) offset: i64,
    pub(super) fence: Fence,
    pub(super) cluster_id: Option<String>,
    pub(super) topic_id: Option<String>,
    pub(super) sink: Option<String>,
    pub(super) leader_epoch: Option<i32>,
    pub(super) owner: Option<String>,
    pub(super) state: Option<String>,
}

impl Locked {
    /// What of the identity differs. A column without a value, as in a row taken over from the old recipe, is filled by the claim.
    fn differs(&self, identity: &Identity, want: &Wanted) -> Option<Refusal> {
        Refusal::unless_same("cluster", self.cluster_id.as_deref(), &identity.cluster_id)
            .or_else(|| Refusal::unless_same("topic id", self.topic_id.as_deref(), &want.topic.id))
            .or_else(|| Refusal::unless_same("sink", self.sink.as_deref(), &want.topic.target))
            .map(|refusal| Refusal { fence: Some(self.fence), ..refusal })
    }

    fn claimed(self, fence: Fence) -> Claimed {
        Claimed {
            fence,
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            previous: self.fence,
            paused: self.state.as_deref() == Some("paused"),
            owner: self.owner,
        }
    }
}

/// One answer per wanted partition, in order, and the fences to be written for those that are claimed.
pub(super) fn claims<'a>(
    identity: &Identity,
    wanted: &'a [Wanted],
    mut absent: HashMap<TopicPartition, Claim>,
    mut locked: HashMap<TopicPartition, Locked>,
) -> (Vec<Claim>, Vec<(&'a Wanted, Fence)>) {
    let mut claims = Vec::with_capacity(wanted.len());
    let mut raises = Vec::new();
    for want in wanted {
        claims.push(match locked.remove(&want.place) {
            None => absent.remove(&want.place).unwrap_or(Claim::Busy),
            Some(row) => match row.differs(identity, want) {
                Some(refusal) => Claim::Refused(refusal),
                None => {
                    let fence = Fence { epoch: row.fence.epoch + 1, token: Uuid::new_v4() };
                    raises.push((want, fence));
                    Claim::Claimed(row.claimed(fence))
                }
            },
        });
    }
    (claims, raises)
}

/// What it means that a wanted partition has no row, by what is recorded of its topic: partition count and topic id.
///
/// # Errors
/// Transient when the partition is only not registered yet.
pub(super) fn absent(want: &Wanted, count: Option<i32>, topic_id: Option<&str>) -> Result<Claim, Failure> {
    if let Some(refusal) = Refusal::unless_same("topic id", topic_id, &want.topic.id) {
        return Ok(Claim::Refused(refusal));
    }
    if count.is_some_and(|count| want.place.partition < count) {
        return Ok(Claim::Missing);
    }
    let message = format!("{} is not registered yet: its topic has grown or is new", want.place);
    let mut failure = Failure::new(Class::Transient, message);
    failure.session_alive = true;
    Err(failure)
}

/// The verdict of a settle on one step; `found` is the row as it stood under the lock, before anything was raised.
pub(super) fn settled(step: &Step, token: Uuid, found: Option<&(Fence, i64)>) -> Settled {
    let fence = Fence { epoch: step.fence.epoch + 1, token };
    match found {
        Some(&(stored, offset)) if stored == step.fence || stored == fence => Settled::Mine { offset, fence },
        _ => Settled::Fenced,
    }
}

/// How many rows a claim raised must be as many as it locked.
pub(super) fn all_raised(locked: usize, raised: u64) -> Result<(), Failure> {
    if raised == locked as u64 {
        return Ok(());
    }
    Err(Failure::new(Class::Transient, format!("{locked} rows were locked, {raised} raised")))
}
