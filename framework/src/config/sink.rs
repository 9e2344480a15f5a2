//! `[sinks.<name>]`: what one sink reads, how it writes, and where to.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::de;
use super::error::{ConfigError, Place, Problems, hint};
use super::section::{self, Section};
use super::target::{self, Kind, TargetSection};
use super::tree::{Node, Table, Value};
use crate::position::StartPolicy;
use crate::topics::Topics;

pub(crate) const WRITERS: i64 = 2;
pub(crate) const BATCH_ROWS: i64 = 10_000;
pub(crate) const BATCH_BYTES: u64 = 4 << 20;
pub(crate) const BATCH_LINGER: Duration = Duration::from_millis(5);
pub(crate) const MEMORY: u64 = 64 << 20;
pub(crate) const DRAIN: Duration = Duration::from_secs(20);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const FOREIGN_KEY_WAIT: Duration = Duration::from_secs(5);

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// `[sinks.<name>]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkSection {
    /// The sink's name, `[a-z][a-z0-9_]*`.
    pub name: String,
    /// Topics by name, and patterns, which begin with `^`; at least one, none twice. See [`Topics`].
    pub topics: Vec<String>,
    /// Kafka group, and `consumer_group` of the stored offsets. At most 255 characters.
    pub group: String,
    /// Where a topic begins that has no stored offset.
    pub start: StartPolicy,
    /// Connections, each with one transaction at a time.
    pub writers: usize,
    /// Limits of one batch.
    pub batch: BatchSection,
    /// Bytes of records read and not yet committed, over all partitions.
    pub memory: u64,
    /// How long SIGTERM waits for the transaction in flight.
    pub drain: Duration,
    /// Of one statement.
    pub timeout: Duration,
    /// When a stored offset lies below the log start.
    pub on_expired: OnExpired,
    /// When a record cannot become a row.
    pub on_bad_record: OnBadRecord,
    /// How long a record may wait for the row that its foreign key refers to before it counts as bad.
    pub foreign_key_wait: Duration,
    /// `into_rows = "accept"`: the first claim may begin although the table holds rows.
    pub into_rows: bool,
    /// `[sinks.<name>.target]`.
    pub target: TargetSection,
    /// `table` and `tables`, for sinks that read them.
    pub(crate) tables: Table,
    pub(crate) places: Places,
}

/// Limits of one batch; a batch is what came in while the last one committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSection {
    /// Most records.
    pub rows: usize,
    /// Most bytes of keys, values and headers.
    pub bytes: u64,
    /// How long a batch that is not full waits for more.
    pub linger: Duration,
}

/// What to do when a stored offset has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnExpired {
    /// The partition stops; the lost range is named.
    #[default]
    Stop,
    /// Goes on from there; the lost range is named and counted.
    Continue(StartPolicy),
}

/// What to do with a record that cannot become a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnBadRecord {
    /// The partition stops before it.
    #[default]
    Stop,
    /// It is kept among the dead letters, in the transaction of the records around it.
    DeadLetter,
    /// It is passed over, counted and told in the log.
    Skip,
}

impl OnBadRecord {
    const WORDS: [&str; 3] = ["stop", "dead-letter", "skip"];

    /// The word in the file.
    pub const fn word(self) -> &'static str {
        let [stop, dead_letter, skip] = Self::WORDS;
        match self {
            Self::Stop => stop,
            Self::DeadLetter => dead_letter,
            Self::Skip => skip,
        }
    }
}

/// Where the keys stand that rules over several sections speak of. All places are equal: two files that say the same are the same.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) group: Place,
    pub(crate) memory: Place,
    pub(crate) batch_bytes: Option<Place>,
}

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SinkSection {
    /// The sink's own keys of `[sinks.<name>.target]`, and `table` and `tables` when they are given, as the sink's `Config`.
    ///
    /// # Errors
    /// Unknown, missing or wrong keys, with file, line and the nearest known key.
    pub fn sink_config<C: DeserializeOwned>(&self) -> Result<C, ConfigError> {
        let mut keys = self.target.own.clone();
        keys.extend(self.tables.clone());
        let path = format!("sinks.{}.target", self.name);
        let root = Node { at: self.target.at.clone(), path, value: Value::Table(keys) };
        de::from_node(root)
    }
}

pub(crate) fn read(name: &str, node: Node, kinds: &[Kind], problems: &mut Problems) -> Option<SinkSection> {
    if !is_name(name) {
        problems.add(
            &node.at,
            format!("{name:?} is no name for a sink: small letters, digits and _ only, a letter first, so that ONCESINK_SINKS__... can address it"),
        );
    }
    let mut section = Section::of(node, problems);
    let group_at = section.place_of("group");
    let memory_at = section.place_of("memory");
    let topics = section.required("topics", "[\"orders\"]", |node| Ok(node.clone()));
    let group = section.optional("group", |node| group(section::filled(node)?));
    let start = section.optional("start", policy).unwrap_or_default();
    let writers_at = section.place_of("writers");
    let writers = section.optional("writers", |node| section::integer(node, 1, 64));
    let batch_node = section.take("batch");
    let memory = section.optional("memory", |node| section::bytes(node, 1 << 20, 1 << 40)).unwrap_or(MEMORY);
    let drain =
        section.optional("drain", |node| section::duration(node, Duration::ZERO, HOUR)).unwrap_or(DRAIN);
    let timeout =
        section.optional("timeout", |node| section::duration(node, SECOND, HOUR)).unwrap_or(TIMEOUT);
    let on_expired = section.optional("on_expired", on_expired).unwrap_or_default();
    let on_bad_record = section.optional("on_bad_record", on_bad_record).unwrap_or_default();
    let foreign_key_wait = section
        .optional("foreign_key_wait", |node| section::duration(node, Duration::ZERO, HOUR))
        .unwrap_or(FOREIGN_KEY_WAIT);
    let into_rows = section.optional("into_rows", |node| section::word(node, &["accept"])).is_some();
    let mut tables = Table::new();
    for key in ["table", "tables"] {
        if let Some(node) = section.take(key) {
            tables.insert(key.to_owned(), node);
        }
    }
    let example = "{ kind = \"postgres\", url = \"postgres://app@localhost/shop\" }";
    let target = section.required("target", example, |node| Ok(node.clone()));
    let (path, sink_at) = (section.path.clone(), section.at.clone());
    section.finish();

    let (topics, read) = topics.map(|node| read_topics(&node, problems)).unwrap_or_default();
    check_tables(&tables, &read, &path, problems);
    let target = target.and_then(|node| target::read(Section::of(node, problems), kinds));
    let kind = target.as_ref().and_then(|target| kinds.iter().find(|kind| kind.name == target.kind));
    let writers = match (kind, writers) {
        (Some(kind), Some(given)) if kind.one_writer && given > 1 => {
            problems.add(
                &writers_at,
                format!("{path}.writers: kind = {:?} has one writer, since one connection writes at a time; leave the key out", kind.name),
            );
            1
        }
        (Some(kind), None) if kind.one_writer => 1,
        (_, given) => given.unwrap_or(WRITERS),
    };
    let limit = payload_limit(memory, writers);
    let bytes_at = batch_node.as_ref().and_then(bytes_place);
    let batch = read_batch(batch_node, limit, &path, &sink_at, problems);
    let target = target?;
    Some(SinkSection {
        name: name.to_owned(),
        topics,
        group: group.unwrap_or_else(|| format!("oncesink-{name}")),
        start,
        writers: usize::try_from(writers).ok()?,
        batch,
        memory,
        drain,
        timeout,
        on_expired,
        on_bad_record,
        foreign_key_wait,
        into_rows,
        target,
        tables,
        places: Places { group: group_at, memory: memory_at, batch_bytes: bytes_at },
    })
}

/// Resident memory is about three times the payload held.
pub(crate) fn payload_limit(memory: u64, writers: i64) -> u64 {
    memory / u64::try_from(writers).unwrap_or(1).max(1) / 3
}

fn bytes_place(batch: &Node) -> Option<Place> {
    match &batch.value {
        Value::Table(table) => table.get("bytes").map(|node| node.at.clone()),
        _ => None,
    }
}

fn read_batch(
    node: Option<Node>,
    limit: u64,
    parent: &str,
    at: &Place,
    problems: &mut Problems,
) -> BatchSection {
    let node = node.unwrap_or_else(|| Node {
        at: at.clone(),
        path: format!("{parent}.batch"),
        value: Value::Table(Table::new()),
    });
    let mut section = Section::of(node, problems);
    let rows = section.optional("rows", |node| section::integer(node, 1, 1_000_000)).unwrap_or(BATCH_ROWS);
    let bytes = section
        .optional("bytes", |node| section::bytes(node, 1 << 10, 1 << 29))
        .unwrap_or_else(|| BATCH_BYTES.min(limit));
    let linger = section
        .optional("linger", |node| section::duration(node, Duration::ZERO, Duration::from_secs(10)))
        .unwrap_or(BATCH_LINGER);
    section.finish();
    BatchSection { rows: usize::try_from(rows).unwrap_or(1), bytes, linger }
}

fn read_topics(node: &Node, problems: &mut Problems) -> (Vec<String>, Topics) {
    let mut read = Topics::default();
    let mut topics = Vec::new();
    let listed = match section::strings(node) {
        Ok(listed) => listed,
        Err(message) => {
            problems.add(&node.at, format!("{}: {message}", node.path));
            return (topics, read);
        }
    };
    if listed.is_empty() {
        problems.add(&node.at, format!("{}: must name at least one topic", node.path));
    }
    for (at, topic) in listed {
        match read.add(&topic) {
            Ok(()) => topics.push(topic),
            Err(message) => problems.add(&at, format!("{}: {message}", node.path)),
        }
    }
    (topics, read)
}

/// A table for a topic that is not read would be ignored in silence.
fn check_tables(tables: &Table, topics: &Topics, path: &str, problems: &mut Problems) {
    let Some(Value::Table(by_topic)) = tables.get("tables").map(|node| &node.value) else { return };
    // A list that could not be read was told already.
    if topics.is_empty() {
        return;
    }
    for (topic, node) in by_topic.iter().filter(|(topic, _)| !topics.select(topic)) {
        let names: Vec<&str> = topics.names().iter().map(|name| &**name).collect();
        let none = if topics.patterns().is_empty() { "" } else { ", and no pattern there matches it" };
        problems.add(
            &node.at,
            format!(
                "{path}.tables.{topic:?}: no topic of this name stands in topics{none}{}",
                hint(topic, &names)
            ),
        );
    }
}

fn group(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    if length > 255 {
        return Err(format!("a group has at most 255 characters, this one has {length}"));
    }
    if text != text.trim() {
        return Err(format!(
            "{text:?} begins or ends with a blank: databases that pad would take it for another group"
        ));
    }
    Ok(text.to_owned())
}

fn policy(node: &Node) -> Result<StartPolicy, String> {
    let text = match &node.value {
        Value::Time(time) => time.as_str(),
        _ => section::text(node)?,
    };
    parse_policy(text).ok_or_else(|| {
        format!("unknown value {text:?}; write earliest, latest or a time like \"2026-11-01T00:00:00Z\"")
    })
}

/// `earliest`, `latest` or an RFC 3339 time.
pub fn parse_policy(text: &str) -> Option<StartPolicy> {
    match text {
        "earliest" => Some(StartPolicy::Earliest),
        "latest" => Some(StartPolicy::Latest),
        time => {
            time.parse::<jiff::Timestamp>().ok().map(|time| StartPolicy::Timestamp(time.as_millisecond()))
        }
    }
}

fn on_expired(node: &Node) -> Result<OnExpired, String> {
    if matches!(&node.value, Value::Text(text) if text.expose() == "stop") {
        return Ok(OnExpired::Stop);
    }
    policy(node)
        .map(OnExpired::Continue)
        .map_err(|message| message.replace("write earliest", "write stop, earliest"))
}

fn on_bad_record(node: &Node) -> Result<OnBadRecord, String> {
    if let Value::Table(_) = &node.value {
        return Err("a policy with a limit (stop_after) is planned for a later version; write \"stop\", \"dead-letter\" or \"skip\"".to_owned());
    }
    let word = section::word(node, &OnBadRecord::WORDS)?;
    let policies = [OnBadRecord::Stop, OnBadRecord::DeadLetter, OnBadRecord::Skip];
    Ok(policies.into_iter().find(|policy| policy.word() == word).unwrap_or_default())
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| c.is_ascii_lowercase())
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__")
}
