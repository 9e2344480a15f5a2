//! Positions in a partition: intervals of offsets, start policies, positions that cannot be.
//!
//! Invariant: an offset is only ever increased by one in [`after`]; everywhere else intervals are compared and joined.

use std::fmt;

/// The offset that follows `offset`: the next one to read once this one is stored.
pub const fn after(offset: i64) -> i64 {
    offset + 1
}

/// The offsets `from <= offset < to` of one partition. `to` is the next offset to read, so an interval may hold fewer records than
/// `to - from`: control records, aborted records and compacted ones take offsets without being delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    /// First offset, the stored offset that the transaction expects to find.
    pub from: i64,
    /// Next offset to read, the stored offset that the transaction leaves behind.
    pub to: i64,
}

impl Interval {
    /// An interval that holds nothing yet.
    pub const fn empty(at: i64) -> Self {
        Self { from: at, to: at }
    }

    /// Whether no offset is passed over.
    pub const fn is_empty(&self) -> bool {
        self.from == self.to
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

/// Where a partition begins when nothing is stored for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StartPolicy {
    /// The log start offset.
    #[default]
    Earliest,
    /// The high watermark (read uncommitted), read once when the topic is first claimed.
    Latest,
    /// The first record at or after this time, milliseconds since the epoch; the high watermark when there is none.
    Timestamp(i64),
}

impl fmt::Display for StartPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
            Self::Timestamp(ms) => match jiff::Timestamp::from_millisecond(*ms) {
                Ok(time) => write!(f, "{time}"),
                Err(_) => write!(f, "{ms} ms"),
            },
        }
    }
}
