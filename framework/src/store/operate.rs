//! What people order of a store and what it answers, the same for every database: skip, resume, reset, status, checks before a start, adoption.
//!
//! Invariant: a verb that is refused has changed nothing, and its refusal says what stands there.

use std::fmt;

use crate::error::Failure;
use crate::position::{StartPolicy, after};
use crate::record::TopicPartition;
use crate::store::TopicIdentity;

/// What a verb did to a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The partition.
    pub place: TopicPartition,
    /// Stored offset before; none when there was no row.
    pub old: Option<i64>,
    /// Stored offset after; none when the row is gone.
    pub new: Option<i64>,
}

/// A stored offset with everything beside it. Times are milliseconds since the epoch by the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRow {
    /// Kafka group.
    pub group: String,
    /// The partition.
    pub place: TopicPartition,
    /// Next offset to read.
    pub offset: i64,
    /// Who claimed it last.
    pub owner: Option<String>,
    /// Raised by every claim, settle and verb.
    pub epoch: i64,
    /// The sink's name and its target.
    pub sink: Option<String>,
    /// `running`, `stopped`, `paused` and their like; none before the first claim.
    pub state: Option<String>,
    /// Why it is in that state.
    pub state_reason: Option<String>,
    /// Since when.
    pub state_since: Option<i64>,
    /// Timestamp of the last record passed over.
    pub record_timestamp: Option<i64>,
    /// When the row was last written.
    pub updated_at: i64,
    /// Dead letters of the partition that nobody has dealt with yet.
    pub new_dead_letters: i64,
}

/// What the checks before a start found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preflight {
    /// The version of the server or the library, as it tells it.
    pub server_version: String,
    /// The table of the offsets, for people.
    pub offsets: String,
    /// Whom this store acts as; none where a database knows no roles.
    pub role: Option<String>,
    /// How this store's sessions are protected, for people: `TLSv1.3`, `not encrypted`, `local socket`; none where there is no connection to protect.
    pub encryption: Option<String>,
    /// What must be mended before a start, each naming the object and what helps. Empty when all is well.
    pub problems: Vec<String>,
}

/// Why a verb did nothing.
#[derive(Debug)]
pub enum VerbError {
    /// The state of things is not what the person expected; the text says what it is.
    Refused(String),
    /// The database failed.
    Failed(Failure),
}

impl fmt::Display for VerbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// What `reset` does.
#[derive(Clone, Debug)]
pub struct Reset<'a> {
    /// The topic as the brokers and the configuration know it now.
    pub topic: &'a TopicIdentity,
    /// The cluster's id.
    pub cluster_id: &'a str,
    /// Which partitions, and where to.
    pub to: ResetTo<'a>,
    /// For people.
    pub reason: &'a str,
}

/// Which partitions, and where to.
#[derive(Clone, Debug)]
pub enum ResetTo<'a> {
    /// One partition below the recorded count.
    One {
        /// Its number.
        partition: i32,
        /// Where it must stand, if the person said so.
        expect: Option<i64>,
        /// Next offset to read.
        to: i64,
    },
    /// All partitions that the topic has now, by number; rows of others go.
    All {
        /// Next offsets to read.
        to: &'a [i64],
        /// By which they were resolved.
        policy: StartPolicy,
    },
}

/// What the offsets of a table of the three-column recipe mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The next offset to read, as here.
    Next,
    /// The last offset that was processed.
    Processed,
}

impl Meaning {
    /// By how much a stored number falls short of the next offset to read.
    pub(super) fn shortfall(self) -> i64 {
        match self {
            Self::Next => 0,
            Self::Processed => after(0),
        }
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Next => "their offset was the next to read",
            Self::Processed => "their offset was the last processed",
        })
    }
}

/// A row as a verb finds it under its lock.
pub(super) struct Standing {
    pub(super) offset: i64,
    pub(super) state: Option<String>,
}

/// A place without a row is refused.
pub(super) fn standing(
    found: Option<Standing>,
    group: &str,
    place: &TopicPartition,
) -> Result<Standing, VerbError> {
    found.ok_or_else(|| VerbError::Refused(format!("{place} has no stored offset in group {group}")))
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

/// `skip`: past the one record at which the partition stands.
pub(super) fn skipped(place: &TopicPartition, expect: i64, row: &Standing) -> Result<Moved, VerbError> {
    expected(place, expect, row.offset)?;
    Ok(Moved { place: place.clone(), old: Some(row.offset), new: Some(after(row.offset)) })
}

/// `resume`: only what is stopped or paused.
pub(super) fn resumed(place: &TopicPartition, row: &Standing) -> Result<Moved, VerbError> {
    let state = row.state.as_deref().unwrap_or("never claimed");
    if !matches!(state, "stopped" | "paused") {
        let offset = row.offset;
        return Err(VerbError::Refused(format!(
            "{place} is neither stopped nor paused: it is {state}, at offset {offset}"
        )));
    }
    Ok(Moved { place: place.clone(), old: Some(row.offset), new: Some(row.offset) })
}

/// `reset` of one partition; `count` is the topic's recorded one, `row` what stands there.
pub(super) fn reset_one(
    group: &str,
    place: &TopicPartition,
    expect: Option<i64>,
    to: i64,
    count: Option<i32>,
    row: Option<&Standing>,
) -> Result<Moved, VerbError> {
    let topic = &place.topic;
    match count {
        Some(count) if (0..count).contains(&place.partition) => {}
        Some(count) => {
            return Err(VerbError::Refused(format!(
                "{topic} is recorded with {count} partitions: {place} has no start of its own yet"
            )));
        }
        None => return Err(VerbError::Refused(format!("{topic} was never claimed in group {group}"))),
    }
    match (expect, row) {
        (Some(expect), Some(row)) => expected(place, expect, row.offset)?,
        (Some(_), None) => return Err(VerbError::Refused(format!("{place} has no stored offset"))),
        (None, _) => {}
    }
    Ok(Moved { place: place.clone(), old: row.map(|row| row.offset), new: Some(to) })
}

/// `reset` of a topic: the partitions that it has now with their targets, then rows of partitions that it no longer has. `rows` are partition and offset.
pub(super) fn reset_all(topic: &TopicIdentity, to: &[i64], rows: &[(i32, i64)]) -> Vec<Moved> {
    let place = |partition| TopicPartition::new(topic.name.clone(), partition);
    let mut moves: Vec<Moved> =
        (0..).zip(to).map(|(p, to)| Moved { place: place(p), old: None, new: Some(*to) }).collect();
    for &(partition, offset) in rows {
        match usize::try_from(partition).ok().and_then(|partition| moves.get_mut(partition)) {
            Some(moved) if moved.place.partition == partition => moved.old = Some(offset),
            _ => moves.push(Moved { place: place(partition), old: Some(offset), new: None }),
        }
    }
    moves
}
