//! A bad record as it is kept beside the rows: coordinates, bytes, and what is wrong with it.
//!
//! Must not: reach a log. It bears the record's content; whoever needs a line for people takes the [`BadRecord`], which bears none.

use crate::error::{BadRecord, Reason};
use crate::record::{Record, TopicPartition};

/// A bad record with its bytes, borrowed from its batch.
#[derive(Clone, Copy)]
pub struct DeadLetter<'r> {
    record: Record<'r>,
    bad: &'r BadRecord,
}

impl<'r> DeadLetter<'r> {
    pub(crate) fn new(record: Record<'r>, bad: &'r BadRecord) -> Self {
        Self { record, bad }
    }

    /// The partition.
    pub fn topic_partition(&self) -> &'r TopicPartition {
        self.record.topic_partition()
    }

    /// Offset in the partition.
    pub fn offset(&self) -> i64 {
        self.record.offset()
    }

    /// Timestamp of the record in milliseconds since the epoch; any number, since producers may write any.
    pub fn timestamp(&self) -> Option<i64> {
        self.record.timestamp()
    }

    /// Key bytes.
    pub fn key(&self) -> Option<&'r [u8]> {
        self.record.key()
    }

    /// Value bytes; none for a tombstone.
    pub fn value(&self) -> Option<&'r [u8]> {
        self.record.value()
    }

    /// Headers as the records of Kafka's format 2 have them: a zigzag varint for their number, then for each the length of its name, the name, the length of
    /// its value or -1 for none, the value. None without headers.
    pub fn headers(&self) -> Option<Vec<u8>> {
        self.record.headers().to_wire()
    }

    /// Stable code of what is wrong; its kind is [`Reason::class`].
    pub fn reason(&self) -> Reason {
        self.bad.reason
    }

    /// SQLSTATE when the server refused it.
    pub fn sql_state(&self) -> Option<&'r str> {
        self.bad.sql_state.as_deref()
    }

    /// Table concerned.
    pub fn table(&self) -> Option<&'r str> {
        self.bad.table.as_deref()
    }

    /// Column concerned.
    pub fn column(&self) -> Option<&'r str> {
        self.bad.column.as_deref()
    }

    /// Bytes of key and value: about what it takes on its way to the database.
    pub fn bytes(&self) -> usize {
        self.key().map_or(0, <[u8]>::len) + self.value().map_or(0, <[u8]>::len)
    }
}
