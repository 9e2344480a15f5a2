//! What a writer holds of its partitions: records read and not yet committed, and the timestamps of those that come first. For metrics.
//!
//! Invariant: a timestamp is kept with the offset at which it stands, so that whoever compares it with the stored offset sees a fact or nothing, however
//! late what is published here arrives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::batch::Part;
use crate::error::BadRecord;
use crate::record::TopicPartition;
use crate::writer::gathering::Gathering;

/// Between two publications: a scrape is no more often than this, and a thousand partitions cost nothing.
const EVERY: Duration = Duration::from_millis(100);

/// The first record at or after an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// Nothing stands between this offset and the record.
    pub(crate) from: i64,
    /// Of the record; milliseconds since the epoch.
    pub(crate) timestamp: Option<i64>,
}

impl First {
    fn of(part: &Part) -> Option<Self> {
        Some(Self { from: part.interval().from, timestamp: part.first_timestamp()? })
    }
}

/// What is held of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Records read and not yet committed.
    pub(crate) records: usize,
    firsts: Vec<First>,
}

impl Held {
    /// The first record that is not stored, given the stored offset.
    pub(crate) fn first_at(&self, stored: i64) -> Option<First> {
        self.firsts.iter().find(|first| first.from == stored).copied()
    }

    fn add(&mut self, records: usize, first: Option<First>) {
        self.records += records;
        self.firsts.extend(first);
    }
}

/// As others see it.
pub(crate) type Buffered = Arc<Mutex<HashMap<TopicPartition, Held>>>;

/// As the writer's thread keeps it.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    /// Of the batch that runs or waits to be run again.
    running: HashMap<TopicPartition, Held>,
    /// What is still known of partitions that were given up: a stopped one stands at a record whose time we saw.
    known: HashMap<TopicPartition, Vec<First>>,
    shared: Buffered,
    changed: bool,
    published: Option<Instant>,
}

impl Holdings {
    /// The end for those who look.
    pub(crate) fn shared(&self) -> Buffered {
        Arc::clone(&self.shared)
    }

    /// Something changed in what is gathered.
    pub(crate) fn touch(&mut self) {
        self.changed = true;
    }

    /// A batch begins.
    pub(crate) fn begin(&mut self, parts: &[Part]) {
        self.changed = true;
        for part in parts {
            let held = Held { records: part.read(), firsts: First::of(part).into_iter().collect() };
            self.running.insert(part.topic_partition().clone(), held);
        }
    }

    /// A part of the batch is run: it may begin further on than the batch did.
    pub(crate) fn run(&mut self, parts: &[Part]) {
        for part in parts {
            let (Some(held), Some(first)) = (self.running.get_mut(part.topic_partition()), First::of(part))
            else {
                continue;
            };
            if held.first_at(first.from).is_none() {
                held.firsts.push(first);
                self.changed = true;
            }
        }
    }

    /// Records of a batch are bad: each partition will stop at its first one.
    pub(crate) fn bad(&mut self, parts: &[Part], records: &[BadRecord]) {
        for part in parts {
            let place = part.topic_partition();
            let first = records.iter().filter(|bad| bad.place == *place).map(|bad| bad.offset).min();
            let Some((_, from_bad)) = first.and_then(|offset| part.before(offset)) else { continue };
            let known = self.known.entry(place.clone()).or_default();
            known.extend(First::of(&from_bad).filter(|first| !known.contains(first)));
            // Shown before the stop is: a partition that stands at an old record must not look as if it stood at the end.
            (self.changed, self.published) = (true, None);
        }
    }

    /// The stored offset has moved on.
    pub(crate) fn stored(&mut self, place: &TopicPartition, offset: i64, records: usize) {
        self.changed = true;
        if let Some(firsts) = self.known.get_mut(place) {
            firsts.retain(|first| first.from >= offset);
        }
        if let Some(held) = self.running.get_mut(place) {
            held.records = held.records.saturating_sub(records);
            held.firsts.retain(|first| first.from >= offset);
            if held.records == 0 {
                self.running.remove(place);
            }
        }
    }

    /// A partition was given up, or begins anew.
    pub(crate) fn discard(&mut self, place: &TopicPartition) {
        self.changed = true;
        if let Some(held) = self.running.remove(place) {
            let known = self.known.entry(place.clone()).or_default();
            let new: Vec<First> = held.firsts.into_iter().filter(|first| !known.contains(first)).collect();
            known.extend(new);
        }
    }

    /// A partition begins here: its records come again.
    pub(crate) fn hand_over(&mut self, place: &TopicPartition) {
        self.known.remove(place);
        self.changed = true;
    }

    /// Shows what changed, unless that was done a moment ago.
    pub(crate) fn publish<'a>(&mut self, gathering: &Gathering, ready: impl Iterator<Item = &'a Part>) {
        if !self.changed || self.published.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.changed = false;
        self.published = Some(Instant::now());
        let all = self.all(gathering, ready);
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Shows what runs, without waiting for the next turn.
    #[cfg(test)]
    pub(crate) fn show_at_once(&self) {
        self.shared.lock().unwrap().clone_from(&self.running);
    }

    fn all<'a>(
        &self,
        gathering: &Gathering,
        ready: impl Iterator<Item = &'a Part>,
    ) -> HashMap<TopicPartition, Held> {
        let mut all = self.running.clone();
        for part in ready {
            all.entry(part.topic_partition().clone()).or_default().add(part.read(), First::of(part));
        }
        for (place, records, first) in gathering.held() {
            all.entry(place.clone()).or_default().add(records, first);
        }
        for (place, firsts) in &self.known {
            all.entry(place.clone()).or_default().firsts.extend(firsts);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::SliceBuilder;
    use crate::error::Reason;
    use crate::writer::gathering::BatchLimits;

    fn place() -> TopicPartition {
        TopicPartition::new("t", 0)
    }

    /// Records at these offsets, each with ten times its offset as timestamp.
    fn part(from: i64, offsets: &[i64]) -> Part {
        let mut slice = SliceBuilder::new(place(), from);
        offsets.iter().for_each(|offset| slice.push(*offset, Some(offset * 10), None, None, None, []));
        Part::whole(Arc::new(slice.build()))
    }

    fn gathering() -> Gathering {
        Gathering::new(BatchLimits { rows: 100, bytes: 1000, linger: Duration::ZERO })
    }

    fn held(holdings: &Holdings, gathering: &Gathering, ready: &[Part]) -> Held {
        holdings.all(gathering, ready.iter()).remove(&place()).unwrap_or_default()
    }

    fn time_at(held: &Held, stored: i64) -> Option<i64> {
        held.first_at(stored).and_then(|first| first.timestamp)
    }

    #[test]
    fn records_run_ready_and_gathered_are_counted_and_each_first_is_known() {
        let (mut holdings, mut gathering) = (Holdings::default(), gathering());
        holdings.begin(&[part(5, &[7, 8])]);
        let ready = [part(9, &[9])];
        gathering.builder(&place(), 10).push(12, Some(120), None, None, None, []);
        let all = held(&holdings, &gathering, &ready);
        assert_eq!(all.records, 4);
        // Offsets 5 and 6 carry no record: the first at or after 5 is 7.
        assert_eq!([5, 9, 10].map(|stored| time_at(&all, stored)), [Some(70), Some(90), Some(120)]);
        assert_eq!(all.first_at(7), None);

        holdings.stored(&place(), 9, 2);
        let all = held(&holdings, &gathering, &ready);
        assert_eq!((all.records, time_at(&all, 9)), (2, Some(90)));
    }

    #[test]
    fn a_stopped_partition_is_known_by_the_record_at_which_it_stands() {
        let (mut holdings, gathering) = (Holdings::default(), gathering());
        let whole = part(0, &[0, 1, 2, 3]);
        holdings.begin(std::slice::from_ref(&whole));
        let bad = |offset| BadRecord {
            place: place(),
            offset,
            reason: Reason::Rejected,
            message: String::new(),
            sql_state: None,
            table: None,
            column: None,
        };
        holdings.bad(std::slice::from_ref(&whole), &[bad(3), bad(2)]);
        let (before, _) = whole.before(2).unwrap();
        holdings.discard(&place());
        holdings.run(&[before]);
        holdings.stored(&place(), 2, 2);
        let all = held(&holdings, &gathering, &[]);
        assert_eq!((all.records, time_at(&all, 2), all.first_at(0)), (0, Some(20), None));
        holdings.hand_over(&place());
        assert_eq!(held(&holdings, &gathering, &[]), Held::default());
    }

    #[test]
    fn a_batch_that_is_run_in_halves_keeps_its_rest() {
        let (mut holdings, gathering) = (Holdings::default(), gathering());
        let whole = part(0, &[0, 1, 2, 3]);
        holdings.begin(std::slice::from_ref(&whole));
        let (left, right) = whole.halves().unwrap();
        holdings.run(&[left]);
        holdings.stored(&place(), 2, 2);
        holdings.run(&[right]);
        let all = held(&holdings, &gathering, &[]);
        assert_eq!((all.records, time_at(&all, 2)), (2, Some(20)));
    }

    #[test]
    fn a_record_without_a_time_is_known_to_have_none() {
        let (mut holdings, gathering) = (Holdings::default(), gathering());
        let mut slice = SliceBuilder::new(place(), 0);
        slice.push(0, None, None, None, None, []);
        holdings.begin(&[Part::whole(Arc::new(slice.build()))]);
        let first = held(&holdings, &gathering, &[]).first_at(0);
        assert_eq!(first, Some(First { from: 0, timestamp: None }));
    }
}
