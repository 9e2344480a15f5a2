//! Emitting the counters and histograms of the closed list, with the labels that the list names.
//!
//! Must not: emit a name that is not in the list.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{Counter, Histogram, counter, gauge, histogram};

use super::names;
use crate::batch::{Batch, Part};
use crate::config::OnBadRecord;
use crate::error::{Class, Reason};
use crate::written::TopicBooks;

/// Why an offset was not followed by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Offsets without a delivered record: control records, aborted or compacted ones.
    Missing,
    /// A record below the next offset to take; dropped.
    Below,
    /// A record of a partition that is not here (any more); dropped.
    Unwanted,
}

/// Handles for one topic: looked up once, not per record.
pub(crate) struct TopicMeter {
    read: Counter,
    written: Counter,
    collapsed: Counter,
    deleted: Counter,
    skipped: Counter,
    labels: (Arc<str>, Arc<str>),
    gaps: [Counter; 3],
    latency: Histogram,
}

impl TopicMeter {
    pub(crate) fn new(group: &Arc<str>, topic: &Arc<str>, policy: OnBadRecord) -> Self {
        let count = |name| counter!(name, "group" => Arc::clone(group), "topic" => Arc::clone(topic));
        count(names::FENCED).absolute(0);
        count(names::REWOUND).absolute(0);
        if policy == OnBadRecord::DeadLetter {
            for reason in Reason::ALL {
                dead_lettered(group, topic, reason).absolute(0);
            }
        }
        let gap = |cause: &'static str| counter!(names::OFFSET_GAPS, "group" => Arc::clone(group), "topic" => Arc::clone(topic), "cause" => cause);
        Self {
            read: count(names::RECORDS_READ),
            written: count(names::RECORDS_WRITTEN),
            collapsed: count(names::RECORDS_COLLAPSED),
            deleted: count(names::RECORDS_DELETED),
            skipped: count(names::RECORDS_SKIPPED),
            labels: (Arc::clone(group), Arc::clone(topic)),
            gaps: [gap("missing"), gap("below"), gap("unwanted")],
            latency: histogram!(names::COMMIT_LATENCY_SECONDS, "group" => Arc::clone(group), "topic" => Arc::clone(topic)),
        }
    }

    pub(crate) fn gap(&self, cause: Gap) {
        let index = match cause {
            Gap::Missing => 0,
            Gap::Below => 1,
            Gap::Unwanted => 2,
        };
        if let Some(counter) = self.gaps.get(index) {
            counter.increment(1);
        }
    }

    /// The books of a topic in a committed transaction.
    pub(crate) fn committed(&self, books: &TopicBooks) {
        let TopicBooks { read, counts, dead_lettered, .. } = books;
        self.read.increment(*read as u64);
        self.written.increment(counts.records as u64);
        self.collapsed.increment(counts.collapsed as u64);
        self.deleted.increment(counts.deleted as u64);
        self.skipped.increment(counts.skipped as u64);
        let (group, topic) = &self.labels;
        for (reason, records) in dead_lettered {
            self::dead_lettered(group, topic, *reason).increment(*records as u64);
        }
    }

    /// From the last record's timestamp to now.
    pub(crate) fn latency(&self, part: &Part) {
        let Some(timestamp) = part.end().timestamp else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let then = Duration::from_millis(u64::try_from(timestamp).unwrap_or(0));
        self.latency.record(now.saturating_sub(then).as_secs_f64());
    }
}

fn dead_lettered(group: &Arc<str>, topic: &Arc<str>, reason: Reason) -> Counter {
    counter!(names::RECORDS_DEAD_LETTERED, "group" => Arc::clone(group), "topic" => Arc::clone(topic), "reason" => reason.code())
}

/// Who this process is, and every series of the group whose labels are known beforehand, at 0: what first happens later is then seen as a rise.
pub(crate) fn begin(group: &Arc<str>, owner: &Arc<str>) {
    let host = owner.split('/').next().unwrap_or_default().to_owned();
    gauge!(names::INFO, "group" => Arc::clone(group), "owner" => Arc::clone(owner), "host" => host, "version" => env!("CARGO_PKG_VERSION"))
        .set(1.0);
    let zero = |name: &'static str, label: &'static str, values: &[&'static str]| {
        for value in values {
            counter!(name, "group" => Arc::clone(group), label => *value).absolute(0);
        }
    };
    zero(names::TRANSACTIONS, "outcome", &["committed", "rolled_back", "in_doubt"]);
    zero(names::RETRIES, "class", &RETRIED.map(Class::label));
    zero(names::IN_DOUBT, "settled", &["applied", "not_applied", "fenced", "rewound"]);
    zero(names::REBALANCES, "kind", &["assign", "revoke", "lost"]);
}

/// The classes after which a transaction runs again, as it is or in parts.
const RETRIED: [Class; 6] = [
    Class::Transient,
    Class::WrongServer,
    Class::SickObject,
    Class::Timeout,
    Class::StaleCatalog,
    Class::BadRecord,
];

/// A transaction ended.
pub(crate) fn transaction(group: &Arc<str>, outcome: &'static str) {
    counter!(names::TRANSACTIONS, "group" => Arc::clone(group), "outcome" => outcome).increment(1);
}

/// A committed transaction's time by phase.
pub(crate) fn took(group: &Arc<str>, phase: &'static str, took: Duration) {
    histogram!(names::TRANSACTION_SECONDS, "group" => Arc::clone(group), "phase" => phase)
        .record(took.as_secs_f64());
}

/// A committed batch's size.
pub(crate) fn batch(group: &Arc<str>, batch: &Batch) {
    histogram!(names::BATCH_ROWS, "group" => Arc::clone(group)).record(batch.read() as f64);
    histogram!(names::BATCH_BYTES, "group" => Arc::clone(group)).record(batch.bytes() as f64);
}

/// A transaction is to be run again; the end of a sink is no retry.
pub(crate) fn retry(group: &Arc<str>, class: Class) {
    if !RETRIED.contains(&class) {
        return;
    }
    counter!(names::RETRIES, "group" => Arc::clone(group), "class" => class.label()).increment(1);
}

/// A settle's verdict on a transaction.
pub(crate) fn settled(group: &Arc<str>, verdict: &'static str) {
    counter!(names::IN_DOUBT, "group" => Arc::clone(group), "settled" => verdict).increment(1);
}

/// A partition's row was not ours any more.
pub(crate) fn fenced(group: &Arc<str>, topic: &Arc<str>) {
    counter!(names::FENCED, "group" => Arc::clone(group), "topic" => Arc::clone(topic)).increment(1);
}

/// A stored offset was found below the one expected.
pub(crate) fn rewound(group: &Arc<str>, topic: &Arc<str>) {
    counter!(names::REWOUND, "group" => Arc::clone(group), "topic" => Arc::clone(topic)).increment(1);
}

/// The group changed our assignment.
pub(crate) fn rebalance(group: &Arc<str>, kind: &'static str) {
    counter!(names::REBALANCES, "group" => Arc::clone(group), "kind" => kind).increment(1);
}

/// How long partitions did not flow.
pub(crate) fn stall(group: &Arc<str>, kind: &'static str, lasted: Duration) {
    histogram!(names::REBALANCE_STALL_SECONDS, "group" => Arc::clone(group), "kind" => kind)
        .record(lasted.as_secs_f64());
}

/// From the wish for a claim to its answer.
pub(crate) fn claim(group: &Arc<str>, lasted: Duration) {
    histogram!(names::CLAIM_SECONDS, "group" => Arc::clone(group)).record(lasted.as_secs_f64());
}
