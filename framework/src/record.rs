//! One record as a sink sees it: borrowed from its slice, with its coordinates.
//!
//! Must not: copy payloads, or let a value reach a log line.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::error::{BadRecord, Reason, SinkError};

/// A partition of a topic. Ordered by topic, then number: the order in which offset rows are locked everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition number.
    pub partition: i32,
}

impl TopicPartition {
    /// Names a partition.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

/// A record, borrowed from the slice that holds it.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(crate) place: &'a TopicPartition,
    pub(crate) offset: i64,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// Topic name.
    pub fn topic(&self) -> &'a str {
        &self.place.topic
    }

    /// Topic and partition.
    pub fn topic_partition(&self) -> &'a TopicPartition {
        self.place
    }

    /// Partition number.
    pub fn partition(&self) -> i32 {
        self.place.partition
    }

    /// Offset in the partition.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Timestamp in milliseconds since the epoch, as the broker or the producer set it; none in logs older than Kafka 0.10.
    pub fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    /// Key bytes.
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// Value bytes; none for a tombstone.
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// Headers in the producer's order.
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }

    /// The value read as JSON, borrowing from the record.
    ///
    /// # Errors
    /// A bad record with reason `tombstone` when there is no value, `invalid_json` when it does not fit `T`. The message names line and column, never
    /// the value.
    pub fn json<T: Deserialize<'a>>(&self) -> Result<T, SinkError> {
        let Some(value) = self.value else {
            return Err(self.bad(Reason::Tombstone, "a record without a value").into());
        };
        serde_json::from_slice(value).map_err(|error| {
            let message = format!(
                "not the JSON that is expected here ({} error at line {} column {})",
                category(&error),
                error.line(),
                error.column()
            );
            self.bad(Reason::InvalidJson, message).into()
        })
    }

    /// Calls this record bad, with a reason for people; the policy for bad records decides what becomes of it.
    pub fn reject(&self, reason: impl Into<String>) -> SinkError {
        self.bad(Reason::Rejected, reason).into()
    }

    /// A bad record with a stable reason code; `message` must not quote the value.
    pub fn bad(&self, reason: Reason, message: impl Into<String>) -> BadRecord {
        BadRecord {
            place: self.place.clone(),
            offset: self.offset,
            reason,
            message: message.into(),
            sql_state: None,
            table: None,
            column: None,
        }
    }
}

fn category(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Io => "read",
        serde_json::error::Category::Syntax => "syntax",
        serde_json::error::Category::Data => "data",
        serde_json::error::Category::Eof => "unexpected end",
    }
}

impl fmt::Debug for Record<'_> {
    /// Coordinates only: the content of a record never reaches a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({}@{})", self.place, self.offset)
    }
}

/// Headers of a record: name and value, in order; names may repeat.
#[derive(Clone, Copy)]
pub struct Headers<'a> {
    pub(crate) arena: &'a [u8],
    pub(crate) spans: &'a [crate::batch::HeaderSpan],
}

impl<'a> Headers<'a> {
    /// All headers in order. A name that is no UTF-8 comes with replacement characters.
    pub fn iter(&self) -> impl Iterator<Item = (std::borrow::Cow<'a, str>, Option<&'a [u8]>)> + 'a {
        let Self { arena, spans } = *self;
        spans.iter().map(move |span| {
            (String::from_utf8_lossy(span.name.of(arena)), span.value.map(|value| value.of(arena)))
        })
    }

    /// As the records of Kafka's format 2 have them: a zigzag varint for their number, then for each the length of its name, the name, the length of its
    /// value or -1 for none, the value. None without headers.
    pub fn to_wire(&self) -> Option<Vec<u8>> {
        if self.spans.is_empty() {
            return None;
        }
        let mut wire = Vec::new();
        varint(&mut wire, self.spans.len() as i64);
        for span in self.spans {
            let name = span.name.of(self.arena);
            varint(&mut wire, name.len() as i64);
            wire.extend_from_slice(name);
            match span.value.map(|value| value.of(self.arena)) {
                Some(value) => {
                    varint(&mut wire, value.len() as i64);
                    wire.extend_from_slice(value);
                }
                None => varint(&mut wire, -1),
            }
        }
        Some(wire)
    }

    /// The last value of a header.
    pub fn last(&self, name: &str) -> Option<&'a [u8]> {
        self.find(name).flatten()
    }

    /// The last header of this name: its value, which may be none.
    pub fn find(&self, name: &str) -> Option<Option<&'a [u8]>> {
        let Self { arena, spans } = *self;
        let found = spans.iter().rev().find(|span| span.name.of(arena) == name.as_bytes());
        found.map(|span| span.value.map(|value| value.of(arena)))
    }
}

/// Seven bits a byte, the lowest first, the sign in the lowest bit.
fn varint(wire: &mut Vec<u8>, number: i64) {
    let mut rest = (number << 1 ^ number >> 63) as u64;
    while rest >= 0x80 {
        wire.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    wire.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::batch::{Part, SliceBuilder};
    use crate::record::TopicPartition;

    fn wire(headers: &[(&[u8], Option<&[u8]>)]) -> Option<Vec<u8>> {
        let mut builder = SliceBuilder::new(TopicPartition::new("t", 0), 0);
        builder.push(0, None, None, None, None, headers.iter().copied());
        let part = Part::whole(Arc::new(builder.build()));
        let record = part.records().next()?;
        record.headers().to_wire()
    }

    #[test]
    fn headers_are_kept_as_kafka_sends_them() {
        assert_eq!(wire(&[]), None);
        let expected = [&[4, 2][..], b"a", &[4], b"xy", &[2, 0xFF, 1]].concat();
        assert_eq!(wire(&[(b"a", Some(b"xy")), (b"\xFF", None)]), Some(expected));
        let long = [b'v'; 300];
        let expected = [&[2, 0, 0xD8, 4][..], &long].concat();
        assert_eq!(wire(&[(b"", Some(&long))]), Some(expected));
        assert_eq!(wire(&[(b"n", Some(b""))]), Some(vec![2, 2, b'n', 0]));
    }
}
