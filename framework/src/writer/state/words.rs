//! The machine's words: what can happen to a writer, what its loop is told to do, what the supervisor hears.

use crate::batch::Part;
use crate::error::{BadRecord, Class};
use crate::kafka::ClaimNumber;
use crate::record::TopicPartition;
use crate::store::{Fence, Settled, Step};

/// Where the run at the front of the queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// No run: the next batch may be gathered into one.
    #[default]
    Idle,
    /// A transaction is running.
    Running,
    /// Waiting before the run is tried again.
    BackingOff,
    /// In doubt: the stored offsets decide.
    Settling,
    /// In doubt, waiting before the settle is tried again.
    SettleBackingOff,
}

/// Everything that can happen to a writer.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A claimed partition begins here, at its stored offset; taken between two drains. Records below `waited` have waited for the rows that they refer to.
    HandedOver {
        place: TopicPartition,
        claim: ClaimNumber,
        fence: Fence,
        start: i64,
        alone: bool,
        waited: i64,
    },
    /// A partition is taken away. With `finish`, a transaction that is running is waited for instead of withdrawn.
    Released { place: TopicPartition, claim: ClaimNumber, finish: bool },
    /// An event on the queue that is neither a record nor an end of partition.
    Broken { place: TopicPartition, why: Break },
    /// What was gathered becomes the next run; only while idle.
    Gathered { parts: Vec<Part> },
    /// The transaction is committed.
    Committed,
    /// Rolled back: these steps did not match, in the order of the run.
    NotMine { matched: Vec<bool> },
    /// Rolled back at the advance: these offset rows are locked by others.
    Contended { locked: Vec<TopicPartition> },
    /// Rolled back, or never begun: these records are bad.
    Bad { records: Vec<BadRecord> },
    /// Rolled back: some record is bad; the message describes it when it stands alone.
    BadSomewhere { description: BadDescription },
    /// Rolled back for another reason.
    RolledBack { class: Class },
    /// Rolled back before COMMIT was sent, because a partition was taken away.
    Withdrawn,
    /// COMMIT was sent and its outcome is unknown.
    InDoubt,
    /// The verdicts of the settle, in the order of its steps.
    Settled { verdicts: Vec<Settled> },
    /// The settle itself failed.
    SettleFailed,
    /// The back-off is over.
    BackedOff,
}

/// Why intake of a partition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Break {
    /// The broker has nothing at our offset; may belong to an earlier assignment.
    OutOfRange,
    /// The leader epoch of our offset is not the log's: its tail was lost.
    Truncated,
    /// A damaged batch or another error.
    Error,
}

/// A server's refusal, to become a bad record when it is found to stand alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BadDescription {
    pub(crate) reason: crate::error::Reason,
    pub(crate) message: String,
    pub(crate) sql_state: Option<String>,
    pub(crate) table: Option<String>,
    pub(crate) column: Option<String>,
}

/// Everything that a writer's loop is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Tell the supervisor that the partition begins here: nothing of an earlier claim is taken any more.
    AcknowledgeHandOver { place: TopicPartition, claim: ClaimNumber },
    /// Tell the supervisor that the partition is out of this writer.
    AcknowledgeRelease { place: TopicPartition, claim: ClaimNumber },
    /// Drop what was gathered of a partition.
    Discard { place: TopicPartition },
    /// Run a transaction over these parts.
    Run { parts: Vec<Part>, steps: Vec<Step> },
    /// Open the sink again, on a connection of its own, before the run that follows.
    Reopen,
    /// Open the sink again, on the connection at hand, before the run that follows: what is wrong may be our picture of the catalog.
    Reread,
    /// Give the running transaction up unless COMMIT was sent.
    Withdraw,
    /// Wait, then [`Event::BackedOff`].
    BackOff { attempts: u32 },
    /// Read on a new session what became of these steps.
    Settle { steps: Vec<Step> },
    /// A transaction in doubt is settled.
    Verdict(Verdict),
    /// Tell the supervisor.
    Report(Report),
}

/// What settling found out about a whole transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// COMMIT was done: all its rows are there.
    Applied,
    /// It was not: the parts run again.
    NotApplied,
    /// Every part belongs to another owner by now, whose claim found out.
    Fenced,
    /// A row stands at neither end of its part.
    Rewound,
}

impl Verdict {
    /// Label value in metrics.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::NotApplied => "not_applied",
            Self::Fenced => "fenced",
            Self::Rewound => "rewound",
        }
    }
}

/// What the supervisor hears of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The stored offset moved on.
    Stored { place: TopicPartition, claim: ClaimNumber, offset: i64, fence: Fence, records: usize },
    /// A settle wrote a new fence: what later looks at the row are compared with.
    Refenced { place: TopicPartition, claim: ClaimNumber, fence: Fence },
    /// The writer gave the partition up, for this reason; the supervisor decides what follows.
    Gone { place: TopicPartition, claim: ClaimNumber, why: Gone },
    /// The sink must end.
    Fatal,
}

/// Why a writer gave a partition up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Gone {
    /// The row was not mine, or not where it was expected.
    NotMine,
    /// Its offset row is locked by another transaction.
    Contended,
    /// Its table is locked, missing or forbidden, while others flow on.
    Sick,
    /// The settle found the row below the offset that was certain.
    Rewound { found: i64 },
    /// The settle found the row at an offset that is neither end of the step.
    Odd { found: i64 },
    /// A bad record: everything before it is stored.
    Stopped(BadRecord),
    /// A record that refers to a row which is not there (yet): everything before it is stored. What was read below `read` waits together with it.
    Orphan { bad: BadRecord, read: i64 },
    /// The queue delivered an event that is no record.
    Broken(Break),
}

/// Whether an offset was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Taken; a slice that begins with it begins at this offset.
    From(i64),
    /// Below the next offset: going back is suspicious.
    Below,
    /// No such partition here, or its intake is closed.
    Unwanted,
}
