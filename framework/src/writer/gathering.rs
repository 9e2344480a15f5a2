//! What came in since the last batch was closed: one slice builder per partition, bounded in rows and bytes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::{Part, SliceBuilder};
use crate::record::TopicPartition;
use crate::writer::holdings::First;

/// How often progress without rows may begin a transaction of its own.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Caps of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Records in one transaction, at most.
    pub rows: usize,
    /// Payload bytes in one transaction, about at most: a record is never cut.
    pub bytes: usize,
    /// How long a first record waits for company when nothing is in flight.
    pub linger: Duration,
}

/// The batch that fills while another one commits.
pub(crate) struct Gathering {
    limits: BatchLimits,
    builders: Vec<SliceBuilder>,
    /// Where a partition's builder stands in `builders`.
    slots: HashMap<TopicPartition, usize>,
    topics: HashSet<Arc<str>>,
    last: Option<TopicPartition>,
    /// The slot of the record before: records come from a partition in runs.
    last_slot: usize,
    /// Records and bytes that a partition had on average in the batch before: room for the next one, so that it need not grow step by step.
    room: (usize, usize),
    rows: usize,
    bytes: usize,
    first_record: Option<Instant>,
    /// From when on progress without rows may begin a transaction; in the past at first.
    progress_from: Instant,
}

impl Gathering {
    pub(crate) fn new(limits: BatchLimits) -> Self {
        Self {
            limits,
            builders: Vec::new(),
            slots: HashMap::new(),
            topics: HashSet::new(),
            last: None,
            last_slot: 0,
            room: (0, 0),
            rows: 0,
            bytes: 0,
            first_record: None,
            progress_from: Instant::now(),
        }
    }

    /// The owned name of a partition, without an allocation when it is that of the record before.
    pub(crate) fn place(&mut self, topic: &str, partition: i32) -> TopicPartition {
        if let Some(last) = &self.last
            && last.partition == partition
            && &*last.topic == topic
        {
            return last.clone();
        }
        let name = match self.topics.get(topic) {
            Some(name) => Arc::clone(name),
            None => {
                let name: Arc<str> = topic.into();
                self.topics.insert(Arc::clone(&name));
                name
            }
        };
        let place = TopicPartition { topic: name, partition };
        self.last = Some(place.clone());
        place
    }

    /// The builder of a partition; a new one begins at `from`.
    pub(crate) fn builder(&mut self, place: &TopicPartition, from: i64) -> &mut SliceBuilder {
        if self.builders.get(self.last_slot).is_none_or(|builder| builder.place() != place) {
            self.last_slot = self.slots.get(place).copied().unwrap_or(self.builders.len());
        }
        if self.last_slot == self.builders.len() {
            self.slots.insert(place.clone(), self.last_slot);
            self.builders.push(SliceBuilder::new(place.clone(), from).with_room(self.room));
        }
        &mut self.builders[self.last_slot]
    }

    /// Counts a record that was pushed.
    pub(crate) fn pushed(&mut self, bytes: usize, now: Instant) {
        self.rows += 1;
        self.bytes += bytes;
        self.first_record.get_or_insert(now);
    }

    /// Drops what was gathered of a partition; answers the number of records.
    pub(crate) fn discard(&mut self, place: &TopicPartition) -> usize {
        let Some(slot) = self.slots.remove(place) else { return 0 };
        let builder = self.builders.swap_remove(slot);
        // The last builder stands here now.
        if let Some(moved) = self.builders.get(slot) {
            self.slots.insert(moved.place().clone(), slot);
        }
        self.rows -= builder.len();
        self.bytes = self.bytes.saturating_sub(builder.bytes());
        if self.rows == 0 {
            self.first_record = None;
        }
        builder.len()
    }

    /// Whether no more is taken before this batch is closed.
    pub(crate) fn is_full(&self) -> bool {
        self.rows >= self.limits.rows || self.bytes >= self.limits.bytes
    }

    /// When the batch may begin, given that nothing is in flight; none while there is nothing to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        if let Some(first) = self.first_record {
            return Some(if self.is_full() { first } else { first + self.limits.linger });
        }
        if self.builders.iter().all(SliceBuilder::is_untouched) {
            return None;
        }
        Some(self.progress_from)
    }

    /// Closes the batch: every partition's slice, whole.
    pub(crate) fn close(&mut self, now: Instant) -> Vec<Part> {
        self.progress_from = now + PROGRESS_EVERY;
        self.first_record = None;
        let count = self.builders.len().max(1);
        self.room = (self.rows.div_ceil(count), self.bytes.div_ceil(count));
        (self.rows, self.bytes) = (0, 0);
        self.slots.clear();
        let mut parts: Vec<Part> = self
            .builders
            .drain(..)
            .filter(|builder| !builder.is_untouched())
            .map(|builder| Part::whole(Arc::new(builder.build())))
            .collect();
        parts.sort_by(|a, b| a.topic_partition().cmp(b.topic_partition()));
        parts
    }

    /// What was gathered: partition, number of records, and the first of them.
    pub(crate) fn held(&self) -> impl Iterator<Item = (&TopicPartition, usize, Option<First>)> {
        self.builders.iter().map(|builder| {
            let first = builder.first().map(|(from, timestamp)| First { from, timestamp });
            (builder.place(), builder.len(), first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes records `from..to` of a partition.
    fn gather(gathering: &mut Gathering, partition: i32, from: i64, to: i64) {
        let place = gathering.place("t", partition);
        for offset in from..to {
            gathering.builder(&place, from).push(offset, None, None, None, Some(b"v"), []);
            gathering.pushed(1, Instant::now());
        }
    }

    fn closed(gathering: &mut Gathering) -> Vec<(i32, i64, i64, usize)> {
        let told = |part: &Part| {
            let interval = part.interval();
            (part.topic_partition().partition, interval.from, interval.to, part.len())
        };
        gathering.close(Instant::now()).iter().map(told).collect()
    }

    #[test]
    fn what_was_discarded_does_not_come_back() {
        let limits = BatchLimits { rows: 10, bytes: 100, linger: Duration::ZERO };
        let mut gathering = Gathering::new(limits);
        gather(&mut gathering, 0, 5, 10);
        gather(&mut gathering, 1, 0, 4);
        let place = gathering.place("t", 0);
        assert_eq!(gathering.discard(&place), 5);
        assert!(!gathering.is_full());
        // The partition comes back at the offset where it was.
        gather(&mut gathering, 0, 5, 8);
        // The other one goes on where it was, wherever its builder stands now.
        gather(&mut gathering, 1, 4, 6);
        assert_eq!(closed(&mut gathering), [(0, 5, 8, 3), (1, 0, 6, 6)]);
        assert_eq!(closed(&mut gathering), []);
    }
}
