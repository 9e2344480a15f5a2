//! DescribeTopics for one thing, the topic's id, which no safe binding gives.
//!
//! Invariant: every native object made here is destroyed here, on every path.

use std::ffi::{CStr, CString};
use std::ptr;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka_sys::bindings as native;

use super::client::Quiet;

const TIMEOUT_MS: i32 = 10_000;

struct Collection(*mut native::rd_kafka_TopicCollection_t);
struct Queue(*mut native::rd_kafka_queue_t);
struct Event(*mut native::rd_kafka_event_t);

impl Drop for Collection {
    fn drop(&mut self) {
        // SAFETY: made by `describe`, not null, destroyed once.
        unsafe { native::rd_kafka_TopicCollection_destroy(self.0) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made by `describe`, not null, destroyed once, and before the client it belongs to.
        unsafe { native::rd_kafka_queue_destroy(self.0) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: given by queue_poll, destroyed once; null is allowed.
        unsafe { native::rd_kafka_event_destroy(self.0) }
    }
}

/// The topic's id as base64, or none if the broker does not know the topic (yet) or did not answer.
pub(super) fn describe(consumer: &BaseConsumer<Quiet>, topic: &str) -> Option<String> {
    let client = consumer.client().native_ptr();
    let name = CString::new(topic).ok()?;
    let mut names = [name.as_ptr()];
    // SAFETY: the pointers are valid for the calls; the library copies the names; the event outlives every pointer
    // that is read out of it; the strings are copied before it is destroyed.
    unsafe {
        let topics = Collection(native::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), 1));
        let queue = Queue(native::rd_kafka_queue_new(client));
        native::rd_kafka_DescribeTopics(client, topics.0, ptr::null(), queue.0);
        let event = Event(native::rd_kafka_queue_poll(queue.0, TIMEOUT_MS));
        let result = native::rd_kafka_event_DescribeTopics_result(event.0);
        if event.0.is_null() || result.is_null() {
            return None;
        }
        let mut count = 0;
        let descriptions = native::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        if count != 1 {
            return None;
        }
        let description = *descriptions;
        let error = native::rd_kafka_TopicDescription_error(description);
        if native::rd_kafka_error_code(error) != native::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        let id = native::rd_kafka_TopicDescription_topic_id(description);
        let text = native::rd_kafka_Uuid_base64str(id);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}
