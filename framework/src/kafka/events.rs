//! What passes between the consumer thread and the supervisor: two closed enums.
//!
//! Both ways keep their order, and every command about partitions is answered by an event that names it.

use std::time::Duration;

use super::ErrorCode;
use crate::record::TopicPartition;

/// The number of a claim, given by the supervisor and handed back unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimNumber(pub u64);

/// One time of holding partitions, from [`Event::Assigned`] to [`Event::Revoked`] or [`Event::Lost`]. A start names the tenure in which it was
/// claimed: one that crossed a loss and a new assignment on its way is refused, since its offset is of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenure(pub u64);

/// Everything that leaves the consumer thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The group gave us partitions. Already answered with an empty incremental assign: the claims are in no hurry. Never empty.
    Assigned {
        /// What was given.
        places: Vec<TopicPartition>,
        /// To be named by each [`Start`].
        tenure: Tenure,
    },
    /// The group has us as a member and changed nothing about what we hold, which may be nothing.
    Joined,
    /// The group wants partitions back and waits for [`Command::Unassign`] with `revoke` and at least these places. Never empty. All partitions of
    /// this consumer stand still until then.
    Revoked(Vec<TopicPartition>),
    /// Partitions that are gone: already unassigned, nothing to answer. Also sent when a revoke was not answered in time and the thread did it.
    Lost(Vec<TopicPartition>),
    /// A start was carried out; fetching has begun.
    Positioned {
        /// The partition.
        place: TopicPartition,
        /// As in the start.
        claim: ClaimNumber,
    },
    /// A start was not carried out and the partition is not fetched; it never begins at a default instead.
    Refused {
        /// The partition.
        place: TopicPartition,
        /// As in the start.
        claim: ClaimNumber,
        /// Why, for people.
        reason: String,
    },
    /// [`Command::Unassign`] was carried out.
    Unassigned {
        /// As in the command, whether they were assigned or not.
        places: Vec<TopicPartition>,
    },
    /// A record came on the consumer's own queue and reaches no writer: librdkafka lost a forward. Its partition must be read again from a claimed offset.
    Stray {
        /// The partition.
        place: TopicPartition,
        /// The record's offset.
        offset: i64,
    },
    /// For information: a broker out of reach, a topic not yet known. The client goes on by itself.
    Error {
        /// librdkafka's code.
        code: ErrorCode,
        /// librdkafka's words.
        reason: String,
    },
    /// The client is dead. No revoke follows and everything counts as lost; once the drain queues are dropped the thread ends with
    /// [`Event::Stopped`].
    Fatal {
        /// What killed it.
        kind: FatalKind,
        /// librdkafka's words.
        reason: String,
    },
    /// The thread has closed the client and ends.
    Stopped {
        /// False when the deadline passed first: the client was left behind, for the process to take along when it ends.
        clean: bool,
    },
}

/// Why a client is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FatalKind {
    /// Another member has our `group.instance.id` and pushed us out (classic protocol).
    FencedInstanceId,
    /// Another member has our `group.instance.id` and the group keeps it until its session ends (KIP-848).
    UnreleasedInstanceId,
    /// Anything else, by librdkafka's name.
    Other(String),
}

/// What the consumer thread is asked to do. Carried out in order and within milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Fetch these partitions from these offsets. Each is answered by [`Event::Positioned`] or [`Event::Refused`]. Held back while a revoke waits
    /// for its answer, and carried out right after it.
    Assign(Vec<Start>),
    /// Stop fetching these partitions, those of them that are assigned; answered by [`Event::Unassigned`].
    ///
    /// A plain unassign would pass for the answer to a waiting revoke, so it is held back as well: answer the revoke first.
    Unassign {
        /// The partitions. For a revoke, at least all that [`Event::Revoked`] named.
        places: Vec<TopicPartition>,
        /// Whether this answers [`Event::Revoked`].
        revoke: bool,
    },
    /// Read these topics: all of them, and at least those of before. Kept back while the group is changing, and until we are its member, so that librdkafka
    /// modifies the subscription in place and what is assigned flows on.
    Subscribe(Vec<String>),
    /// Unassign everything, wait until all drain queues are dropped, leave the group and close.
    Stop {
        /// How long that may take in all.
        deadline: Duration,
    },
}

/// Where a partition begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The partition.
    pub place: TopicPartition,
    /// The tenure in which it was claimed.
    pub tenure: Tenure,
    /// Handed back in the answer.
    pub claim: ClaimNumber,
    /// Next offset to read; absolute, never negative.
    pub offset: i64,
    /// Leader epoch of exactly this offset; with it a truncated log is noticed at the start. None when unknown: an epoch that belongs to another
    /// offset raises a false alarm.
    pub leader_epoch: Option<i32>,
    /// Index of the drain queue that gets the records.
    pub writer: usize,
}
