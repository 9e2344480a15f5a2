//! The consumer's settings as librdkafka takes them.
//!
//! Invariant: whatever exactly-once rests on is forced here and cannot be overridden; the rest are defaults that a user's property replaces.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rdkafka::ClientConfig;

/// Properties that the framework sets itself; a configuration must not name them.
pub const FORCED_PROPERTIES: &[&str] = &[
    "group.id",
    "group.instance.id",
    "group.protocol",
    "partition.assignment.strategy",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "auto.offset.reset",
    "isolation.level",
    "enable.partition.eof",
    "check.crcs",
    "api.version.request",
    "broker.version.fallback",
    "topic.blacklist",
    "allow.auto.create.topics",
    "queued.max.messages.kbytes",
];

/// The protocol by which the group shares out partitions. The eager one is not offered: it takes everything away at each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupProtocol {
    /// The classic protocol with the cooperative-sticky assignor.
    #[default]
    Cooperative,
    /// KIP-848; needs brokers from 4.0 on.
    Consumer,
}

/// How often librdkafka looks for new partitions, and we for topics that match a pattern.
pub(crate) const METADATA_INTERVAL: &str = "topic.metadata.refresh.interval.ms";
pub(crate) const METADATA_EVERY: Duration = Duration::from_secs(10);

/// What a consumer is made of.
#[derive(Clone)]
pub struct ConsumerSettings {
    /// librdkafka's own properties, `bootstrap.servers` among them, checked by [`check_property`](super::check_property) before.
    pub properties: BTreeMap<String, String>,
    /// The group; it must be ours alone.
    pub group_id: String,
    /// A name that lets a restarted process have its partitions back without a rebalance.
    pub instance_id: Option<String>,
    /// How partitions are shared out.
    pub protocol: GroupProtocol,
    /// The topics to read.
    pub topics: Vec<String>,
    /// What may wait in one writer's queue, in thousands of bytes of payload; the memory taken is up to three times that.
    pub queue_kilobytes: u32,
    /// How many partitions one writer is expected to have: each may fetch its share of the queue at once.
    pub partitions_per_writer: usize,
    /// After how long without a heartbeat the group gives our partitions to others (classic protocol only).
    pub session_timeout: Duration,
    /// After how long without a turn of the thread librdkafka gives the partitions up.
    pub max_poll_interval: Duration,
    /// How long a revoke may wait for its answer before the thread answers by itself; the whole group waits with it.
    pub revoke_deadline: Duration,
}

impl fmt::Debug for ConsumerSettings {
    /// Of the properties the names only: a password can stand in many of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerSettings")
            .field("properties", &self.properties.keys())
            .field("group_id", &self.group_id)
            .field("protocol", &self.protocol)
            .field("topics", &self.topics)
            .finish_non_exhaustive()
    }
}

/// The largest first part of a partition in one fetch response, and the smallest: producers' batches are rarely larger.
const FETCH_SHARE_MAX: usize = 1_048_576;
const FETCH_SHARE_MIN: usize = 65_536;
/// A response may overshoot the queue's limit by its whole size, so it is small.
const FETCH_MAX: u64 = 1_048_576;
const MESSAGE_MAX_DEFAULT: u64 = 1_000_000;

impl ConsumerSettings {
    /// Settings with the defaults, for these brokers, group and topics.
    pub fn new(brokers: &str, group_id: &str, topics: Vec<String>) -> Self {
        Self {
            properties: BTreeMap::from([("bootstrap.servers".into(), brokers.into())]),
            group_id: group_id.into(),
            instance_id: None,
            protocol: GroupProtocol::default(),
            topics,
            queue_kilobytes: 8_192,
            partitions_per_writer: 8,
            session_timeout: Duration::from_secs(10),
            max_poll_interval: Duration::from_secs(300),
            revoke_deadline: Duration::from_secs(5),
        }
    }

    /// Takes the properties of the group that have fields of their own out of the given ones.
    pub fn take_group_properties(&mut self) {
        let mut take = |key: &str| self.properties.remove(key);
        take("group.protocol");
        let instance = take("group.instance.id");
        let session = take("session.timeout.ms").and_then(|value| value.parse().ok());
        let poll = take("max.poll.interval.ms").and_then(|value| value.parse().ok());
        self.instance_id = instance.or(self.instance_id.take());
        self.session_timeout = session.map_or(self.session_timeout, Duration::from_millis);
        self.max_poll_interval = poll.map_or(self.max_poll_interval, Duration::from_millis);
    }

    pub(super) fn client_config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        self.set_defaults(&mut config);
        for (key, value) in &self.properties {
            config.set(key, value);
        }
        self.set_forced(&mut config);
        self.set_group(&mut config);
        config
    }

    fn set_defaults(&self, config: &mut ClientConfig) {
        let fetch_max = FETCH_MAX.max(self.number("message.max.bytes", MESSAGE_MAX_DEFAULT));
        config
            .set("client.id", "oncesink")
            .set(METADATA_INTERVAL, METADATA_EVERY.as_millis().to_string())
            .set("fetch.queue.backoff.ms", "5")
            .set("fetch.max.bytes", fetch_max.to_string())
            // The limit in bytes governs; this one must not be met first.
            .set("queued.min.messages", "1000000");
        // librdkafka's own alias for it; with both set, chance would decide.
        if !self.properties.contains_key("max.partition.fetch.bytes") {
            config.set("fetch.message.max.bytes", self.fetch_share().to_string());
        }
        let fetch_max = self.number("fetch.max.bytes", fetch_max);
        if fetch_max + 512 > 100_000_000 {
            config.set("receive.message.max.bytes", (fetch_max + 512).to_string());
        }
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.properties.get(key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// A queue smaller than the sum of what its partitions may fetch at once starves some of them.
    fn fetch_share(&self) -> usize {
        let queue = usize::try_from(self.queue_kilobytes).unwrap_or(usize::MAX).saturating_mul(1000);
        (queue / self.partitions_per_writer.max(1)).clamp(FETCH_SHARE_MIN, FETCH_SHARE_MAX)
    }

    fn set_forced(&self, config: &mut ClientConfig) {
        config
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("enable.partition.eof", "true")
            .set("check.crcs", "true")
            .set("allow.auto.create.topics", "false")
            .set("max.poll.interval.ms", self.max_poll_interval.as_millis().to_string())
            .set("queued.max.messages.kbytes", self.queue_kilobytes.to_string());
        // By default a client speaks as the broker does. One that is told otherwise is given aborted records too.
        for key in ["api.version.request", "broker.version.fallback", "topic.blacklist"] {
            config.remove(key);
        }
    }

    fn set_group(&self, config: &mut ClientConfig) {
        config.set("group.id", &self.group_id);
        if let Some(instance) = &self.instance_id {
            config.set("group.instance.id", instance);
        }
        match self.protocol {
            GroupProtocol::Cooperative => {
                config
                    .set("group.protocol", "classic")
                    .set("partition.assignment.strategy", "cooperative-sticky")
                    .set("session.timeout.ms", self.session_timeout.as_millis().to_string())
                    .set(
                        "heartbeat.interval.ms",
                        (self.session_timeout.as_millis() / 4).min(3000).to_string(),
                    );
            }
            GroupProtocol::Consumer => {
                // The broker decides on these two, and librdkafka refuses them here.
                for key in ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"] {
                    config.remove(key);
                }
                config.set("group.protocol", "consumer");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::BaseConsumer;

    use super::*;

    fn settings() -> ConsumerSettings {
        ConsumerSettings::new("127.0.0.1:1", "group", vec!["topic".into()])
    }

    #[test]
    fn a_user_cannot_override_what_exactly_once_rests_on() {
        let mut settings = settings();
        for key in FORCED_PROPERTIES {
            settings.properties.insert((*key).into(), "from the user".into());
        }
        for protocol in [GroupProtocol::Cooperative, GroupProtocol::Consumer] {
            settings.protocol = protocol;
            settings.instance_id = Some("one".into());
            let config = settings.client_config();
            for key in FORCED_PROPERTIES {
                assert_ne!(config.get(key), Some("from the user"), "{key}");
            }
            assert_eq!(config.get("auto.offset.reset"), Some("error"));
        }
    }

    #[test]
    fn librdkafka_takes_both_protocols() {
        for protocol in [GroupProtocol::Cooperative, GroupProtocol::Consumer] {
            let settings = ConsumerSettings { protocol, ..settings() };
            settings.client_config().create::<BaseConsumer>().expect("a client");
        }
    }

    #[test]
    fn a_large_message_raises_the_limits_that_librdkafka_ties_to_it() {
        let mut settings = settings();
        settings.properties.insert("message.max.bytes".into(), "200000000".into());
        let config = settings.client_config();
        assert_eq!(config.get("fetch.max.bytes"), Some("200000000"));
        assert_eq!(config.get("receive.message.max.bytes"), Some("200000512"));
        config.create::<BaseConsumer>().expect("a client");
    }

    #[test]
    fn the_partitions_of_a_writer_share_its_queue() {
        let share = |queue_kilobytes, partitions_per_writer| {
            ConsumerSettings { queue_kilobytes, partitions_per_writer, ..settings() }.fetch_share()
        };
        assert_eq!(share(8192, 1), FETCH_SHARE_MAX);
        assert_eq!(share(8192, 32), 256_000);
        assert_eq!(share(1024, 1000), FETCH_SHARE_MIN);
        assert_eq!(share(1024, 0), 1_024_000);
    }

    #[test]
    fn a_users_value_replaces_a_default() {
        let mut settings = settings();
        settings.properties.insert("fetch.queue.backoff.ms".into(), "7".into());
        settings.properties.insert("max.partition.fetch.bytes".into(), "70000".into());
        let config = settings.client_config();
        assert_eq!(config.get("fetch.queue.backoff.ms"), Some("7"));
        assert_eq!(config.get("fetch.message.max.bytes"), None);
    }
}
