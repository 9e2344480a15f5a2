//! The books: what became of the records of a batch, topic by topic.
//!
//! The sink accounts for the records that it was given, the framework for those that it set aside.
//!
//! Invariant: a batch is committed only when its books balance for every topic, so that over time read = written + collapsed + deleted + skipped +
//! dead-lettered holds for each series.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::Batch;
use crate::config::OnBadRecord;
use crate::error::Reason;

/// What became of some records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Records that became rows (a record may become several).
    pub records: usize,
    /// Records left out by configuration.
    pub skipped: usize,
    /// Records folded into another one of the same key.
    pub collapsed: usize,
    /// Records that deleted a row.
    pub deleted: usize,
}

impl Counts {
    /// Number of records accounted for.
    pub const fn total(&self) -> usize {
        self.records + self.skipped + self.collapsed + self.deleted
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.skipped += other.skipped;
        self.collapsed += other.collapsed;
        self.deleted += other.deleted;
    }
}

/// What a sink did with a batch. The framework compares it with what it read.
///
/// A sink that makes rows of all records says [`Written::records`]. One that leaves some out, folds or deletes counts by topic, with [`Written::topic`],
/// every record once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records that became rows, of whatever topic.
    all: usize,
    topics: BTreeMap<Arc<str>, Counts>,
}

/// What was read of a topic in a batch, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicBooks {
    pub(crate) topic: Arc<str>,
    pub(crate) read: usize,
    pub(crate) counts: Counts,
    /// Records kept as dead letters, by what is wrong with them.
    pub(crate) dead_lettered: BTreeMap<Reason, usize>,
}

impl TopicBooks {
    fn new(topic: &Arc<str>) -> Self {
        Self { topic: Arc::clone(topic), read: 0, counts: Counts::default(), dead_lettered: BTreeMap::new() }
    }

    /// Number of records accounted for.
    fn total(&self) -> usize {
        self.counts.total() + self.dead_lettered.values().sum::<usize>()
    }
}

/// What was read of each topic of a batch, and what the framework did with it by itself.
fn opened(batch: &Batch, policy: OnBadRecord) -> BTreeMap<Arc<str>, TopicBooks> {
    let mut opened: BTreeMap<Arc<str>, TopicBooks> = BTreeMap::new();
    for part in batch.parts() {
        let topic = &part.topic_partition().topic;
        let books = opened.entry(Arc::clone(topic)).or_insert_with(|| TopicBooks::new(topic));
        books.read += part.read();
        match policy {
            // Nothing is set aside under it; if it were, the books would not balance.
            OnBadRecord::Stop => {}
            OnBadRecord::DeadLetter => {
                for (_, bad) in part.bad_records() {
                    *books.dead_lettered.entry(bad.reason).or_default() += 1;
                }
            }
            OnBadRecord::Skip => books.counts.skipped += part.bad(),
        }
    }
    opened
}

impl Written {
    /// All records of the batch became rows; `records` is their number.
    pub const fn records(records: usize) -> Self {
        Self { all: records, topics: BTreeMap::new() }
    }

    /// The counts of a topic, to add to.
    pub fn topic(&mut self, topic: &Arc<str>) -> &mut Counts {
        if !self.topics.contains_key(topic) {
            self.topics.insert(Arc::clone(topic), Counts::default());
        }
        self.topics.entry(Arc::clone(topic)).or_default()
    }

    /// The counts of all topics together.
    pub fn total(&self) -> Counts {
        let mut total = Counts { records: self.all, ..Counts::default() };
        self.topics.values().for_each(|counts| total.add(counts));
        total
    }

    /// The books of a batch by topic.
    ///
    /// # Errors
    /// Where they do not balance, for people.
    pub(crate) fn books(&self, batch: &Batch, policy: OnBadRecord) -> Result<Vec<TopicBooks>, String> {
        let mut given: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for part in batch.parts() {
            *given.entry(&part.topic_partition().topic).or_default() += part.len();
        }
        if let Some(unread) = self.topics.keys().find(|topic| !given.contains_key(topic)) {
            return Err(format!("counts records of topic {unread:?}, of which the batch has none"));
        }
        let whole = self.topics.is_empty() && self.all == batch.len();
        let mut opened = opened(batch, policy);
        for (topic, given) in given {
            let counts = match self.topics.get(topic) {
                _ if whole => Counts { records: given, ..Counts::default() },
                Some(counts) => *counts,
                None => Counts::default(),
            };
            if counts.total() != given {
                return Err(self.difference(topic, &counts, given, batch.len()));
            }
            if let Some(books) = opened.get_mut(topic) {
                books.counts.add(&counts);
            }
        }
        if !whole && self.all > 0 {
            return Err(self.difference("", &self.total(), batch.len(), batch.len()));
        }
        let books: Vec<TopicBooks> = opened.into_values().collect();
        match books.iter().find(|books| books.total() != books.read) {
            Some(books) => Err(unbalanced(books)),
            None => Ok(books),
        }
    }

    fn difference(&self, topic: &str, counts: &Counts, read: usize, batch: usize) -> String {
        if self.topics.is_empty() || topic.is_empty() {
            return format!("accounts for {} of {batch} records", self.total().total());
        }
        format!("accounts for {} of {read} records of topic {topic:?}", counts.total())
    }
}

/// The framework's own part of the books is wrong.
fn unbalanced(books: &TopicBooks) -> String {
    let (total, read, topic) = (books.total(), books.read, &books.topic);
    format!("and the bad records account for {total} of {read} records of topic {topic:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Part, SliceBuilder};
    use crate::error::BadRecord;
    use crate::record::TopicPartition;

    fn batch(parts: &[(&str, i32, i64)]) -> Batch {
        let part = |(topic, partition, records): &(&str, i32, i64)| {
            let mut slice = SliceBuilder::new(TopicPartition::new(*topic, *partition), 0);
            (0..*records).for_each(|offset| slice.push(offset, None, None, None, None, []));
            slice.pass_to(records + 1);
            Part::whole(Arc::new(slice.build()))
        };
        Batch::new(parts.iter().map(part).collect())
    }

    fn counts(records: usize, skipped: usize) -> Counts {
        Counts { records, skipped, ..Counts::default() }
    }

    #[test]
    fn a_simple_sink_counts_all_and_every_topic_gets_its_share() {
        let batch = batch(&[("a", 0, 3), ("a", 1, 2), ("b", 0, 4), ("c", 0, 0)]);
        let books = Written::records(9).books(&batch, OnBadRecord::Stop).unwrap();
        let shares: Vec<_> = books.iter().map(|of| (&*of.topic, of.read, of.counts)).collect();
        assert_eq!(shares, [("a", 5, counts(5, 0)), ("b", 4, counts(4, 0)), ("c", 0, counts(0, 0))]);
        for wrong in [0, 8, 10] {
            let error = Written::records(wrong).books(&batch, OnBadRecord::Stop).unwrap_err();
            assert_eq!(error, format!("accounts for {wrong} of 9 records"));
        }
    }

    #[test]
    fn what_is_left_out_is_told_apart_by_topic() {
        let batch = batch(&[("a", 0, 3), ("b", 0, 4)]);
        let mut written = Written::default();
        *written.topic(&"a".into()) = counts(2, 1);
        written.topic(&"b".into()).skipped += 4;
        assert_eq!(written.total(), counts(2, 5));
        let books = written.books(&batch, OnBadRecord::Stop).unwrap();
        let shares: Vec<_> = books.iter().map(|of| (&*of.topic, of.read, of.counts)).collect();
        assert_eq!(shares, [("a", 3, counts(2, 1)), ("b", 4, counts(0, 4))]);
    }

    #[test]
    fn books_that_balance_in_sum_only_do_not_balance() {
        let batch = batch(&[("a", 0, 3), ("b", 0, 4)]);
        let mut written = Written::default();
        *written.topic(&"a".into()) = counts(4, 0);
        *written.topic(&"b".into()) = counts(3, 0);
        let error = written.books(&batch, OnBadRecord::Stop).unwrap_err();
        assert_eq!(error, "accounts for 4 of 3 records of topic \"a\"");

        let mut foreign = Written::default();
        foreign.topic(&"x".into()).records = 7;
        assert!(foreign.books(&batch, OnBadRecord::Stop).unwrap_err().contains("topic \"x\""));

        let mut mixed = Written::records(4);
        *mixed.topic(&"a".into()) = counts(3, 0);
        assert!(mixed.books(&batch, OnBadRecord::Stop).is_err());
    }

    /// Topic a: offsets 0 to 4, of which 1 and 3 are bad; topic b: 0 and 1, both bad.
    fn with_bad_records() -> Batch {
        let mut parts = batch(&[("a", 0, 5), ("b", 0, 2)]).parts().to_vec();
        let bad = |part: &Part, offset, reason| BadRecord {
            place: part.topic_partition().clone(),
            offset,
            reason,
            message: String::new(),
            sql_state: None,
            table: None,
            column: None,
        };
        for (part, offset, reason) in
            [(0, 1, Reason::Check), (0, 3, Reason::InvalidJson), (1, 0, Reason::Check), (1, 1, Reason::Check)]
        {
            let bad = bad(&parts[part], offset, reason);
            assert!(parts[part].set_aside(bad));
        }
        Batch::new(parts)
    }

    #[test]
    fn what_was_set_aside_is_accounted_for_by_the_policy() {
        let batch = with_bad_records();
        let sum =
            |books: &[TopicBooks]| books.iter().map(|books| (books.read, books.counts)).collect::<Vec<_>>();
        let dead = Written::records(3).books(&batch, OnBadRecord::DeadLetter).unwrap();
        assert_eq!(sum(&dead), [(5, counts(3, 0)), (2, counts(0, 0))]);
        assert_eq!(dead[0].dead_lettered, BTreeMap::from([(Reason::InvalidJson, 1), (Reason::Check, 1)]));
        assert_eq!(dead[1].dead_lettered, BTreeMap::from([(Reason::Check, 2)]));

        let skipped = Written::records(3).books(&batch, OnBadRecord::Skip).unwrap();
        assert_eq!(sum(&skipped), [(5, counts(3, 2)), (2, counts(0, 2))]);
        assert!(skipped.iter().all(|books| books.dead_lettered.is_empty()));
        let mut told = Written::default();
        *told.topic(&"a".into()) = counts(2, 1);
        assert_eq!(sum(&told.books(&batch, OnBadRecord::Skip).unwrap())[0], (5, counts(2, 3)));

        assert!(
            Written::records(3).books(&batch, OnBadRecord::Stop).is_err(),
            "nothing is set aside under it"
        );
        for (written, policy) in
            [(5, OnBadRecord::DeadLetter), (7, OnBadRecord::DeadLetter), (2, OnBadRecord::Skip)]
        {
            assert!(Written::records(written).books(&batch, policy).is_err(), "{written} {policy:?}");
        }
    }

    #[test]
    fn an_empty_batch_balances_with_nothing() {
        assert!(Written::default().books(&batch(&[("a", 0, 0)]), OnBadRecord::Stop).is_ok());
        assert!(Written::records(0).books(&batch(&[("a", 0, 0)]), OnBadRecord::Stop).is_ok());
    }
}
