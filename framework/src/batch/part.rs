//! A run of a slice's records, and which of them were found bad.
//!
//! Invariant: a bad record is passed over with its part and never seen by a sink; wherever a part is cut, each bad record goes with the piece that passes
//! over its offset. Being bad is part of what a part is: two parts that differ in it are not equal, so that nothing encoded for one is written for the other.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::iter::Peekable;
use std::sync::Arc;

use super::{Entry, Slice, SliceEnd, Span};
use crate::error::BadRecord;
use crate::position::{Interval, after};
use crate::record::{Record, TopicPartition};

/// A run of a slice's records, by index, and the interval that it passes over. The whole slice, unless a bad record is being looked for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Part {
    slice: Arc<Slice>,
    first: usize,
    last: usize,
    interval: Interval,
    /// The records of this run that were found bad, by offset.
    bad: Arc<BTreeMap<i64, BadRecord>>,
}

impl Part {
    /// All of a slice.
    pub fn whole(slice: Arc<Slice>) -> Self {
        let (last, interval) = (slice.len(), slice.interval());
        Self { slice, first: 0, last, interval, bad: Arc::default() }
    }

    /// The partition.
    pub fn topic_partition(&self) -> &TopicPartition {
        self.slice.topic_partition()
    }

    /// The offsets passed over.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Number of records to be written: those that were not found bad.
    pub fn len(&self) -> usize {
        self.read() - self.bad.len()
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of records passed over: those to be written, and the bad ones.
    pub fn read(&self) -> usize {
        self.last - self.first
    }

    /// Bytes of keys, values and headers, of all records passed over.
    pub fn bytes(&self) -> usize {
        let length = |span: Option<Span>| span.map_or(0, |span| (span.end - span.start) as usize);
        let entries = self.entries();
        let headers = match (entries.first(), entries.last()) {
            (Some(first), Some(last)) => {
                self.slice.headers.get(first.headers.0 as usize..last.headers.1 as usize).unwrap_or_default()
            }
            _ => &[],
        };
        let headers: usize =
            headers.iter().map(|header| length(Some(header.name)) + length(header.value)).sum();
        headers + entries.iter().map(|entry| length(entry.key) + length(entry.value)).sum::<usize>()
    }

    /// What is stored beside the offset once this part is committed.
    pub fn end(&self) -> SliceEnd {
        if self.interval.to == self.slice.interval.to {
            return self.slice.end;
        }
        match self.entries().last() {
            Some(entry) if after(entry.offset) == self.interval.to => {
                SliceEnd { leader_epoch: entry.leader_epoch, timestamp: entry.timestamp }
            }
            Some(entry) => SliceEnd { leader_epoch: None, timestamp: entry.timestamp },
            None => SliceEnd::default(),
        }
    }

    /// The records to be written, in offset order.
    pub fn records(&self) -> Records<'_> {
        Records {
            slice: &self.slice,
            entries: self.entries().iter(),
            bad: self.bad.keys().peekable(),
            left: self.len(),
        }
    }

    /// The bad records, with what is wrong with each, in offset order.
    pub fn bad_records(&self) -> impl Iterator<Item = (Record<'_>, &BadRecord)> {
        self.bad.iter().filter_map(|(offset, bad)| {
            let index = self.slice.index_of(*offset)?;
            Some((self.slice.record(index)?, bad))
        })
    }

    /// Number of bad records.
    pub fn bad(&self) -> usize {
        self.bad.len()
    }

    /// Timestamp of the first record, whether it is bad or not; none without a record.
    pub(crate) fn first_timestamp(&self) -> Option<Option<i64>> {
        self.entries().first().map(|entry| entry.timestamp)
    }

    /// Whether the record at `offset` is one of those to be written.
    pub(crate) fn holds(&self, offset: i64) -> bool {
        self.index_of(offset).is_some() && !self.bad.contains_key(&offset)
    }

    /// Sets a record aside as bad; answers whether it was one of those to be written. The framework does so by the policy for bad records; a store's or a
    /// sink's own tests may.
    #[must_use]
    pub fn set_aside(&mut self, bad: BadRecord) -> bool {
        let is_news = bad.place == *self.topic_partition() && self.holds(bad.offset);
        if is_news {
            Arc::make_mut(&mut self.bad).insert(bad.offset, bad);
        }
        is_news
    }

    /// Two pieces of a part of two records or more; the left one ends right behind its last record. Halves of what is to be written as long as that is
    /// several records, then the last such record by itself: whatever stands alone in the end was tried without any other.
    pub(crate) fn halves(&self) -> Option<(Self, Self)> {
        if self.read() < 2 {
            return None;
        }
        let middle = match self.len() {
            0 => self.first + self.read() / 2,
            1 => {
                let only = self.index_of(self.records().next()?.offset())?;
                // What stands before it goes first; else it goes itself.
                if only > self.first { only } else { only + 1 }
            }
            more => self.index_of(self.records().nth(more / 2)?.offset())?,
        };
        let boundary = after(self.slice.offset(middle - 1)?);
        Some(self.cut(middle, boundary))
    }

    /// Everything before the record at `offset`, as progress up to exactly that offset, and the rest.
    pub(crate) fn before(&self, offset: i64) -> Option<(Self, Self)> {
        Some(self.cut(self.index_of(offset)?, offset))
    }

    fn entries(&self) -> &[Entry] {
        self.slice.entries.get(self.first..self.last).unwrap_or_default()
    }

    /// Index in the slice of the record at `offset`, if it is in this run.
    fn index_of(&self, offset: i64) -> Option<usize> {
        self.slice.index_of(offset).filter(|index| (self.first..self.last).contains(index))
    }

    fn cut(&self, index: usize, boundary: i64) -> (Self, Self) {
        let mut left = self.clone();
        let mut right = self.clone();
        left.last = index;
        left.interval.to = boundary;
        right.first = index;
        right.interval.from = boundary;
        if !self.bad.is_empty() {
            let mut bad = BTreeMap::clone(&self.bad);
            right.bad = Arc::new(bad.split_off(&boundary));
            left.bad = Arc::new(bad);
        }
        (left, right)
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Part({}@{}, {} records, {} bad)",
            self.topic_partition(),
            self.interval,
            self.len(),
            self.bad()
        )
    }
}

/// The records of a part that are to be written, in offset order.
#[derive(Clone)]
pub struct Records<'p> {
    slice: &'p Slice,
    entries: std::slice::Iter<'p, Entry>,
    bad: Peekable<btree_map::Keys<'p, i64, BadRecord>>,
    left: usize,
}

impl<'p> Iterator for Records<'p> {
    type Item = Record<'p>;

    fn next(&mut self) -> Option<Record<'p>> {
        for entry in self.entries.by_ref() {
            if self.bad.next_if_eq(&&entry.offset).is_none() {
                self.left -= 1;
                return Some(self.slice.view(entry));
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Records<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::SliceBuilder;
    use crate::error::Reason;

    fn bad(offset: i64) -> BadRecord {
        BadRecord {
            place: TopicPartition::new("t", 0),
            offset,
            reason: Reason::Rejected,
            message: "no".into(),
            sql_state: None,
            table: None,
            column: None,
        }
    }

    /// Records at even offsets below 20, with these set aside.
    fn part(aside: &[i64]) -> Part {
        let mut builder = SliceBuilder::new(TopicPartition::new("t", 0), 0);
        (0..20).step_by(2).for_each(|offset| builder.push(offset, Some(offset), None, None, Some(b"v"), []));
        let mut part = Part::whole(Arc::new(builder.build()));
        aside.iter().for_each(|offset| assert!(part.set_aside(bad(*offset))));
        part
    }

    fn offsets(part: &Part) -> Vec<i64> {
        part.records().map(|record| record.offset()).collect()
    }

    fn aside(part: &Part) -> Vec<i64> {
        part.bad_records()
            .map(|(record, bad)| (record.offset(), bad.offset))
            .map(|(offset, _)| offset)
            .collect()
    }

    #[test]
    fn bad_records_are_left_out_of_the_records_and_kept_with_their_bytes() {
        let part = part(&[0, 8, 18]);
        assert_eq!(offsets(&part), [2, 4, 6, 10, 12, 14, 16]);
        assert_eq!((part.len(), part.records().len(), part.read(), part.bad()), (7, 7, 10, 3));
        assert_eq!(aside(&part), [0, 8, 18]);
        let told: Vec<_> = part.bad_records().map(|(record, bad)| (record.value(), bad.offset)).collect();
        assert_eq!(told, [0, 8, 18].map(|offset| (Some(&b"v"[..]), offset)));
        assert_eq!(part.bytes(), 10);
    }

    #[test]
    fn only_a_record_that_is_to_be_written_is_set_aside() {
        let mut part = part(&[8]);
        assert!(!part.set_aside(bad(8)), "twice");
        assert!(!part.set_aside(bad(9)), "no record");
        assert!(!part.set_aside(bad(20)), "beyond");
        let elsewhere = BadRecord { place: TopicPartition::new("t", 1), ..bad(2) };
        assert!(!part.set_aside(elsewhere), "another partition");
        assert_eq!(part.bad(), 1);
    }

    #[test]
    fn parts_that_differ_in_what_is_bad_are_not_equal() {
        assert_eq!(part(&[8]), part(&[8]));
        assert_ne!(part(&[8]), part(&[]));
        assert_ne!(part(&[8]), part(&[10]));
    }

    #[test]
    fn a_cut_takes_each_bad_record_to_the_piece_that_passes_over_it() {
        let whole = part(&[0, 8, 10, 18]);
        for offset in (0..20).step_by(2) {
            let (left, right) = whole.before(offset).unwrap();
            assert_eq!((left.interval().to, right.interval().from), (offset, offset));
            assert_eq!([offsets(&left), offsets(&right)].concat(), offsets(&whole));
            assert_eq!([aside(&left), aside(&right)].concat(), [0, 8, 10, 18]);
            assert!(aside(&left).iter().all(|bad| *bad < offset));
            assert!(aside(&right).iter().all(|bad| *bad >= offset));
        }
        assert!(whole.before(9).is_none());
    }

    /// Cuts until nothing can be cut; every piece smaller than what it was cut from.
    fn pieces(part: &Part) -> Vec<Part> {
        let Some((left, right)) = part.halves() else { return vec![part.clone()] };
        assert!(left.read() > 0 && right.read() > 0, "{part:?}");
        assert_eq!((left.interval().from, right.interval().to), (part.interval().from, part.interval().to));
        assert_eq!(left.interval().to, right.interval().from);
        [pieces(&left), pieces(&right)].concat()
    }

    #[test]
    fn halves_end_with_each_record_by_itself_in_order() {
        for aside_now in
            [&[][..], &[0], &[18], &[0, 2, 4], &[8, 10, 18], &[0, 2, 4, 6, 8, 10, 12, 14, 16, 18]]
        {
            let whole = part(aside_now);
            let pieces = pieces(&whole);
            assert_eq!(pieces.len(), 10, "{aside_now:?}");
            assert!(pieces.iter().all(|piece| piece.read() == 1));
            assert_eq!(pieces.iter().flat_map(offsets).collect::<Vec<_>>(), offsets(&whole));
            assert_eq!(pieces.iter().flat_map(aside).collect::<Vec<_>>(), aside(&whole));
        }
    }
}
