//! Batches that are closed and wait for their turn, and whether the queue is drained for more.
//!
//! Invariant: the queue is drained to its end, or to this backlog's limit, or not at all. librdkafka lets a partition fetch only while the queue that it shares with
//! others is below its limit, and asks the partitions in a fixed order. A writer that takes a little whenever it has room makes room for the first of them alone:
//! the others starve for as long as the first one has records, which may be hours behind a slow database.

use std::collections::VecDeque;

use crate::batch::Part;
use crate::record::TopicPartition;
use crate::writer::flight::Prepared;

/// Closed batches in the order in which they run.
pub(crate) struct Backlog {
    waiting: VecDeque<Prepared>,
    bytes: usize,
    /// Bytes of payload from which no more is drained.
    limit: usize,
    /// The queue is being drained, and has not been found empty since.
    draining: bool,
}

impl Backlog {
    pub(crate) fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, limit, draining: true }
    }

    /// Whether records may be taken from the queue.
    pub(crate) fn may_drain(&self) -> bool {
        self.waiting.is_empty() || self.draining
    }

    /// The queue was found empty: what waits is run before it is looked at again.
    pub(crate) fn drained(&mut self) {
        self.draining = self.waiting.is_empty();
    }

    /// Appends a batch.
    pub(crate) fn push(&mut self, prepared: Prepared) {
        self.bytes += prepared.batch.bytes();
        self.waiting.push_back(prepared);
        if self.bytes >= self.limit {
            self.draining = false;
        }
    }

    /// Takes the batch whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<Prepared> {
        let prepared = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(prepared.batch.bytes());
        self.draining |= self.waiting.is_empty();
        Some(prepared)
    }

    /// The batch whose turn is next.
    pub(crate) fn front_mut(&mut self) -> Option<&mut Prepared> {
        self.waiting.front_mut()
    }

    /// Everything that waits.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.waiting.iter().flat_map(|prepared| prepared.batch.parts())
    }

    /// Drops what waits of a partition. The batches that it was in are encoded again without it, when they run.
    pub(crate) fn discard(&mut self, place: &TopicPartition) {
        let holds = |prepared: &Prepared| prepared.batch.parts().iter().any(|p| p.topic_partition() == place);
        for prepared in self.waiting.iter_mut().filter(|prepared| holds(prepared)) {
            let parts = prepared.batch.parts().iter().filter(|part| part.topic_partition() != place);
            *prepared = Prepared::new(parts.cloned().collect());
        }
        self.waiting.retain(|prepared| !prepared.batch.parts().is_empty());
        self.bytes = self.waiting.iter().map(|prepared| prepared.batch.bytes()).sum();
        self.draining |= self.waiting.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::SliceBuilder;

    fn place(partition: i32) -> TopicPartition {
        TopicPartition::new("t", partition)
    }

    /// A batch of one record of ten bytes for each of these partitions.
    fn batch(partitions: &[i32]) -> Prepared {
        let part = |partition: &i32| {
            let mut builder = SliceBuilder::new(place(*partition), 0);
            builder.push(0, None, None, None, Some(b"0123456789"), []);
            Part::whole(Arc::new(builder.build()))
        };
        Prepared::new(partitions.iter().map(part).collect())
    }

    #[test]
    fn the_queue_is_drained_to_its_end_and_then_left_until_nothing_waits() {
        let mut backlog = Backlog::new(1_000_000);
        backlog.push(batch(&[0]));
        backlog.push(batch(&[0]));
        assert!(backlog.may_drain(), "the queue has not been found empty");
        backlog.drained();
        assert!(!backlog.may_drain());
        assert!(backlog.pop().is_some());
        assert!(!backlog.may_drain(), "one batch still waits");
        assert!(backlog.pop().is_some());
        assert!(backlog.may_drain());
        backlog.drained();
        assert!(backlog.may_drain(), "nothing waits, so that a record is taken when it comes");
    }

    #[test]
    fn a_full_backlog_is_run_down_before_more_is_taken() {
        let mut backlog = Backlog::new(15);
        backlog.push(batch(&[0]));
        assert!(backlog.may_drain());
        backlog.push(batch(&[1]));
        assert!(!backlog.may_drain());
        backlog.pop();
        assert!(!backlog.may_drain());
        backlog.pop();
        assert!(backlog.may_drain());
    }

    #[test]
    fn a_partition_that_leaves_takes_its_records_out_of_every_batch() {
        let mut backlog = Backlog::new(1_000_000);
        backlog.push(batch(&[0, 1]));
        backlog.push(batch(&[1]));
        backlog.drained();
        backlog.discard(&place(1));
        assert_eq!(backlog.parts().map(|part| part.topic_partition().partition).collect::<Vec<_>>(), [0]);
        assert!(!backlog.may_drain());
        backlog.discard(&place(0));
        assert!(backlog.may_drain() && backlog.pop().is_none());
    }
}
