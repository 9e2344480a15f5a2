//! Queues used the wrong way, to see what happens then. The framework's own module does not offer this.

#![allow(unsafe_code)]

use std::ffi::CString;

use rdkafka::ClientConfig;
use rdkafka::bindings as native;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;

/// Says nothing.
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}
    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ConsumerContext for Quiet {}

/// A consumer that is assigned by hand, and set as the framework's.
pub(super) fn consumer(bootstrap: &str, settings: &[(&str, &str)]) -> BaseConsumer<Quiet> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", oncesink_test_support::unique("by_hand"))
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("fetch.queue.backoff.ms", "5");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create_with_context(Quiet).expect("making a consumer")
}

/// A queue to forward to. Destroyed when dropped, unless it is forgotten.
pub(super) struct RawQueue(*mut native::rd_kafka_queue_t);

// SAFETY: librdkafka's queues are bound to no thread.
unsafe impl Send for RawQueue {}

impl RawQueue {
    pub(super) fn new(consumer: &BaseConsumer<Quiet>) -> Self {
        // SAFETY: the client is valid; the queue is ours.
        Self(unsafe { native::rd_kafka_queue_new(consumer.client().native_ptr()) })
    }

    pub(super) fn forward(&self, consumer: &BaseConsumer<Quiet>, topic: &str, partition: i32) {
        let topic = CString::new(topic).expect("a name");
        // SAFETY: client, name and queue are valid; the handle in between is ours.
        unsafe {
            let source = native::rd_kafka_queue_get_partition(
                consumer.client().native_ptr(),
                topic.as_ptr(),
                partition,
            );
            native::rd_kafka_queue_forward(source, self.0);
            native::rd_kafka_queue_destroy(source);
        }
    }

    /// The offset of the next record; ends of partitions are passed over.
    pub(super) fn poll(&self) -> Option<i64> {
        loop {
            // SAFETY: queue and event are valid; the event is ours and outlives what is read of it.
            unsafe {
                let event = native::rd_kafka_queue_poll(self.0, 0);
                if event.is_null() {
                    return None;
                }
                let is_record = native::rd_kafka_event_type(event) == native::RD_KAFKA_EVENT_FETCH;
                let offset = is_record.then(|| (*native::rd_kafka_event_message_next(event)).offset);
                native::rd_kafka_event_destroy(event);
                if offset.is_some() {
                    return offset;
                }
            }
        }
    }
}

impl Drop for RawQueue {
    fn drop(&mut self) {
        // SAFETY: valid, ours, destroyed once.
        unsafe { native::rd_kafka_queue_destroy(self.0) }
    }
}
