//! What a sink runs with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{KafkaSection, OnBadRecord, OnExpired, Secret, SinkSection, defaults};
use crate::error::Failure;
use crate::kafka;
use crate::position::StartPolicy;
use crate::topics::Topics;
use crate::writer::BatchLimits;

/// Partitions that a writer of a sink with patterns is prepared for at least: topics come while it runs, and the client's limits are set once.
const MATCHES_EXPECTED: usize = 16;

/// The settings of one sink, from its section of the file and that of Kafka, or made by an embedding program.
#[derive(Clone, Debug)]
pub struct SinkSettings {
    /// The sink's name.
    pub name: Arc<str>,
    /// Kafka group, and `consumer_group` of the stored offsets.
    pub group: Arc<str>,
    /// Topics to read, by name, or by a pattern that begins with `^`: see [`Topics`].
    pub topics: Vec<Arc<str>>,
    /// librdkafka's properties, `bootstrap.servers` among them.
    pub kafka: BTreeMap<String, Secret>,
    /// The rebalance protocol.
    pub protocol: kafka::GroupProtocol,
    /// Where a topic begins that has no stored offset.
    pub start: StartPolicy,
    /// Number of writers: connections, one transaction each.
    pub writers: usize,
    /// Caps of a batch.
    pub batch: BatchLimits,
    /// Bytes of records read and not yet committed, all partitions.
    pub memory: u64,
    /// How long a graceful stop waits for the transactions in flight.
    pub drain: Duration,
    /// Of one statement; our own timer waits five seconds longer.
    pub timeout: Duration,
    /// When a stored offset lies below the log start.
    pub on_expired: OnExpired,
    /// What becomes of a record that cannot become a row.
    pub on_bad_record: OnBadRecord,
    /// How long a record may wait for the row that its foreign key refers to.
    pub foreign_key_wait: Duration,
    /// The first claim may begin although the target has rows.
    pub into_rows: bool,
    /// End when the stored offsets have reached the ends that were read at the start.
    pub until_end: bool,
    /// Who we are, for people: host and process id.
    pub owner: Arc<str>,
}

impl SinkSettings {
    /// The settings of a sink in the file.
    pub fn new(kafka: &KafkaSection, sink: &SinkSection) -> Self {
        Self {
            name: sink.name.as_str().into(),
            group: sink.group.as_str().into(),
            topics: sink.topics.iter().map(|topic| topic.as_str().into()).collect(),
            kafka: kafka.properties.clone(),
            protocol: kafka.protocol,
            start: sink.start,
            writers: sink.writers,
            batch: BatchLimits {
                rows: sink.batch.rows,
                bytes: usize::try_from(sink.batch.bytes).unwrap_or(usize::MAX),
                linger: sink.batch.linger,
            },
            memory: sink.memory,
            drain: sink.drain,
            timeout: sink.timeout,
            on_expired: sink.on_expired,
            on_bad_record: sink.on_bad_record,
            foreign_key_wait: sink.foreign_key_wait,
            into_rows: sink.into_rows,
            until_end: false,
            owner: owner().into(),
        }
    }

    /// Settings with the file's defaults, for an embedding program.
    pub fn of(name: &str, brokers: &str, topics: &[&str]) -> Self {
        Self {
            name: name.into(),
            group: format!("oncesink-{name}").into(),
            topics: topics.iter().map(|topic| (*topic).into()).collect(),
            kafka: [("bootstrap.servers".to_owned(), Secret::literal(brokers))].into(),
            protocol: kafka::GroupProtocol::default(),
            start: StartPolicy::default(),
            writers: usize::try_from(defaults::WRITERS).unwrap_or(1),
            batch: BatchLimits {
                rows: usize::try_from(defaults::BATCH_ROWS).unwrap_or(1),
                bytes: usize::try_from(defaults::BATCH_BYTES).unwrap_or(usize::MAX),
                linger: defaults::BATCH_LINGER,
            },
            memory: defaults::MEMORY,
            drain: defaults::DRAIN,
            timeout: defaults::TIMEOUT,
            on_expired: OnExpired::default(),
            on_bad_record: OnBadRecord::default(),
            foreign_key_wait: defaults::FOREIGN_KEY_WAIT,
            into_rows: false,
            until_end: false,
            owner: owner().into(),
        }
    }

    /// librdkafka's properties with secrets resolved now.
    pub(crate) fn properties(&self) -> Result<BTreeMap<String, String>, String> {
        let read = |(key, value): (&String, &Secret)| match value.current() {
            Ok(value) => Ok((key.clone(), value)),
            Err(error) => Err(format!("kafka: {key:?}: {error}")),
        };
        self.kafka.iter().map(read).collect()
    }

    /// The list of topics, read.
    pub(crate) fn selection(&self) -> Result<Topics, Failure> {
        let topics = Topics::parse(&self.topics);
        topics.map_err(|message| Failure::fatal(format!("sinks.{}.topics: {message}", self.name)))
    }

    /// A consumer of these topics, which have so many partitions now.
    pub(crate) fn consumer(
        &self,
        topics: &[Arc<str>],
        partitions: usize,
        properties: &BTreeMap<String, String>,
    ) -> kafka::ConsumerSettings {
        let names = topics.iter().map(|topic| topic.to_string()).collect();
        let mut settings = kafka::ConsumerSettings::new("", &self.group, names);
        settings.properties = properties.clone();
        settings.protocol = self.protocol;
        settings.take_group_properties();
        settings.queue_kilobytes = u32::try_from(self.payload_share() / 1000).unwrap_or(u32::MAX).max(64);
        let expected =
            if self.topics.iter().any(|topic| topic.starts_with('^')) { MATCHES_EXPECTED } else { 1 };
        settings.partitions_per_writer = partitions.div_ceil(self.writers.max(1)).max(expected);
        settings
    }

    /// How often topics are looked for that match a pattern: as often as librdkafka looks for new partitions.
    pub(crate) fn metadata_every(&self) -> Duration {
        let given = self.kafka.get(kafka::METADATA_INTERVAL).and_then(|text| text.expose().parse().ok());
        given.map_or(kafka::METADATA_EVERY, Duration::from_millis).max(Duration::from_millis(100))
    }

    /// A target as the sink names it, made the identity of a row.
    pub(crate) fn with_name(&self, target: &str) -> Arc<str> {
        format!("{}: {target}", self.name).into()
    }

    /// The same for people.
    pub(crate) fn without_name<'t>(&self, identity: &'t str) -> &'t str {
        identity.strip_prefix(&*self.name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(identity)
    }

    /// Bytes of payload that may wait in a writer's queue, and again in its closed batches. Resident memory is about three times the payload held.
    pub(crate) fn payload_share(&self) -> usize {
        let payload = self.memory / self.writers.max(1) as u64 / 3;
        usize::try_from(payload / 2).unwrap_or(usize::MAX)
    }

    pub(crate) fn call_max(&self) -> Duration {
        self.timeout + Duration::from_secs(5)
    }
}

/// `host/pid`.
fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "host" } else { host.trim() };
    format!("{host}/{}", std::process::id())
}
