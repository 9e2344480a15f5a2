//! `[kafka]`: librdkafka's own names, without those that would break the guarantee.
//!
//! Invariant: what comes out has been accepted by librdkafka's own check, and none of the forced properties is in it.

use std::collections::BTreeMap;
use std::fmt;

use super::error::{Place, hint};
use super::secret::Secret;
use super::section::Section;
use super::tree::{Node, Table, Value};
use crate::kafka::GroupProtocol;

/// What librdkafka knows about its properties; given from outside, so that reading a file needs no client.
pub trait KafkaProperties: Sync {
    /// The names that librdkafka knows, perhaps without its aliases; they serve for the nearest name.
    fn known(&self) -> Vec<String>;

    /// Asks librdkafka whether it would accept this value.
    ///
    /// # Errors
    /// Whether the name or the value is wrong.
    fn check(&self, property: &str, value: &str) -> Result<(), RefusedProperty>;
}

/// Why librdkafka does not take a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedProperty {
    /// It has none of this name.
    Unknown,
    /// The value does not fit; in its own words.
    Invalid(String),
}

/// `[kafka]`.
#[derive(Clone, PartialEq)]
pub struct KafkaSection {
    /// Properties for librdkafka by its names, `bootstrap.servers` and `group.protocol` among them.
    pub properties: BTreeMap<String, Secret>,
    /// The rebalance protocol.
    pub protocol: GroupProtocol,
}

impl KafkaSection {
    /// The brokers to begin with, for messages.
    pub fn brokers(&self) -> &str {
        self.properties.get(BROKERS).map_or("", Secret::expose)
    }

    /// Whether connections are made with TLS.
    pub fn is_encrypted(&self) -> bool {
        let protocol = self.properties.get("security.protocol").map_or("", Secret::expose);
        protocol.to_ascii_lowercase().ends_with("ssl")
    }

    /// The properties with the values that their files have now.
    ///
    /// # Errors
    /// A file that cannot be read any more; the message names property and file.
    pub fn current(&self) -> Result<BTreeMap<String, String>, String> {
        let read = |(name, value): (&String, &Secret)| match value.current() {
            Ok(value) => Ok((name.clone(), value)),
            Err(error) => Err(format!("kafka: {name:?}: {error}")),
        };
        self.properties.iter().map(read).collect()
    }
}

impl fmt::Debug for KafkaSection {
    /// Names only: a password can stand in many properties.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSection")
            .field("protocol", &self.protocol)
            .field("properties", &self.properties.keys())
            .finish()
    }
}

const BROKERS: &str = "bootstrap.servers";
const ALIASES: [&str; 2] = ["brokers", "metadata.broker.list"];
const PROTOCOL: &str = "group.protocol";
const SESSION_TIMEOUT: &str = "session.timeout.ms";

/// A killed process blocks its successor until the group lets it go. The database fences a false eviction off, which makes that one cheap.
pub(crate) const SESSION_TIMEOUT_MS: &str = "10000";

/// Forced by the sink, with the reason.
const FORCED: [(&str, &str); 11] = [
    (
        "enable.auto.commit",
        "offsets live in the database, in the transaction of the rows; a commit to Kafka decides nothing",
    ),
    ("enable.auto.offset.store", "offsets live in the database, in the transaction of the rows"),
    (
        "auto.offset.reset",
        "every position comes from the database, a jump would lose or double rows; see start and on_expired of the sink",
    ),
    ("isolation.level", "records of aborted transactions must not become rows: it is always read_committed"),
    (
        "enable.partition.eof",
        "the end of a partition is how offsets without records are passed over: it is always on",
    ),
    (
        "partition.assignment.strategy",
        "it is always cooperative-sticky, so that the partitions which stay flow on through a rebalance",
    ),
    ("group.id", "the group belongs to the sink; write group in [sinks.<name>]"),
    ("allow.auto.create.topics", "a mistyped topic must be an error, not a new topic"),
    ("check.crcs", "without it a flipped byte was delivered as a record: it is always on"),
    (
        "heartbeat.interval.ms",
        "it follows session.timeout.ms; under group.protocol = \"consumer\" the broker decides both",
    ),
    ("queued.max.messages.kbytes", "memory of the sink bounds what is read ahead"),
];

pub(crate) fn read(mut section: Section<'_>, known: &dyn KafkaProperties) -> Option<KafkaSection> {
    let mut given: BTreeMap<String, (String, Node)> = BTreeMap::new();
    flatten(section.rest(), "", &mut |written, node| {
        let name = if ALIASES.contains(&written.as_str()) { BROKERS.to_owned() } else { written.clone() };
        match given.get(&name) {
            Some((_, other)) if other.at.is_variable() && !node.at.is_variable() => {}
            Some((first, other)) if other.at.is_variable() == node.at.is_variable() => {
                let and =
                    if *first == written { String::new() } else { format!(" as {first:?} and {written:?}") };
                section
                    .problems
                    .add((&node.at).max(&other.at), format!("kafka: {name:?} is given twice{and}"));
            }
            _ => {
                given.insert(name, (written, node));
            }
        }
    });
    let names = known.known();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["brokers"]).collect();
    let mut properties = BTreeMap::new();
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for (name, (written, node)) in given {
        match property(&name, &written, &node, &names, known) {
            Ok(value) => {
                places.insert(name.clone(), node.at);
                properties.insert(name, value);
            }
            Err(message) => section.problems.add(&node.at, message),
        }
    }
    if !properties.contains_key(BROKERS) && section.problems.is_empty() {
        section.problems.add(
            &section.at,
            "key \"brokers\" is missing in [kafka]; write for instance: brokers = \"localhost:9092\"",
        );
    }
    let protocol = match properties.get(PROTOCOL).map(Secret::expose) {
        Some("consumer") => GroupProtocol::Consumer,
        _ => GroupProtocol::Cooperative,
    };
    properties.entry(PROTOCOL.to_owned()).or_insert_with(|| Secret::literal("classic"));
    match protocol {
        GroupProtocol::Cooperative => {
            properties
                .entry(SESSION_TIMEOUT.to_owned())
                .or_insert_with(|| Secret::literal(SESSION_TIMEOUT_MS));
        }
        GroupProtocol::Consumer => {
            if let Some(at) = places.get(SESSION_TIMEOUT) {
                section.problems.add(
                    at,
                    "kafka: \"session.timeout.ms\" cannot be set under group.protocol = \"consumer\": the broker decides it \
                     for the group (its group.consumer.session.timeout.ms)",
                );
            }
        }
    }
    Some(KafkaSection { properties, protocol })
}

/// Dotted keys, quoted or nested, become one name.
fn flatten(table: Table, parent: &str, found: &mut impl FnMut(String, Node)) {
    for (key, node) in table {
        let name = if parent.is_empty() { key } else { format!("{parent}.{key}") };
        match node.value {
            Value::Table(inner) => flatten(inner, &name, found),
            value => found(name.clone(), Node { value, path: name, at: node.at }),
        }
    }
}

fn property(
    name: &str,
    written: &str,
    node: &Node,
    names: &[&str],
    known: &dyn KafkaProperties,
) -> Result<Secret, String> {
    if let Some((_, reason)) = FORCED.iter().find(|(forced, _)| *forced == name) {
        return Err(format!("kafka: {written:?} cannot be set: {reason}"));
    }
    let value = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => Secret::literal(number.to_string()),
        Value::Float(number) => Secret::literal(number.to_string()),
        Value::Boolean(boolean) => Secret::literal(boolean.to_string()),
        other => {
            return Err(format!(
                "kafka: {written:?}: expected a string, a number or a boolean, found {}",
                other.kind()
            ));
        }
    };
    if name == BROKERS && value.expose().trim().is_empty() {
        return Err(format!("kafka: {written:?} must not be empty"));
    }
    if name == PROTOCOL && !["classic", "consumer"].contains(&value.expose()) {
        return Err(format!(
            "kafka: {written:?}: unknown value {:?}; known here: classic, consumer",
            value.template()
        ));
    }
    match known.check(name, value.expose()) {
        Ok(()) => Ok(value),
        Err(RefusedProperty::Unknown) => {
            Err(format!("unknown key {written:?} in [kafka]{}", hint(written, names)))
        }
        Err(RefusedProperty::Invalid(message)) if value.is_indirect() => {
            Err(format!("kafka: {written:?}: {}", message.replace(value.expose(), value.template())))
        }
        Err(RefusedProperty::Invalid(message)) => Err(format!("kafka: {written:?}: {message}")),
    }
}
