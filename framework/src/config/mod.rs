//! The configuration: one file, the environment over it, and every mistake named with its place.
//!
//! In the order of reading: the file becomes a tree whose values know their lines, variables are laid over it, sections are read key by key, rules over
//! several keys are checked. Every default stands in [`REFERENCE`], which a test compares with the code.
//!
//! Must not: open a connection, or print a value that may be a secret.

mod de;
mod environment;
mod error;
mod http;
mod kafka;
mod later;
mod librdkafka;
mod redact;
mod resolved;
mod rules;
mod secret;
mod section;
mod sink;
mod target;
#[cfg(test)]
mod tests;
mod tree;
mod units;

use std::path::Path;

pub use crate::kafka::GroupProtocol;
pub use environment::Environment;
pub use error::ConfigError;
pub use http::HttpSection;
pub use kafka::{KafkaProperties, KafkaSection, RefusedProperty};
pub use librdkafka::Librdkafka;
pub use resolved::{Resolved, ResolvedKey};
pub use secret::Secret;
pub use sink::{BatchSection, OnBadRecord, OnExpired, SinkSection, parse_policy};
pub use target::{Kind, TargetSection};

/// The defaults of a sink, for those who have no file.
pub(crate) mod defaults {
    pub(crate) use super::sink::{
        BATCH_BYTES, BATCH_LINGER, BATCH_ROWS, DRAIN, FOREIGN_KEY_WAIT, MEMORY, TIMEOUT, WRITERS,
    };
}

pub(crate) use units::show_duration;

use error::{Place, Problems};
use section::Section;
use tree::{Node, Table, Value};

/// Every key with its default and what it means.
pub const REFERENCE: &str = include_str!("reference.toml");

/// What a program knows beside the framework's own keys.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// librdkafka's properties.
    pub kafka: &'a dyn KafkaProperties,
    /// Sink kinds.
    pub kinds: &'a [Kind],
}

/// The configuration of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `[kafka]`.
    pub kafka: KafkaSection,
    /// `[http]`.
    pub http: HttpSection,
    /// `[sinks.<name>]` by name; at least one.
    pub sinks: Vec<SinkSection>,
}

impl Config {
    /// Reads a file and lays the environment over it.
    ///
    /// # Errors
    /// All mistakes that can be found at once, one a line.
    pub fn load(path: &Path, environment: &Environment, known: &Known<'_>) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        Self::parse(&Self::text(path)?, &name, environment, known)
    }

    pub(crate) fn text(path: &Path) -> Result<String, ConfigError> {
        std::fs::read_to_string(path).map_err(|error| {
            let remedy =
                "name another file with --config, or write one: two lines for Kafka, three for a sink";
            let name = path.display().to_string();
            ConfigError::one(&Place::file(&name), format!("cannot be read: {error}; {remedy}"))
        })
    }

    /// The same for text; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(
        text: &str,
        name: &str,
        environment: &Environment,
        known: &Known<'_>,
    ) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let mut root = tree::parse(text, name, environment, &mut problems)?;
        environment::overlay(&mut root, environment, &mut problems);

        let node = Node { at: Place::file(name), path: String::new(), value: Value::Table(root) };
        let mut top = Section::of(node, &mut problems);
        let [kafka, http, sinks] = ["kafka", "http", "sinks"].map(|key| top.take(key));
        top.finish();

        let section = |node: Option<Node>, key: &str| {
            node.unwrap_or_else(|| Node {
                at: Place::file(name),
                path: key.to_owned(),
                value: Value::Table(Table::new()),
            })
        };
        let kafka = kafka::read(Section::of(section(kafka, "kafka"), &mut problems), known.kafka);
        let http = http::read(Section::of(section(http, "http"), &mut problems));
        let mut read = Vec::new();
        for (sink, node) in Section::of(section(sinks, "sinks"), &mut problems).rest() {
            read.extend(sink::read(&sink, node, known.kinds, &mut problems));
        }
        if read.is_empty() && problems.is_empty() {
            problems.add(&Place::file(name), "there is no sink; write a table [sinks.<name>]");
        }
        rules::check(&read, &mut problems);
        let config = match (kafka, http) {
            (Some(kafka), Some(http)) => Some(Self { kafka, http, sinks: read }),
            _ => None,
        };
        problems.or(config)
    }
}
