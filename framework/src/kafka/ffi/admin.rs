//! Questions about topics and offsets that the safe binding does not ask: ids of topics, offsets with a chosen isolation level, several partitions in one
//! request.
//!
//! Each call blocks for at most its timeout. Answers are copied before their event is destroyed.

use std::ffi::{CString, c_char};
use std::time::{Duration, Instant};

use rdkafka::bindings as native;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};

use super::record::{NativeEvent, text};
use crate::kafka::ErrorCode;
use crate::record::TopicPartition;

/// A question that got no answer as a whole.
#[derive(Clone, Debug)]
pub(in crate::kafka) struct AdminError {
    pub(in crate::kafka) code: ErrorCode,
    pub(in crate::kafka) reason: String,
}

impl AdminError {
    fn new(code: ErrorCode, reason: &str) -> Self {
        Self { code, reason: reason.into() }
    }
}

/// What is known of one topic: its id, none where the brokers are older than topic ids, and its partition count.
#[derive(Clone, Debug)]
pub(in crate::kafka) struct TopicAnswer {
    pub(in crate::kafka) name: String,
    pub(in crate::kafka) found: Result<(Option<String>, i32), AdminError>,
}

/// Which offsets are asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::kafka) enum OffsetQuery {
    LogStart,
    HighWatermark,
    LastStable,
    /// Of the first record at or after this time, seen without regard to transactions.
    AtTime(i64),
}

/// The answer for one partition; the offset is -1 when no record is that late.
#[derive(Clone, Debug)]
pub(in crate::kafka) struct OffsetAnswer {
    pub(in crate::kafka) place: TopicPartition,
    pub(in crate::kafka) found: Result<(i64, Option<i32>), AdminError>,
}

struct Queue(*mut native::rd_kafka_queue_t);

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made in this file, not null, destroyed once and before its client.
        unsafe { native::rd_kafka_queue_destroy(self.0) }
    }
}

struct Options(*mut native::rd_kafka_AdminOptions_t);

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made in this file, not null, destroyed once and before its client.
        unsafe { native::rd_kafka_AdminOptions_destroy(self.0) }
    }
}

struct Topics(*mut native::rd_kafka_TopicCollection_t);

impl Drop for Topics {
    fn drop(&mut self) {
        // SAFETY: made in this file, not null, destroyed once.
        unsafe { native::rd_kafka_TopicCollection_destroy(self.0) }
    }
}

/// How long a question is worth waiting for, within its timeout.
pub(in crate::kafka) trait Patience: ConsumerContext {
    /// Whether an answer to what was asked at this time will not come. Asked again and again while it is waited for.
    fn hopeless(&self, asked: Instant) -> bool;
}

/// A request on its way, with a queue of its own for the answer.
struct Asked<'a, C: Patience> {
    queue: Queue,
    timeout: Duration,
    client: &'a BaseConsumer<C>,
    at: Instant,
}

/// How often it is looked whether waiting is of use.
const SLICE: Duration = Duration::from_millis(50);
/// More than any client has to say in that time.
const EVENTS_MAX: usize = 32;

/// Serves log lines and errors, which would pile up otherwise. A poll that served one gives nothing, as one that found none does.
pub(in crate::kafka) fn serve<C: Patience>(client: &BaseConsumer<C>) {
    for _ in 0..EVENTS_MAX {
        client.poll(Duration::ZERO);
    }
}

fn options<C: Patience>(
    client: &BaseConsumer<C>,
    operation: native::rd_kafka_admin_op_t,
    timeout: Duration,
) -> Options {
    let mut words = [0 as c_char; 256];
    // SAFETY: the client is valid; the options are ours; the buffer's length is given.
    unsafe {
        let options = Options(native::rd_kafka_AdminOptions_new(client.client().native_ptr(), operation));
        let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        native::rd_kafka_AdminOptions_set_request_timeout(
            options.0,
            milliseconds,
            words.as_mut_ptr(),
            words.len(),
        );
        options
    }
}

fn queue<C: Patience>(client: &BaseConsumer<C>) -> Queue {
    // SAFETY: the client is valid; the queue is ours.
    Queue(unsafe { native::rd_kafka_queue_new(client.client().native_ptr()) })
}

impl<C: Patience> Asked<'_, C> {
    /// Waits for the answer; a little longer than librdkafka does, so that its words are had.
    fn answer(self) -> Result<NativeEvent, AdminError> {
        let patience = self.timeout + Duration::from_millis(500);
        let milliseconds = i32::try_from(SLICE.as_millis()).unwrap_or(i32::MAX);
        let event = loop {
            // SAFETY: the queue is valid; the event that comes back is ours.
            let event = unsafe { native::rd_kafka_queue_poll(self.queue.0, milliseconds) };
            if let Some(event) = NativeEvent::adopt(event) {
                break event;
            }
            serve(self.client);
            if self.at.elapsed() >= patience || self.client.context().hopeless(self.at) {
                return Err(AdminError::new(ErrorCode::OperationTimedOut, "no answer in time"));
            }
        };
        // SAFETY: the event is valid, and its words are copied.
        let (code, reason) = unsafe {
            let code = native::rd_kafka_event_error(event.as_ptr());
            (code, text(native::rd_kafka_event_error_string(event.as_ptr())))
        };
        match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(event),
            code => Err(AdminError { code: code.into(), reason }),
        }
    }
}

/// Ids and partition counts of topics, in one request; each topic has its own outcome.
pub(in crate::kafka) fn describe_topics<C: Patience>(
    client: &BaseConsumer<C>,
    names: &[&str],
    timeout: Duration,
) -> Result<Vec<TopicAnswer>, AdminError> {
    let names: Result<Vec<CString>, _> = names.iter().map(|name| CString::new(*name)).collect();
    let names =
        names.map_err(|_| AdminError::new(ErrorCode::InvalidTopic, "a null character in a topic's name"))?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let options = options(client, native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout);
    let asked = Asked { queue: queue(client), timeout, client, at: Instant::now() };
    // SAFETY: the names live beyond the call, which copies them; client, collection, options and queue are valid.
    unsafe {
        let topics =
            Topics(native::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len()));
        native::rd_kafka_DescribeTopics(client.client().native_ptr(), topics.0, options.0, asked.queue.0);
    }
    let event = asked.answer()?;
    // SAFETY: the event is valid until the end of this function and owns all that is read out of it; strings are copied.
    unsafe {
        let result = native::rd_kafka_event_DescribeTopics_result(event.as_ptr());
        if result.is_null() {
            return Err(AdminError::new(ErrorCode::Fail, "an answer of another kind"));
        }
        let mut count = 0;
        let found = native::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        Ok((0..count).map(|index| topic_answer(*found.add(index))).collect())
    }
}

/// # Safety
/// `topic` is valid.
unsafe fn topic_answer(topic: *const native::rd_kafka_TopicDescription_t) -> TopicAnswer {
    // SAFETY: all pointers come from the description and are valid with it; strings are copied.
    unsafe {
        let name = text(native::rd_kafka_TopicDescription_name(topic));
        let error = native::rd_kafka_TopicDescription_error(topic);
        let code = native::rd_kafka_error_code(error);
        if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            let reason = text(native::rd_kafka_error_string(error));
            return TopicAnswer { name, found: Err(AdminError { code: code.into(), reason }) };
        }
        let mut partitions = 0;
        native::rd_kafka_TopicDescription_partitions(topic, &raw mut partitions);
        let id = topic_id(native::rd_kafka_TopicDescription_topic_id(topic));
        TopicAnswer { name, found: Ok((id, i32::try_from(partitions).unwrap_or(i32::MAX))) }
    }
}

/// An answer without ids reads as an id of zeros, which no topic has.
///
/// # Safety
/// `id` is valid.
unsafe fn topic_id(id: *const native::rd_kafka_Uuid_t) -> Option<String> {
    // SAFETY: the id is valid, and its text is copied.
    unsafe {
        let zeros = native::rd_kafka_Uuid_most_significant_bits(id) == 0
            && native::rd_kafka_Uuid_least_significant_bits(id) == 0;
        (!zeros).then(|| text(native::rd_kafka_Uuid_base64str(id)))
    }
}

/// Offsets of partitions, one request for each query and leader, all on their way at once; the answers come in the order of the queries.
pub(in crate::kafka) fn list_offsets<C: Patience>(
    client: &BaseConsumer<C>,
    places: &[TopicPartition],
    queries: &[OffsetQuery],
    timeout: Duration,
) -> Result<Vec<Vec<OffsetAnswer>>, AdminError> {
    let asked: Vec<Asked<'_, C>> =
        queries.iter().map(|query| ask_offsets(client, places, *query, timeout)).collect();
    asked.into_iter().map(|asked| asked.answer().and_then(|event| offset_answers(&event))).collect()
}

fn ask_offsets<'a, C: Patience>(
    client: &'a BaseConsumer<C>,
    places: &[TopicPartition],
    query: OffsetQuery,
    timeout: Duration,
) -> Asked<'a, C> {
    use native::rd_kafka_IsolationLevel_t::{
        RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED, RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED,
    };
    let (spec, isolation) = match query {
        OffsetQuery::LogStart => (Offset::Beginning, RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED),
        OffsetQuery::HighWatermark => (Offset::End, RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED),
        OffsetQuery::LastStable => (Offset::End, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED),
        OffsetQuery::AtTime(time) => (Offset::Offset(time), RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED),
    };
    let mut list = TopicPartitionList::new();
    for place in places {
        // -2, -1 and times go as they are; only a negative time is refused, and that is asked as the beginning.
        let added = list.add_partition_offset(&place.topic, place.partition, spec);
        if added.is_err() {
            let _ = list.add_partition_offset(&place.topic, place.partition, Offset::Beginning);
        }
    }
    let options = options(client, native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout);
    let asked = Asked { queue: queue(client), timeout, client, at: Instant::now() };
    // SAFETY: client, list, options and queue are valid; the call copies the list. The level is always set: unset, whatever the client is set to,
    // means read uncommitted, and a reader of this file should not have to know. The error object is ours to destroy; null is allowed.
    unsafe {
        let error = native::rd_kafka_AdminOptions_set_isolation_level(options.0, isolation);
        native::rd_kafka_error_destroy(error);
        native::rd_kafka_ListOffsets(client.client().native_ptr(), list.ptr(), options.0, asked.queue.0);
    }
    asked
}

fn offset_answers(event: &NativeEvent) -> Result<Vec<OffsetAnswer>, AdminError> {
    // SAFETY: the event is valid and owns all that is read out of it; strings are copied; the words for a code are static.
    unsafe {
        let result = native::rd_kafka_event_ListOffsets_result(event.as_ptr());
        if result.is_null() {
            return Err(AdminError { code: ErrorCode::Fail, reason: "an answer of another kind".into() });
        }
        let mut count = 0;
        let infos = native::rd_kafka_ListOffsets_result_infos(result, &raw mut count);
        let answers = (0..count).map(|index| {
            let element = native::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(index));
            let place = TopicPartition::new(text((*element).topic), (*element).partition);
            let found = match (*element).err {
                RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => {
                    let epoch = native::rd_kafka_topic_partition_get_leader_epoch(element);
                    Ok(((*element).offset, (epoch >= 0).then_some(epoch)))
                }
                code => Err(AdminError { code: code.into(), reason: text(native::rd_kafka_err2str(code)) }),
            };
            OffsetAnswer { place, found }
        });
        Ok(answers.collect())
    }
}

/// The cluster's id and how many brokers it has.
pub(in crate::kafka) fn describe_cluster<C: Patience>(
    client: &BaseConsumer<C>,
    timeout: Duration,
) -> Result<(String, usize), AdminError> {
    let options = options(client, native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER, timeout);
    let asked = Asked { queue: queue(client), timeout, client, at: Instant::now() };
    // SAFETY: client, options and queue are valid.
    unsafe { native::rd_kafka_DescribeCluster(client.client().native_ptr(), options.0, asked.queue.0) };
    let event = asked.answer()?;
    // SAFETY: the event is valid and owns all that is read out of it; the id is copied.
    unsafe {
        let result = native::rd_kafka_event_DescribeCluster_result(event.as_ptr());
        if result.is_null() {
            return Err(AdminError::new(ErrorCode::Fail, "an answer of another kind"));
        }
        let mut brokers = 0;
        native::rd_kafka_DescribeCluster_result_nodes(result, &raw mut brokers);
        Ok((text(native::rd_kafka_DescribeCluster_result_cluster_id(result)), brokers))
    }
}
