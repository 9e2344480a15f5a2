//! Topics, partitions and watermarks of a running cluster, ours or a foreign one.
//!
//! Every call makes its own short-lived client where a long-lived one could go stale when brokers are killed.

use std::fmt;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::topic_id;

const DEADLINE: Duration = Duration::from_secs(60);
const CALL: Duration = Duration::from_secs(10);

/// The ends of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// The first offset that still exists.
    pub start: i64,
    /// The high watermark: the offset that the next record gets.
    pub high: i64,
    /// The last stable offset: where the first open transaction begins, or the high watermark.
    pub last_stable: i64,
}

/// A client of a cluster, for what tests do from outside.
pub struct Kafka {
    bootstrap: String,
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("bootstrap", &self.bootstrap).finish()
    }
}

/// Says nothing on standard error: refused connections are part of these tests.
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}
    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ConsumerContext for Quiet {}

/// 22 characters of base64url, as Kafka writes its ids.
pub(super) fn random_kafka_id() -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut rest = uuid::Uuid::new_v4().as_u128();
    // 128 bits are 21 digits of six bits and one of two; the decoder wants the last digit's low bits empty. A first
    // digit "-" would read as an option on a command line, so the first one is a letter.
    let mut text = String::from("A");
    for _ in 0..20 {
        text.push(char::from(DIGITS[(rest & 63) as usize]));
        rest >>= 6;
    }
    text.push('A');
    text
}

pub(super) fn config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("reconnect.backoff.ms", "20")
        .set("reconnect.backoff.max.ms", "200")
        .set("socket.nagle.disable", "true");
    config
}

/// A consumer without a group.
pub(super) fn plain_consumer(bootstrap: &str, settings: &[(&str, &str)]) -> BaseConsumer<Quiet> {
    let mut config = config(bootstrap);
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create_with_context(Quiet).expect("making a consumer")
}

impl Kafka {
    /// A client of the cluster behind `bootstrap` (`host:port`, comma-separated). Nothing is contacted yet.
    pub fn connect(bootstrap: &str) -> Self {
        Self { bootstrap: bootstrap.to_owned() }
    }

    /// The value for `bootstrap.servers`.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The basis of a client's configuration for this cluster: addresses and quick reconnects.
    pub fn client_config(&self) -> ClientConfig {
        config(&self.bootstrap)
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        let mut config = config(&self.bootstrap);
        config.set("log_level", "0").create().expect("making an admin client")
    }

    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(Self) -> T + Send + 'static) -> T {
        let own = Self::connect(&self.bootstrap);
        tokio::task::spawn_blocking(move || work(own)).await.expect("a blocking call to Kafka")
    }

    /// Makes a topic with a name of its own beginning with `stem`, and gives its name.
    pub async fn topic(&self, stem: &str, partitions: i32) -> String {
        let name = crate::topic(stem);
        self.create_topic(&name, partitions, &[]).await;
        name
    }

    /// Makes a topic with the cluster's replication factor and waits until the metadata show a leader for every
    /// partition. `config` holds topic settings such as `("retention.ms", "1000")`.
    pub async fn create_topic(&self, name: &str, partitions: i32, config: &[(&str, &str)]) {
        // -1: the cluster's default.
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(-1));
        for (key, value) in config {
            topic = topic.set(key, value);
        }
        let answers = self.admin().create_topics([&topic], &options()).await.expect("asking for a topic");
        answers
            .into_iter()
            .next()
            .expect("an answer")
            .unwrap_or_else(|(name, e)| panic!("creating {name}: {e}"));
        self.wait_for_partitions(name, partitions).await;
    }

    /// Waits until the metadata show this many partitions, each with a leader.
    pub async fn wait_for_partitions(&self, name: &str, partitions: i32) {
        let wanted = usize::try_from(partitions).expect("a count of partitions");
        let owned = name.to_owned();
        self.blocking(move |kafka| {
            let name = owned;
            let consumer = plain_consumer(&kafka.bootstrap, &[]);
            poll_until(&format!("{wanted} partitions of {name}"), || {
                let metadata = consumer.fetch_metadata(Some(&name), CALL).ok()?;
                let found = metadata.topics().iter().find(|topic| topic.name() == name)?.partitions();
                let led = found.iter().filter(|p| p.leader() > 0 && p.error().is_none()).count();
                (found.len() == wanted && led == wanted).then_some(())
            });
        })
        .await;
        // DescribeTopics may trail the metadata by some milliseconds.
        self.topic_id(name).await;
    }

    /// Deletes a topic and waits until the metadata no longer show it.
    pub async fn delete_topic(&self, name: &str) {
        let answers =
            self.admin().delete_topics(&[name], &options()).await.expect("asking to delete a topic");
        answers
            .into_iter()
            .next()
            .expect("an answer")
            .unwrap_or_else(|(name, e)| panic!("deleting {name}: {e}"));
        let name = name.to_owned();
        self.blocking(move |kafka| {
            let consumer = plain_consumer(&kafka.bootstrap, &[]);
            poll_until(&format!("the end of {name}"), || {
                let metadata = consumer.fetch_metadata(Some(&name), CALL).ok()?;
                let topic = metadata.topics().iter().find(|topic| topic.name() == name);
                topic.is_none_or(|topic| topic.error().is_some()).then_some(())
            });
        })
        .await;
    }

    /// Raises the number of partitions to `total` and waits until the metadata show them.
    pub async fn grow(&self, name: &str, total: i32) {
        let count = usize::try_from(total).expect("a count of partitions");
        let growth = NewPartitions::new(name, count);
        let answers =
            self.admin().create_partitions([&growth], &options()).await.expect("asking to grow a topic");
        answers
            .into_iter()
            .next()
            .expect("an answer")
            .unwrap_or_else(|(name, e)| panic!("growing {name}: {e}"));
        self.wait_for_partitions(name, total).await;
    }

    /// Deletes the partition's records below `before`, as retention would.
    pub async fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(before)).expect("an offset");
        let answer = self.admin().delete_records(&list, &options()).await.expect("asking to delete records");
        let element = answer.find_partition(topic, partition).expect("an answer for the partition");
        element.error().expect("deleting records");
    }

    /// The ends of a partition as its leader tells them now.
    pub async fn watermarks(&self, topic: &str, partition: i32) -> Watermarks {
        let topic = topic.to_owned();
        self.blocking(move |kafka| {
            let ends = |isolation| {
                let consumer = plain_consumer(&kafka.bootstrap, &[("isolation.level", isolation)]);
                poll_until(&format!("watermarks of {topic}/{partition}"), || {
                    consumer.fetch_watermarks(&topic, partition, CALL).ok()
                })
            };
            let (start, high) = ends("read_uncommitted");
            let (_, last_stable) = ends("read_committed");
            Watermarks { start, high, last_stable }
        })
        .await
    }

    /// The high watermark.
    pub async fn high_watermark(&self, topic: &str, partition: i32) -> i64 {
        self.watermarks(topic, partition).await.high
    }

    /// Whether the coordinator knows a consumer group of this name.
    pub async fn has_group(&self, group: &str) -> bool {
        let group = group.to_owned();
        self.blocking(move |kafka| {
            let consumer = plain_consumer(&kafka.bootstrap, &[]);
            poll_until("its groups", || {
                let list = consumer.fetch_group_list(None, CALL).ok()?;
                Some(list.groups().iter().any(|known| known.name() == group && known.state() != "Dead"))
            })
        })
        .await
    }

    /// Commits offsets for a group without a member, as another tool may have left them.
    pub async fn commit_offsets(&self, group: &str, topic: &str, offsets: &[(i32, i64)]) {
        let (group, mut list) = (group.to_owned(), TopicPartitionList::new());
        for (partition, offset) in offsets {
            list.add_partition_offset(topic, *partition, Offset::Offset(*offset)).expect("an offset");
        }
        self.blocking(move |kafka| {
            let consumer = plain_consumer(&kafka.bootstrap, &[("group.id", &group)]);
            consumer.commit(&list, CommitMode::Sync).expect("committing offsets");
        })
        .await;
    }

    /// The topic's id in Kafka's base64 form. It changes when a topic is deleted and made again.
    pub async fn topic_id(&self, topic: &str) -> String {
        let topic = topic.to_owned();
        self.blocking(move |kafka| {
            let consumer = plain_consumer(&kafka.bootstrap, &[]);
            poll_until(&format!("the id of {topic}"), || topic_id::describe(&consumer, &topic))
        })
        .await
    }

    /// The cluster's id.
    pub async fn cluster_id(&self) -> String {
        self.blocking(|kafka| {
            let consumer = plain_consumer(&kafka.bootstrap, &[]);
            poll_until("the cluster's id", || consumer.client().fetch_cluster_id(CALL))
        })
        .await
    }

    /// The broker that leads the partition now.
    pub async fn leader(&self, topic: &str, partition: i32) -> i32 {
        let topic = topic.to_owned();
        self.blocking(move |kafka| {
            let consumer = plain_consumer(&kafka.bootstrap, &[]);
            poll_until(&format!("the leader of {topic}/{partition}"), || {
                let metadata = consumer.fetch_metadata(Some(&topic), CALL).ok()?;
                let partitions = metadata.topics().first()?.partitions();
                Some(partitions.iter().find(|p| p.id() == partition)?.leader()).filter(|leader| *leader > 0)
            })
        })
        .await
    }

    /// Joins a group of its own with the newer protocol, reads a record of the topic, and leaves.
    pub(super) async fn join_and_leave(&self, topic: &str) {
        let topic = topic.to_owned();
        self.blocking(move |kafka| {
            for protocol in ["classic", "consumer"] {
                let group = crate::unique("exercise");
                let settings =
                    [("group.id", &*group), ("group.protocol", protocol), ("auto.offset.reset", "earliest")];
                let consumer = plain_consumer(&kafka.bootstrap, &settings);
                consumer.subscribe(&[&topic]).expect("subscribing");
                poll_until("a record", || consumer.poll(Duration::from_millis(100))?.ok().map(drop));
            }
        })
        .await;
    }

    /// Waits until this many brokers are in the metadata.
    pub(super) fn wait_for_brokers(&self, count: usize) {
        let consumer = plain_consumer(&self.bootstrap, &[]);
        poll_until(&format!("{count} brokers"), || {
            let metadata = consumer.fetch_metadata(None, CALL).ok()?;
            (metadata.brokers().len() == count).then_some(())
        });
    }
}

fn options() -> AdminOptions {
    // The operation timeout makes the broker answer only when the change is done.
    AdminOptions::new().operation_timeout(Some(CALL)).request_timeout(Some(DEADLINE))
}

fn poll_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < DEADLINE, "Kafka did not show {what} within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
