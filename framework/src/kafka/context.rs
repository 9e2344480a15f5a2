//! librdkafka's callbacks on the consumer thread: they only take notes.
//!
//! Invariant: nothing is answered from within a callback, so that the answers stand in one place, the thread's loop, which runs right after. Whether an
//! assignment is lost can be asked only here, at the beginning of the callback.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka::{Statistics, TopicPartitionList};

use super::trouble::plain;
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
    warned: Warned,
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
        // What is about the configuration is told by the monitor, which is made of the same one.
        let is_warning = (level as i32) <= RDKafkaLogLevel::Warning as i32;
        let repeated = facility == "CONFWARN" || (is_warning && !self.warned.is_due(plain(message)));
        if repeated {
            tracing::debug!(target: "librdkafka", facility, "{message}");
        } else {
            log(level, facility, message);
        }
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

/// What librdkafka says about a connection that failed, or is about to, bears these names.
pub(super) fn is_connection(facility: &str) -> bool {
    matches!(facility, "FAIL" | "SSL")
}

/// How often the same trouble with the same broker is worth a warning.
const REPEAT: Duration = Duration::from_secs(300);

/// Who was warned about: librdkafka tries for ever, and says so every 30 s for each broker.
#[derive(Debug, Default)]
struct Warned(Mutex<HashMap<String, Instant>>);

impl Warned {
    /// Whether this trouble is new, or not told for long.
    fn is_due(&self, words: &str) -> bool {
        let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        warned.retain(|_, at| now.duration_since(*at) < REPEAT);
        let due = !warned.contains_key(words);
        if due {
            warned.insert(words.to_owned(), now);
        }
        due
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_told_once_in_a_while() {
        let warned = Warned::default();
        let line = |ms: u32| {
            format!("[thrd:b:1/1]: b:1/1: Connect failed: Connection refused (after {ms}ms in state CONNECT)")
        };
        assert!(warned.is_due(plain(&line(1))));
        assert!(!warned.is_due(plain(&line(2))), "only the time differs");
        assert!(warned.is_due("b:2/2: Connect failed: Connection refused"), "another broker");
    }
}
