//! The effective configuration, written down: the file, the environment over it, and the defaults, each value with where it came from.
//!
//! Invariants: what is printed can be read again and then means the same, but for the secrets, which are `***`; a secret that comes from elsewhere stays the
//! reference that stands in the file. Must not: print a secret.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{ConfigError, Place, Problems};
use super::redact::redacted;
use super::section;
use super::tree::{self, Node, Table, Value};
use super::units::show_bytes;
use super::{Config, Environment, Known, REFERENCE, environment, kafka};
use crate::config::secret::Secret;

/// A key of the effective configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedKey {
    /// Sections, then the key: `["sinks", "orders", "batch", "rows"]`.
    pub path: Vec<String>,
    /// The value, secrets redacted.
    pub value: serde_json::Value,
    /// File and line, the variable of the environment, or `default`.
    pub from: String,
    toml: String,
    /// What the comment says; nothing for what stands in the file.
    remark: String,
}

/// The effective configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    keys: Vec<ResolvedKey>,
}

impl Resolved {
    /// Reads a file and lays the environment over it, as [`Config::load`] does.
    ///
    /// # Errors
    /// As [`Config::load`]: only what could run is shown.
    pub fn load(path: &Path, environment: &Environment, known: &Known<'_>) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        Self::parse(&Config::text(path)?, &name, environment, known)
    }

    /// The same for text; `name` stands for the file.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse(
        text: &str,
        name: &str,
        environment: &Environment,
        known: &Known<'_>,
    ) -> Result<Self, ConfigError> {
        let config = Config::parse(text, name, environment, known)?;
        let mut problems = Problems::default();
        let mut root = tree::parse(text, name, environment, &mut problems)?;
        environment::overlay(&mut root, environment, &mut problems);
        let reference = tree::parse(REFERENCE, DEFAULT, &Environment::default(), &mut problems)?;
        let mut keys = Vec::new();
        let mut printer = Printer { reference: &reference, keys: &mut keys };
        printer.kafka(table(&mut root, "kafka"), &config);
        printer.section(&["http"], &with_defaults(table(&mut root, "http"), table_in(&reference, &["http"])));
        let mut sinks = table(&mut root, "sinks");
        for sink in &config.sinks {
            let given = table(&mut sinks, &sink.name);
            let mut example = table_in(&reference, &["sinks", "example"]).clone();
            example.retain(|key, _| !["topics", "table", "tables"].contains(&key.as_str()));
            let mut all = with_defaults(given, &example);
            // Defaults that depend on other keys.
            preset(&mut all, "group", Value::Text(Secret::literal(sink.group.as_str())));
            preset(&mut all, "writers", Value::Integer(i64::try_from(sink.writers).unwrap_or(i64::MAX)));
            if let Some(Node { value: Value::Table(batch), .. }) = all.get_mut("batch") {
                preset(batch, "bytes", Value::Text(Secret::literal(show_bytes(sink.batch.bytes))));
            }
            printer.section(&["sinks", &sink.name], &all);
        }
        Ok(Self { keys })
    }

    /// Every key, in the order of the sections.
    pub fn keys(&self) -> &[ResolvedKey] {
        &self.keys
    }

    /// As a file that the command could read.
    pub fn toml(&self) -> String {
        let mut text = String::from("# Secrets are shown as ***. What has no remark stands in the file.\n");
        let mut section: &[String] = &[];
        for key in &self.keys {
            let Some((name, parents)) = key.path.split_last() else { continue };
            if parents != section {
                section = parents;
                let path: Vec<String> = section.iter().map(|part| toml_key(part)).collect();
                text.push_str(&format!("\n[{}]\n", path.join(".")));
            }
            // librdkafka's names hold dots, which are the same without quotes, unless one name begins another.
            let begins =
                |one: &str, other: &str| other.strip_prefix(one).is_some_and(|rest| rest.starts_with('.'));
            let same = self.keys.iter().filter(|other| other.path.starts_with(parents));
            let mut others = same.filter_map(|other| other.path.last());
            let bare =
                parents == ["kafka"] && !others.any(|other| begins(name, other) || begins(other, name));
            let name = if bare { name.clone() } else { toml_key(name) };
            let line = format!("{name} = {}", key.toml);
            text.push_str(&if key.remark.is_empty() { line } else { format!("{line:<40} # {}", key.remark) });
            text.push('\n');
        }
        text
    }
}

/// Stands for the file's name where a default is written down.
const DEFAULT: &str = "default";

fn table(parent: &mut Table, key: &str) -> Table {
    match parent.remove(key).map(|node| node.value) {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

fn table_in<'t>(root: &'t Table, path: &[&str]) -> &'t Table {
    static NONE: Table = Table::new();
    path.iter().fold(root, |table, key| match table.get(*key).map(|node| &node.value) {
        Some(Value::Table(inner)) => inner,
        _ => &NONE,
    })
}

/// What is given, and below it what the reference says, section by section.
fn with_defaults(mut given: Table, defaults: &Table) -> Table {
    for (key, node) in defaults {
        match (given.get_mut(key), &node.value) {
            (Some(Node { value: Value::Table(inner), .. }), Value::Table(defaults)) => {
                *inner = with_defaults(std::mem::take(inner), defaults);
            }
            (Some(_), _) => {}
            (None, _) => {
                given.insert(key.clone(), node.clone());
            }
        }
    }
    given
}

/// Replaces a default of the reference by the one that applies here.
fn preset(table: &mut Table, key: &str, value: Value) {
    if let Some(node) = table.get_mut(key)
        && is_default(&node.at)
    {
        node.value = value;
    }
}

fn is_default(at: &Place) -> bool {
    at.to_string().starts_with("default:")
}

struct Printer<'r> {
    reference: &'r Table,
    keys: &'r mut Vec<ResolvedKey>,
}

impl Printer<'_> {
    fn kafka(&mut self, given: Table, config: &Config) {
        let mut flat: BTreeMap<String, Node> = BTreeMap::new();
        kafka::flatten(given, "", &mut |name, node| {
            let known = flat.get(&name).is_some_and(|other| other.at.is_variable());
            if !known {
                flat.insert(name, node);
            }
        });
        // A variable may say the same under the other name.
        let aliases: Vec<String> = flat.keys().filter(|name| kafka::is_brokers(name)).cloned().collect();
        let variable = aliases.iter().any(|name| flat.get(name).is_some_and(|node| node.at.is_variable()));
        flat.retain(|name, node| !variable || !kafka::is_brokers(name) || node.at.is_variable());
        for (name, value) in &config.kafka.properties {
            if !flat.contains_key(name) && !kafka::is_brokers(name) {
                let at = Place::line(DEFAULT, 0);
                let value = Value::Text(value.clone());
                flat.insert(name.clone(), Node { at, path: name.clone(), value });
            }
        }
        let mut names: Vec<&String> = flat.keys().collect();
        names.sort_by_key(|name| !kafka::is_brokers(name));
        for name in names {
            self.key(&["kafka"], name, &flat[name]);
        }
    }

    /// Keys first, then the sections below; in the order of the reference, then in that of the file.
    fn section(&mut self, path: &[&str], section: &Table) {
        let mut nodes: Vec<(&String, &Node)> = section.iter().collect();
        nodes.sort_by_key(|(key, node)| {
            let known = self.example(path, key).map(|known| known.at.clone());
            (known.is_none(), known.unwrap_or_else(|| node.at.clone()))
        });
        for (key, node) in &nodes {
            if !matches!(node.value, Value::Table(_)) {
                self.key(path, key, node);
            }
        }
        for (key, node) in nodes {
            if let Value::Table(inner) = &node.value {
                self.section(&[path, &[key]].concat(), inner);
            }
        }
    }

    fn key(&mut self, path: &[&str], key: &str, node: &Node) {
        let value = self.typed(path, key, node);
        let (from, remark) = match &node.at {
            at if is_default(at) => (DEFAULT.to_owned(), DEFAULT.to_owned()),
            at if at.is_variable() => (at.to_string(), format!("from {at}")),
            at => (at.to_string(), String::new()),
        };
        self.keys.push(ResolvedKey {
            path: path.iter().copied().chain([key]).map(str::to_owned).collect(),
            value: json(key, &value),
            from,
            toml: toml_value(key, &value),
            remark,
        });
    }

    /// What the reference says of a key: of a sink's, under its example.
    fn example(&self, path: &[&str], key: &str) -> Option<&Node> {
        let mut path = path.to_vec();
        if let ["sinks", name, ..] = path.as_mut_slice() {
            *name = "example";
        }
        if let ["sinks", _, "tables", ..] = path.as_slice() {
            path = vec!["sinks", "example", "table"];
        }
        table_in(self.reference, &path).get(key)
    }

    /// A variable holds text; in a file the same stands as a number, a boolean or a list.
    fn typed(&self, path: &[&str], key: &str, node: &Node) -> Value {
        let Value::Text(text) = &node.value else { return node.value.clone() };
        if !node.at.is_variable() || path == ["kafka"] {
            return node.value.clone();
        }
        let written = text.expose().trim();
        let is_list = matches!(key, "topics" | "key") || written.starts_with('[');
        match self.example(path, key).map(|known| &known.value) {
            Some(Value::Text(_)) => node.value.clone(),
            Some(Value::Integer(_)) => integer(written).unwrap_or_else(|| node.value.clone()),
            _ if is_list => match section::listed(written) {
                Ok(items) => Value::List(
                    items
                        .into_iter()
                        .map(|item| Node { value: Value::Text(Secret::literal(item)), ..node.clone() })
                        .collect(),
                ),
                Err(_) => node.value.clone(),
            },
            Some(_) => node.value.clone(),
            None => match written {
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                // A password 00123 is no number.
                digits if digits.starts_with('0') && digits.len() > 1 => node.value.clone(),
                _ if matches!(key, "url" | "password" | "kind" | "offsets") => node.value.clone(),
                digits => integer(digits).unwrap_or_else(|| node.value.clone()),
            },
        }
    }
}

fn integer(text: &str) -> Option<Value> {
    text.replace('_', "").parse().ok().map(Value::Integer)
}

fn json(key: &str, value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => redacted(key, text).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(boolean) => (*boolean).into(),
        Value::Time(time) => time.as_str().into(),
        Value::List(items) => items.iter().map(|item| json(key, &item.value)).collect(),
        Value::Table(table) => {
            let entries = table.iter().map(|(key, node)| (key.clone(), json(key, &node.value)));
            serde_json::Value::Object(entries.collect())
        }
    }
}

fn toml_value(key: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => toml_text(&redacted(key, text)),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => toml::Value::Float(*number).to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Time(time) => time.clone(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| toml_value(key, &item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let entries: Vec<String> = table
                .iter()
                .map(|(key, node)| format!("{} = {}", toml_key(key), toml_value(key, &node.value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// On one line, so that a remark can follow.
fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn toml_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { key.to_owned() } else { toml_text(key) }
}
