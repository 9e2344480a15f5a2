//! A Kafka cluster inside this process, for demonstrations, examples and tests: librdkafka's mock, which any process on this machine reaches over loopback.
//!
//! It lives as long as its value and keeps what it was given in memory: 5 MB a partition, the oldest batch goes first.
//! A process that was killed must be forgotten by its group, which takes its session and up to a second, before another one joins: members are named by addresses in
//! memory, which recur, and two of one name crash librdkafka's assignor.
//!
//! Must not be relied on for what it does not have: transactions, timestamps, deletion and growth of topics, errors of disks.

use std::fmt;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::types::RDKafkaApiKey;

use super::consumer::ClientError;
use super::ffi;

/// For a queue that is full: it empties within milliseconds, since the cluster is in this process.
const PATIENCE: Duration = Duration::from_secs(30);
const ALL_BROKERS: i32 = -1;
/// The last version of the metadata answer without ids, of brokers before Kafka 2.8.
const METADATA_WITHOUT_IDS: i16 = 9;
const METADATA_WITH_IDS: i16 = 12;

struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ProducerContext for Quiet {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &rdkafka::message::DeliveryResult<'_>, (): ()) {}
}

/// The cluster, of two brokers. Dropping it ends it.
pub struct MockCluster {
    // The producer is the cluster: librdkafka makes the one with the other.
    producer: BaseProducer<Quiet>,
    brokers: String,
}

impl fmt::Debug for MockCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockCluster").field("brokers", &self.brokers).finish()
    }
}

impl MockCluster {
    /// Starts it on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When the system gives no port or thread.
    pub fn start() -> Result<Self, ClientError> {
        let mut config = ClientConfig::new();
        config.set("test.mock.num.brokers", "1").set("linger.ms", "5").set("batch.size", "100000");
        let producer: BaseProducer<Quiet> =
            config.create_with_context(Quiet).map_err(|error| ClientError::new(&error))?;
        let brokers = producer.client().mock_cluster().map(|cluster| cluster.bootstrap_servers());
        match brokers {
            Some(brokers) if ffi::make_usable(producer.client()) => Ok(Self { producer, brokers }),
            _ => Err(ClientError("librdkafka makes no mock cluster".into())),
        }
    }

    /// The value for `bootstrap.servers`.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// When it exists already.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<(), ClientError> {
        self.with(|cluster| cluster.create_topic(name, partitions, 1))
    }

    /// From now on it answers as clusters before Kafka 2.8 do: topics have no ids. Brokers restart for it.
    ///
    /// # Errors
    /// When librdkafka refuses it.
    pub fn without_topic_ids(&self) -> Result<(), ClientError> {
        self.metadata_up_to(METADATA_WITHOUT_IDS)
    }

    /// Topics have ids again, as at the start. Brokers restart for it.
    ///
    /// # Errors
    /// When librdkafka refuses it.
    pub fn with_topic_ids(&self) -> Result<(), ClientError> {
        self.metadata_up_to(METADATA_WITH_IDS)
    }

    fn metadata_up_to(&self, version: i16) -> Result<(), ClientError> {
        self.with(|cluster| {
            cluster.apiversion(RDKafkaApiKey::Metadata, Some(0), Some(version))?;
            // A connection keeps the version that it began with.
            cluster.broker_down(ALL_BROKERS)?;
            cluster.broker_up(ALL_BROKERS)
        })
    }

    /// Hands over one record; [`MockCluster::flush`] waits for all of them.
    ///
    /// # Errors
    /// When librdkafka refuses it, or its queue stays full.
    pub fn produce(
        &self,
        topic: &str,
        partition: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Result<(), ClientError> {
        let began = Instant::now();
        loop {
            let record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord { key, payload: value, ..BaseRecord::to(topic).partition(partition) };
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _))
                    if began.elapsed() < PATIENCE =>
                {
                    self.producer.poll(Duration::from_millis(10));
                }
                Err((error, _)) => return Err(ClientError::new(&error)),
            }
        }
    }

    /// Waits until the cluster has everything that was produced.
    ///
    /// # Errors
    /// When it takes longer than 30 seconds.
    pub fn flush(&self) -> Result<(), ClientError> {
        self.producer.flush(PATIENCE).map_err(|error| ClientError::new(&error))
    }

    fn with(
        &self,
        act: impl FnOnce(&rdkafka::mocking::MockCluster<'_, Quiet>) -> Result<(), KafkaError>,
    ) -> Result<(), ClientError> {
        match self.producer.client().mock_cluster() {
            Some(cluster) => act(&cluster).map_err(|error| ClientError::new(&error)),
            None => Err(ClientError("the mock cluster is gone".into())),
        }
    }
}
