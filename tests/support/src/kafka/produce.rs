//! Writing records, with the offsets they got.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};

use super::client::Kafka;

const DEADLINE: Duration = Duration::from_secs(60);

/// A record to write. Without further words it has neither key nor value and gets the time of writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    partition: i32,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp: Option<i64>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// A record for this partition.
    pub fn to(partition: i32) -> Self {
        Self { partition, key: None, value: None, timestamp: None, headers: Vec::new() }
    }

    /// With a key.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With a value.
    pub fn value(mut self, value: impl Into<Vec<u8>>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// With a timestamp in milliseconds since 1970.
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// With one more header.
    pub fn header(mut self, name: &str, value: Option<&[u8]>) -> Self {
        self.headers.push((name.into(), value.map(Into::into)));
        self
    }

    pub(super) fn partition(&self) -> i32 {
        self.partition
    }

    fn headers(&self) -> Option<OwnedHeaders> {
        (!self.headers.is_empty()).then(|| {
            self.headers.iter().fold(OwnedHeaders::new(), |all, (key, value)| {
                all.insert(Header { key, value: value.as_deref() })
            })
        })
    }
}

/// Where the outcome of each record of one call goes, by the record's position in that call.
type Outcomes = Arc<Mutex<Vec<Option<Result<i64, KafkaError>>>>>;

pub(super) struct Deliveries;

impl ClientContext for Deliveries {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}
    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<(usize, Outcomes)>;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: Self::DeliveryOpaque) {
        let (position, outcomes) = *opaque;
        let outcome = match result {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => Err(error.clone()),
        };
        outcomes.lock().expect("the outcomes' lock")[position] = Some(outcome);
    }
}

pub(super) fn producer(mut config: ClientConfig) -> BaseProducer<Deliveries> {
    config
        .set("acks", "all")
        .set("linger.ms", "2")
        .set("queue.buffering.max.messages", "1000000")
        .create_with_context(Deliveries)
        .expect("making a producer")
}

/// Sends all records and waits for all acknowledgements; the offsets come in the order of the records.
pub(super) fn send_all(producer: &BaseProducer<Deliveries>, topic: &str, records: &[Record]) -> Vec<i64> {
    let outcomes: Outcomes = Arc::new(Mutex::new(vec![None; records.len()]));
    for (position, record) in records.iter().enumerate() {
        send(producer, topic, record, position, &outcomes);
        producer.poll(Duration::ZERO);
    }
    producer.flush(DEADLINE).expect("flushing the producer");
    let mut outcomes = outcomes.lock().expect("the outcomes' lock");
    outcomes
        .drain(..)
        .map(|outcome| outcome.expect("an acknowledgement").expect("writing a record"))
        .collect()
}

fn send(
    producer: &BaseProducer<Deliveries>,
    topic: &str,
    record: &Record,
    position: usize,
    outcomes: &Outcomes,
) {
    let opaque = Box::new((position, Arc::clone(outcomes)));
    let mut message = BaseRecord::<[u8], [u8], _>::with_opaque_to(topic, opaque).partition(record.partition);
    message.key = record.key.as_deref();
    message.payload = record.value.as_deref();
    message.timestamp = record.timestamp;
    message.headers = record.headers();
    loop {
        match producer.send(message) {
            Ok(()) => return,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), unsent)) => {
                message = unsent;
                producer.poll(Duration::from_millis(20));
            }
            Err((error, _)) => panic!("sending a record: {error}"),
        }
    }
}

impl Kafka {
    /// Writes the records with `acks=all` in their order and gives their offsets in that order.
    pub async fn produce(&self, topic: &str, records: impl IntoIterator<Item = Record>) -> Vec<i64> {
        let records: Vec<Record> = records.into_iter().collect();
        let (config, topic) = (self.client_config(), topic.to_owned());
        tokio::task::spawn_blocking(move || send_all(&producer(config), &topic, &records))
            .await
            .expect("producing records")
    }
}
