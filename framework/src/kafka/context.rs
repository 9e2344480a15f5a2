//! librdkafka's callbacks on the consumer thread: they only take notes.
//!
//! Invariant: nothing is answered from within a callback, so that the answers stand in one place, the thread's loop, which runs right after. Whether an
//! assignment is lost can be asked only here, at the beginning of the callback.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka::{Statistics, TopicPartitionList};

use crate::record::TopicPartition;

/// What a callback saw.
#[derive(Debug)]
pub(super) enum Note {
    Assigned(Vec<TopicPartition>),
    Revoked(Vec<TopicPartition>),
    Lost(Vec<TopicPartition>),
    Error {
        code: RDKafkaErrorCode,
        reason: String,
    },
    /// A callback panicked; the group is in an unknown state.
    Panicked,
}

/// Notes in the order of the callbacks.
#[derive(Debug, Default)]
pub(super) struct Context {
    notes: Mutex<VecDeque<Note>>,
}

impl Context {
    fn notes(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: Note) {
        self.notes().push_back(note);
    }

    /// The oldest note.
    pub(super) fn take(&self) -> Option<Note> {
        self.notes().pop_front()
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn stats(&self, _statistics: Statistics) {}

    fn stats_raw(&self, _statistics: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        // Called for each end of a partition, too, which is none.
        let code = error.rdkafka_error_code();
        if let Some(code) = code.filter(|code| *code != RDKafkaErrorCode::PartitionEOF) {
            self.note(Note::Error { code, reason: reason.to_owned() });
        }
    }
}

impl ConsumerContext for Context {
    /// Replaces the default, which would assign at offsets that nobody chose.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let noted = catch_unwind(AssertUnwindSafe(|| {
            let places = places(list);
            match code {
                RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Note::Assigned(places),
                _ if consumer.assignment_lost() => Note::Lost(places),
                _ => Note::Revoked(places),
            }
        }));
        self.note(noted.unwrap_or(Note::Panicked));
    }
}

/// The partitions that a list names.
pub(super) fn places(list: &TopicPartitionList) -> Vec<TopicPartition> {
    list.elements().iter().map(|e| TopicPartition::new(e.topic(), e.partition())).collect()
}

/// A line of librdkafka's log as an event of ours. Its levels are kept but for what it calls an error, which it mends by itself.
pub(super) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(target: "librdkafka", facility, "{message}");
        }
        RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
            tracing::warn!(target: "librdkafka", facility, "{message}");
        }
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
            tracing::info!(target: "librdkafka", facility, "{message}");
        }
        RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", facility, "{message}"),
    }
}
