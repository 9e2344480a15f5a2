//! Slices, parts and batches: what one transaction writes.
//!
//! A *slice* holds the records of one partition in one batch and is immutable once built, so that a retry writes identical rows. A *part* is a run of a
//! slice's records with the interval of offsets that it passes over. A *batch* is the parts of one transaction, at most one per partition.

mod part;
pub use part::{Part, Records};

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::dead_letter::DeadLetter;
use crate::position::{Interval, after};
use crate::record::{Headers, Record, TopicPartition};

/// A run of bytes in a slice's arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn of<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        arena.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Name and value of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderSpan {
    pub(crate) name: Span,
    pub(crate) value: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: i64,
    timestamp: Option<i64>,
    leader_epoch: Option<i32>,
    key: Option<Span>,
    value: Option<Span>,
    headers: (u32, u32),
}

/// What is known of the last offset passed over: stored beside the offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SliceEnd {
    /// Leader epoch of the last record; none when an end of partition or an operator moved the offset, then it is stored as NULL and not checked.
    pub leader_epoch: Option<i32>,
    /// Timestamp of the last record, milliseconds since the epoch.
    pub timestamp: Option<i64>,
}

/// The records of one partition in one batch, in offset order. Their bytes live in one arena, copied once out of librdkafka.
pub struct Slice {
    place: TopicPartition,
    interval: Interval,
    end: SliceEnd,
    entries: Vec<Entry>,
    headers: Vec<HeaderSpan>,
    arena: Vec<u8>,
}

impl Slice {
    /// The partition.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.place
    }

    /// The offsets passed over.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Number of records; less than the interval's length where offsets carry none.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether this is progress without rows.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Offset of the record at an index.
    pub fn offset(&self, index: usize) -> Option<i64> {
        self.entries.get(index).map(|entry| entry.offset)
    }

    /// Index of the record with this offset.
    pub fn index_of(&self, offset: i64) -> Option<usize> {
        self.entries.binary_search_by_key(&offset, |entry| entry.offset).ok()
    }

    /// The record at an index.
    pub fn record(&self, index: usize) -> Option<Record<'_>> {
        self.entries.get(index).map(|entry| self.view(entry))
    }

    fn view(&self, entry: &Entry) -> Record<'_> {
        let (first, last) = entry.headers;
        Record {
            place: &self.place,
            offset: entry.offset,
            timestamp: entry.timestamp,
            key: entry.key.map(|span| span.of(&self.arena)),
            value: entry.value.map(|span| span.of(&self.arena)),
            headers: Headers {
                arena: &self.arena,
                spans: self.headers.get(first as usize..last as usize).unwrap_or_default(),
            },
        }
    }
}

/// Slices are equal when they stand for the same offsets: the log is immutable, so bytes need no comparison.
impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
            && self.interval == other.interval
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(a, b)| a.offset == b.offset)
    }
}

impl Eq for Slice {}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place.hash(state);
        self.interval.hash(state);
        self.entries.len().hash(state);
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({}@{}, {} records)", self.place, self.interval, self.entries.len())
    }
}

/// Gathers the records of one partition while the previous batch commits.
pub struct SliceBuilder {
    slice: Slice,
}

impl SliceBuilder {
    /// Begins at the offset that the previous slice left behind.
    pub fn new(place: TopicPartition, from: i64) -> Self {
        let slice = Slice {
            place,
            interval: Interval::empty(from),
            end: SliceEnd::default(),
            entries: Vec::new(),
            headers: Vec::new(),
            arena: Vec::new(),
        };
        Self { slice }
    }

    /// Makes room for records and bytes.
    pub(crate) fn with_room(mut self, (records, bytes): (usize, usize)) -> Self {
        self.slice.entries.reserve(records);
        self.slice.arena.reserve(bytes);
        self
    }

    /// Takes a record; the caller has checked that its offset is not below [`SliceBuilder::to`].
    pub fn push<'h>(
        &mut self,
        offset: i64,
        timestamp: Option<i64>,
        leader_epoch: Option<i32>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
    ) {
        let key = key.map(|bytes| self.copy(bytes));
        let value = value.map(|bytes| self.copy(bytes));
        let first = self.slice.headers.len() as u32;
        for (name, value) in headers {
            let span = HeaderSpan { name: self.copy(name), value: value.map(|bytes| self.copy(bytes)) };
            self.slice.headers.push(span);
        }
        let headers = (first, self.slice.headers.len() as u32);
        self.slice.entries.push(Entry { offset, timestamp, leader_epoch, key, value, headers });
        self.slice.interval.to = after(offset);
        self.slice.end = SliceEnd { leader_epoch, timestamp };
    }

    /// Moves on to an offset without a record: an end of partition, behind control records or a compacted tail. The end's epoch is not that of a
    /// record and is not kept.
    pub fn pass_to(&mut self, offset: i64) {
        if offset > self.slice.interval.to {
            self.slice.interval.to = offset;
            self.slice.end.leader_epoch = None;
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Span {
        let start = self.slice.arena.len() as u32;
        self.slice.arena.extend_from_slice(bytes);
        Span { start, end: self.slice.arena.len() as u32 }
    }

    /// The partition.
    pub fn place(&self) -> &TopicPartition {
        &self.slice.place
    }

    /// Next offset to take.
    pub fn to(&self) -> i64 {
        self.slice.interval.to
    }

    /// Records taken so far.
    pub fn len(&self) -> usize {
        self.slice.entries.len()
    }

    /// Where the slice begins, and the timestamp of its first record; none without a record.
    pub(crate) fn first(&self) -> Option<(i64, Option<i64>)> {
        self.slice.entries.first().map(|entry| (self.slice.interval.from, entry.timestamp))
    }

    /// Whether no record was taken; offsets may have been passed over all the same.
    pub fn is_empty(&self) -> bool {
        self.slice.entries.is_empty()
    }

    /// Whether nothing was taken or passed over.
    pub fn is_untouched(&self) -> bool {
        self.slice.interval.is_empty()
    }

    /// Payload bytes held.
    pub fn bytes(&self) -> usize {
        self.slice.arena.len()
    }

    /// The finished slice.
    pub fn build(self) -> Slice {
        self.slice
    }
}

/// What a sink made of a batch before the transaction began: wire bytes, bind arrays, whatever it likes.
#[derive(Default)]
pub struct Encoded(Option<Box<dyn Any + Send + Sync>>);

impl Encoded {
    /// Keeps what `encode` made for `write`.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Some(Box::new(value)))
    }
}

/// The parts of one transaction, at most one per partition, sorted by partition.
pub struct Batch {
    parts: Vec<Part>,
    encoded: Encoded,
}

impl Batch {
    /// Gathers parts; they are sorted, since offset rows are locked in that order.
    pub fn new(mut parts: Vec<Part>) -> Self {
        parts.sort_by(|a, b| a.topic_partition().cmp(b.topic_partition()));
        Self { parts, encoded: Encoded::default() }
    }

    /// The parts, sorted by partition.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The records that are to be written: partition by partition, in offset order within each. Those that were found bad are not among them.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.parts.iter().flat_map(Part::records)
    }

    /// Number of records to be written.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Number of records read: those to be written, and the bad ones.
    pub fn read(&self) -> usize {
        self.parts.iter().map(Part::read).sum()
    }

    /// The bad records, in the order of the records.
    pub fn dead_letters(&self) -> Vec<DeadLetter<'_>> {
        let of_part = |part| Part::bad_records(part).map(|(record, bad)| DeadLetter::new(record, bad));
        self.parts.iter().flat_map(of_part).collect()
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(Part::is_empty)
    }

    /// Bytes of keys, values and headers.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum()
    }

    /// What [`crate::Sink::encode`] made of this batch, when it is of this type.
    pub fn encoded<T: Any>(&self) -> Option<&T> {
        self.encoded.0.as_ref()?.downcast_ref()
    }

    /// Keeps what the sink encoded.
    pub fn set_encoded(&mut self, encoded: Encoded) {
        self.encoded = encoded;
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.parts).finish()
    }
}
