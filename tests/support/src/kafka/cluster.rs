//! A cluster of one or three brokers in KRaft's combined mode, tuned for a quick start and quick rebalances.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::broker::{Broker, Plan};
use super::client::{Kafka, random_kafka_id};
use super::install::{Installed, installed};
use super::produce::Record;
use crate::ports;
use crate::workdir::Workdir;

/// How to start a cluster.
#[derive(Debug, Clone)]
pub struct KafkaOptions {
    brokers: u16,
    heap_mb: u32,
    listeners: Vec<(String, u16)>,
    overrides: Vec<(String, String)>,
}

impl KafkaOptions {
    /// One broker, every replication factor 1.
    pub fn one() -> Self {
        Self { brokers: 1, heap_mb: 96, listeners: Vec::new(), overrides: Vec::new() }
    }

    /// Three brokers, every replication factor 3, two replicas in sync demanded.
    pub fn three() -> Self {
        Self { brokers: 3, ..Self::one() }
    }

    /// A line of `server.properties` for every broker; the last one for a key wins.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.overrides.push((key.into(), value.into()));
        self
    }

    /// One more listener, advertised as `localhost`, for a cluster of one broker; its protocol and keys come by [`set`](Self::set).
    pub fn listener(mut self, name: &str, port: u16) -> Self {
        self.listeners.push((name.into(), port));
        self
    }

    /// The most that each broker's heap may grow to, in MB: 96 by default, enough for tests; less than 48 does not start.
    pub fn heap_mb(mut self, heap_mb: u32) -> Self {
        self.heap_mb = heap_mb;
        self
    }
}

/// A cluster of our own. Dropping it ends its brokers and removes their data.
#[derive(Debug)]
pub struct KafkaCluster {
    kafka: Kafka,
    // Before the folder: a broker must not lose its folder while it runs.
    brokers: Vec<Arc<Broker>>,
    _folder: Workdir,
}

impl KafkaCluster {
    /// Starts a cluster and waits until all its brokers serve.
    pub async fn start(options: KafkaOptions) -> Self {
        tokio::task::spawn_blocking(move || Self::start_blocking(&options)).await.expect("starting Kafka")
    }

    /// As `start`, for callers outside of a runtime.
    pub fn start_blocking(options: &KafkaOptions) -> Self {
        Self::start_with(options, installed(), &[])
    }

    fn start_with(options: &KafkaOptions, installed: &Installed, java_options: &[String]) -> Self {
        let folder = Workdir::new("kafka");
        let cluster_id = random_kafka_id();
        let ports: Vec<(u16, u16)> = (0..options.brokers).map(|_| (ports::free(), ports::free())).collect();
        let brokers: Vec<Arc<Broker>> = ports
            .iter()
            .zip(1..)
            .map(|(&(port, controller_port), id)| {
                let plan = Plan {
                    id,
                    port,
                    properties: properties(options, id, port, controller_port, &ports),
                    folder: folder.path().join(format!("broker-{id}")),
                    cluster_id: cluster_id.clone(),
                    heap_mb: options.heap_mb,
                    java_options: java_options.to_vec(),
                };
                Arc::new(Broker::spawn(plan, installed))
            })
            .collect();
        for broker in &brokers {
            broker.wait_ready();
        }
        let addresses: Vec<String> = brokers.iter().map(|broker| broker.address()).collect();
        let kafka = Kafka::connect(&addresses.join(","));
        kafka.wait_for_brokers(usize::from(options.brokers));
        Self { kafka, brokers, _folder: folder }
    }

    /// The brokers, in the order of their ids, which begin with 1.
    pub fn brokers(&self) -> &[Arc<Broker>] {
        &self.brokers
    }

    /// The broker with this id.
    pub fn broker(&self, id: i32) -> &Arc<Broker> {
        self.brokers.iter().find(|broker| broker.id() == id).expect("a broker has this id")
    }
}

impl Deref for KafkaCluster {
    type Target = Kafka;

    fn deref(&self) -> &Kafka {
        &self.kafka
    }
}

/// Starts a broker once and has the JVM write down, at its end, the classes it loaded.
pub(super) fn record_classes(installed: &Installed, archive: &Path) {
    eprintln!("kafka: recording the classes of a broker, once");
    let option = format!("-XX:ArchiveClassesAtExit={}", archive.display());
    let cluster = KafkaCluster::start_with(&KafkaOptions::one().heap_mb(256), installed, &[option]);
    exercise(&cluster);
    for broker in cluster.brokers() {
        broker.stop_blocking();
    }
    assert!(archive.exists(), "the JVM wrote no archive of classes");
}

/// Has the broker load what tests use, too.
fn exercise(kafka: &Kafka) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let topic = kafka.topic("exercise", 1).await;
        kafka.produce_committed(&topic, [Record::to(0).value("committed")]).await;
        kafka.watermarks(&topic, 0).await;
        kafka.join_and_leave(&topic).await;
        kafka.delete_topic(&topic).await;
    });
}

fn properties(
    options: &KafkaOptions,
    id: i32,
    port: u16,
    controller_port: u16,
    ports: &[(u16, u16)],
) -> Vec<(String, String)> {
    let voters: Vec<String> =
        ports.iter().zip(1..).map(|((_, controller), id)| format!("{id}@127.0.0.1:{controller}")).collect();
    let replicas = options.brokers.to_string();
    let in_sync = if options.brokers >= 3 { "2" } else { "1" }.to_owned();
    let mut properties: Vec<(String, String)> = vec![
        ("node.id".into(), id.to_string()),
        ("process.roles".into(), "broker,controller".into()),
        ("listeners".into(), listeners(options, "127.0.0.1", port, Some(controller_port))),
        ("advertised.listeners".into(), listeners(options, "localhost", port, None)),
        ("controller.quorum.voters".into(), voters.join(",")),
        ("min.insync.replicas".into(), in_sync.clone()),
        ("transaction.state.log.min.isr".into(), in_sync.clone()),
        ("share.coordinator.state.topic.min.isr".into(), in_sync),
    ];
    for key in ["default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic"] {
        properties.push((format!("{key}.replication.factor"), replicas.clone()));
    }
    properties.extend(TUNING.iter().map(|(key, value)| ((*key).into(), (*value).into())));
    for (key, value) in &options.overrides {
        properties.retain(|(known, _)| known != key);
        properties.push((key.clone(), value.clone()));
    }
    properties
}

/// The plain listener, always by number, then further ones on a host, then the controller's.
fn listeners(options: &KafkaOptions, host: &str, port: u16, controller: Option<u16>) -> String {
    let mut all = vec![format!("PLAINTEXT://127.0.0.1:{port}")];
    all.extend(options.listeners.iter().map(|(name, port)| format!("{name}://{host}:{port}")));
    all.extend(controller.map(|port| format!("CONTROLLER://127.0.0.1:{port}")));
    all.join(",")
}

/// Every line makes a start, a first group, a rebalance or a loss quicker, or the broker smaller.
const TUNING: &[(&str, &str)] = &[
    ("controller.listener.names", "CONTROLLER"),
    ("auto.create.topics.enable", "false"),
    ("offsets.topic.num.partitions", "1"),
    ("transaction.state.log.num.partitions", "1"),
    ("share.coordinator.state.topic.num.partitions", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.min.session.timeout.ms", "1000"),
    ("group.consumer.min.session.timeout.ms", "1000"),
    ("group.consumer.min.heartbeat.interval.ms", "200"),
    ("group.consumer.session.timeout.ms", "6000"),
    ("group.consumer.heartbeat.interval.ms", "1000"),
    // 128 MB by default, which a small heap has not.
    ("log.cleaner.dedupe.buffer.size", "1048577"),
    ("broker.session.timeout.ms", "3000"),
    ("broker.heartbeat.interval.ms", "500"),
    ("controlled.shutdown.retry.backoff.ms", "200"),
    // Transactions left behind by a killed producer end within a test's patience.
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"),
    ("log.segment.delete.delay.ms", "1000"),
    ("num.network.threads", "2"),
    ("num.io.threads", "2"),
    ("num.recovery.threads.per.data.dir", "1"),
    ("background.threads", "2"),
];
