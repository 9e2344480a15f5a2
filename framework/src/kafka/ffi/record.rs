//! What comes out of a writer's queue: records, ends of partitions, and whatever else ends the intake of a partition.
//!
//! Invariant: everything borrows from the event it came in. Must not: give the offset of anything but a record or an end of partition; after a bad
//! checksum librdkafka reports offsets out of thin air.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use rdkafka::bindings as native;
use rdkafka::types::RDKafkaRespErr;

use crate::kafka::ErrorCode;

/// One thing from a queue.
#[derive(Debug)]
pub enum Item<'q> {
    /// A record.
    Record(RawRecord<'q>),
    /// Everything up to here is read; control records and compacted ones before it took their offsets without being delivered.
    End {
        /// Topic name.
        topic: String,
        /// Partition number.
        partition: i32,
        /// The next offset to read.
        offset: i64,
    },
    /// Anything else about a partition: its intake ends here, and nothing that comes after it may be accepted before it is assigned again.
    Broken {
        /// Topic name.
        topic: String,
        /// Partition number.
        partition: i32,
        /// librdkafka's code.
        code: ErrorCode,
        /// The log ends earlier than it once did, inside one topic id.
        truncated: bool,
        /// The offset to read is before the log's start or behind its end; may belong to the assignment before the present one.
        out_of_range: bool,
        /// librdkafka's words.
        reason: String,
    },
    /// Nothing of interest.
    Other,
}

/// An event that is destroyed with this value.
pub(super) struct NativeEvent(NonNull<native::rd_kafka_event_t>);

// SAFETY: an event is bound to no thread; it is used by one at a time.
unsafe impl Send for NativeEvent {}

impl Drop for NativeEvent {
    fn drop(&mut self) {
        // SAFETY: valid, ours, destroyed once.
        unsafe { native::rd_kafka_event_destroy(self.0.as_ptr()) }
    }
}

impl fmt::Debug for NativeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NativeEvent")
    }
}

impl NativeEvent {
    /// Takes over an event that librdkafka gave.
    pub(super) fn adopt(event: *mut native::rd_kafka_event_t) -> Option<Self> {
        NonNull::new(event).map(Self)
    }

    pub(super) fn as_ptr(&self) -> *mut native::rd_kafka_event_t {
        self.0.as_ptr()
    }

    /// What it is. Taking the message out of it marks it as delivered, so this is for one call.
    pub(super) fn item(&mut self) -> Item<'_> {
        // SAFETY: the event is valid.
        match unsafe { native::rd_kafka_event_type(self.as_ptr()) } {
            native::RD_KAFKA_EVENT_FETCH => self.record(),
            native::RD_KAFKA_EVENT_ERROR => self.error(),
            _ => Item::Other,
        }
    }

    fn record(&mut self) -> Item<'_> {
        // SAFETY: the event is valid and owns the message, so the reference lives as long as the borrow of the event.
        let message = unsafe { native::rd_kafka_event_message_next(self.as_ptr()).as_ref() };
        match message {
            Some(message)
                if message.err == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR && !message.rkt.is_null() =>
            {
                Item::Record(RawRecord { message })
            }
            _ => self.error(),
        }
    }

    fn error(&mut self) -> Item<'_> {
        // SAFETY: the event is valid; the partition that comes back is a copy of ours, destroyed once, after its name was copied.
        let (topic, partition, offset, code) = unsafe {
            let place = native::rd_kafka_event_topic_partition(self.as_ptr());
            if place.is_null() {
                return Item::Other;
            }
            let found = (text((*place).topic), (*place).partition, (*place).offset, (*place).err);
            native::rd_kafka_topic_partition_destroy(place);
            found
        };
        match ErrorCode::from(code) {
            ErrorCode::NoError => Item::Other,
            ErrorCode::PartitionEOF => Item::End { topic, partition, offset },
            code => {
                // SAFETY: the event is valid, and so are its words as long as it is; they are copied.
                let reason = unsafe { text(native::rd_kafka_event_error_string(self.as_ptr())) };
                let reset = code == ErrorCode::AutoOffsetReset;
                let truncated = reset && reason.to_ascii_lowercase().contains("log truncation detected");
                Item::Broken { topic, partition, code, truncated, out_of_range: reset && !truncated, reason }
            }
        }
    }
}

/// A copy of a C string; empty for none.
///
/// # Safety
/// `words` is null or a valid C string.
pub(super) unsafe fn text(words: *const c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    // SAFETY: not null, and valid by this function's contract.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

/// A record in librdkafka's own memory.
#[derive(Clone, Copy)]
pub struct RawRecord<'q> {
    message: &'q native::rd_kafka_message_t,
}

impl fmt::Debug for RawRecord<'_> {
    /// Coordinates only: the content of a record never reaches a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawRecord({}/{}@{})", self.topic(), self.partition(), self.offset())
    }
}

impl<'q> RawRecord<'q> {
    /// The record behind a message of the safe binding.
    pub(in crate::kafka) fn of(message: &'q rdkafka::message::BorrowedMessage<'_>) -> Self {
        // SAFETY: the binding's message owns a valid native one, without an error, for as long as it lives.
        Self { message: unsafe { &*message.ptr() } }
    }

    /// Topic name.
    pub fn topic(&self) -> &'q str {
        // SAFETY: a delivered message has a topic, which lives as long as the message; its name is a C string.
        let name = unsafe { CStr::from_ptr(native::rd_kafka_topic_name(self.message.rkt)) };
        // Kafka allows nothing but ASCII in a name.
        name.to_str().unwrap_or_default()
    }

    /// Partition number.
    pub fn partition(&self) -> i32 {
        self.message.partition
    }

    /// Offset in the partition.
    pub fn offset(&self) -> i64 {
        self.message.offset
    }

    /// Milliseconds since the epoch, if the record has a time.
    pub fn timestamp(&self) -> Option<i64> {
        let mut kind = native::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is valid, and so is the place for the answer.
        let time = unsafe { native::rd_kafka_message_timestamp(self.message, &raw mut kind) };
        (time >= 0 && kind != native::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE)
            .then_some(time)
    }

    /// Leader epoch of the record's batch; none in logs of old formats.
    pub fn leader_epoch(&self) -> Option<i32> {
        // SAFETY: the message is valid.
        let epoch = unsafe { native::rd_kafka_message_leader_epoch(self.message) };
        (epoch >= 0).then_some(epoch)
    }

    /// Key bytes.
    pub fn key(&self) -> Option<&'q [u8]> {
        // SAFETY: librdkafka gives key and length of one buffer that lives as long as the message.
        unsafe { bytes(self.message.key, self.message.key_len) }
    }

    /// Value bytes; none for a tombstone.
    pub fn value(&self) -> Option<&'q [u8]> {
        // SAFETY: as for the key.
        unsafe { bytes(self.message.payload, self.message.len) }
    }

    /// Headers in the producer's order, parsed as they are read.
    pub fn headers(&self) -> RawHeaders<'q> {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is valid; the headers are its own and live as long as it does.
        let code = unsafe { native::rd_kafka_message_headers(self.message, &raw mut headers) };
        let none = code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
        RawHeaders { headers: if none { ptr::null_mut() } else { headers }, next: 0, record: PhantomData }
    }
}

/// # Safety
/// `start` is null or the start of `length` bytes that live for `'q`.
unsafe fn bytes<'q>(start: *const std::ffi::c_void, length: usize) -> Option<&'q [u8]> {
    // SAFETY: by this function's contract.
    (!start.is_null()).then(|| unsafe { slice::from_raw_parts(start.cast::<u8>(), length) })
}

/// The headers of a record: name bytes and value.
pub struct RawHeaders<'q> {
    headers: *mut native::rd_kafka_headers_t,
    next: usize,
    record: PhantomData<&'q native::rd_kafka_message_t>,
}

impl fmt::Debug for RawHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawHeaders")
    }
}

impl<'q> Iterator for RawHeaders<'q> {
    type Item = (&'q [u8], Option<&'q [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.headers.is_null() {
            return None;
        }
        let (mut name, mut value, mut length) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the headers are valid as long as the record; an index behind the last one gives an error. Name and value live as long as the headers.
        unsafe {
            let code = native::rd_kafka_header_get_all(
                self.headers,
                self.next,
                &raw mut name,
                &raw mut value,
                &raw mut length,
            );
            if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return None;
            }
            self.next += 1;
            Some((CStr::from_ptr(name).to_bytes(), bytes(value, length)))
        }
    }
}
