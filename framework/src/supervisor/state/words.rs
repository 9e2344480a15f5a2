//! The machine's words: where a partition can stand, what can happen, what the loop is told to do.

use std::time::Duration;

use crate::kafka::{ClaimNumber, Tenure};
use crate::record::TopicPartition;
use crate::store::Fence;
use crate::writer::Gone;

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// A claim is under way, or will be after a back-off.
    Claiming,
    /// Its writer has been told where it begins.
    HandingOver { writer: usize, start: Start },
    /// The consumer has been told to assign it.
    Positioning { writer: usize },
    /// Records flow.
    Running { writer: usize },
    /// Its writer has been told to let go.
    Releasing { writer: usize, then: Then },
    /// The consumer has been told to unassign it.
    Unassigning { then: Then },
    /// Waits for a word from outside, or for a restart.
    Halted(Halt),
    /// Being revoked, or the sink ends: its writer has been told to let go.
    Leaving { writer: usize },
}

/// A claimed position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Start {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: Option<i32>,
}

/// What follows when a partition has been taken out of its writer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Then {
    /// Claim it again.
    Claim,
    /// Leave it halted.
    Halt(Halt),
}

/// Why a partition is halted. Its reason is for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Halt {
    pub(crate) state: HaltState,
    pub(crate) reason: String,
    /// A record that is bad stands at the stored offset: it can be skipped.
    pub(crate) bad_record: bool,
}

impl Halt {
    /// A position that cannot be.
    pub(crate) fn stopped(reason: impl Into<String>) -> Self {
        Self { state: HaltState::Stopped, reason: reason.into(), bad_record: false }
    }

    /// A person wants it so; the reason, for people, stands in the row.
    pub(crate) fn paused() -> Self {
        Self { state: HaltState::Paused, reason: "a person ordered it".to_owned(), bad_record: false }
    }

    /// A row that belongs to others.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self { state: HaltState::Refused, reason: reason.into(), bad_record: false }
    }
}

/// The label of a halted partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HaltState {
    /// A bad record, or a position that cannot be.
    Stopped,
    /// The row belongs to another sink, cluster or topic.
    Refused,
    /// A person ordered a pause.
    Paused,
}

/// Everything that can happen to the partitions of a sink.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Assigned {
        places: Vec<TopicPartition>,
        tenure: Tenure,
    },
    Revoked(Vec<TopicPartition>),
    Lost(Vec<TopicPartition>),
    /// The client is dead: everything counts as lost.
    ClientLost,
    /// The revoke has waited long enough for its writers.
    RevokeOverdue,
    Claimed {
        place: TopicPartition,
        claim: ClaimNumber,
        fence: Fence,
        start: Start,
    },
    /// The claim, or the check of its position, ended in a reason to halt.
    ClaimHalted {
        place: TopicPartition,
        claim: ClaimNumber,
        halt: Halt,
    },
    HandedOver {
        place: TopicPartition,
        claim: ClaimNumber,
    },
    Released {
        place: TopicPartition,
        claim: ClaimNumber,
    },
    Positioned {
        place: TopicPartition,
        claim: ClaimNumber,
    },
    NotPositioned {
        place: TopicPartition,
        claim: ClaimNumber,
    },
    Unassigned(Vec<TopicPartition>),
    Stored {
        place: TopicPartition,
        claim: ClaimNumber,
        offset: i64,
        fence: Fence,
    },
    /// A settle of ours wrote a new fence.
    Refenced {
        place: TopicPartition,
        claim: ClaimNumber,
        fence: Fence,
    },
    Gone {
        place: TopicPartition,
        claim: ClaimNumber,
        why: Gone,
    },
    /// A record of it was delivered past its writer.
    Stray {
        place: TopicPartition,
        offset: i64,
    },
    /// Somebody else changed the row: claim again.
    OutsideWord(TopicPartition),
    /// The topic behind these partitions is not the one that the offsets belong to, or their position cannot be.
    Halt {
        place: TopicPartition,
        halt: Halt,
    },
    /// Time has passed; this much since the beginning.
    Tick(Duration),
    /// The sink ends: running transactions are finished.
    Shutdown,
    /// The drain deadline passed: what can be withdrawn is withdrawn.
    DrainOverdue,
}

/// Everything that the loop is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Claim after a back-off that grows with `attempts`; at once for 0.
    Claim {
        place: TopicPartition,
        claim: ClaimNumber,
        attempts: u32,
    },
    HandOver {
        writer: usize,
        place: TopicPartition,
        claim: ClaimNumber,
        fence: Fence,
        start: Start,
        alone: bool,
    },
    Release {
        writer: usize,
        place: TopicPartition,
        claim: ClaimNumber,
        finish: bool,
    },
    Assign {
        writer: usize,
        place: TopicPartition,
        tenure: Tenure,
        claim: ClaimNumber,
        start: Start,
    },
    Unassign {
        place: TopicPartition,
    },
    /// Call [`Event::RevokeOverdue`] when the budget has passed.
    AwaitRevoke,
    AnswerRevoke {
        places: Vec<TopicPartition>,
    },
    /// The partition is halted: say so, once.
    Halted {
        place: TopicPartition,
        halt: Halt,
    },
    /// Every writer has let go.
    Drained,
}
