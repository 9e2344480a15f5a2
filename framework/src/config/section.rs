//! Reads one table of the configuration key by key; what nobody asked for is an unknown key.
//!
//! Invariant: a mistake never stops the reading; the default stands in, and the mistake is on the list.

use std::time::Duration;

use super::error::{Place, Problems, hint};
use super::later;
use super::secret::Secret;
use super::tree::{Node, Table, Value};
use super::units;

/// A table being read.
pub(crate) struct Section<'p> {
    pub(crate) path: String,
    pub(crate) at: Place,
    table: Table,
    known: Vec<&'static str>,
    pub(crate) problems: &'p mut Problems,
}

impl<'p> Section<'p> {
    /// The table that a node holds; an empty one, and a problem, when it holds something else.
    pub(crate) fn of(node: Node, problems: &'p mut Problems) -> Self {
        let Node { at, path, value } = node;
        let table = match value {
            Value::Table(table) => table,
            other => {
                problems.add(&at, format!("{path}: expected a table, found {}", other.kind()));
                Table::new()
            }
        };
        Self { path, at, table, known: Vec::new(), problems }
    }

    /// Takes a key out, for a reader of its own.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Takes a key out and reads it; a mistake is noted with the key's place and path.
    pub(crate) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<T> {
        let node = self.take(key)?;
        match read(&node) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problems.add(&node.at, format!("{}: {message}", node.path));
                None
            }
        }
    }

    /// A key that must be given.
    pub(crate) fn required<T>(
        &mut self,
        key: &'static str,
        example: &str,
        read: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<T> {
        if !self.table.contains_key(key) {
            self.known.push(key);
            if self.problems.mentions(&format!("{}.{key}", self.path)) {
                return None;
            }
            self.problems.add(
                &self.at,
                format!("key {key:?} is missing in [{}]; write for instance: {key} = {example}", self.path),
            );
            return None;
        }
        self.optional(key, read)
    }

    /// The place of a key that is still in the table.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.table.get(key).map_or_else(|| self.at.clone(), |node| node.at.clone())
    }

    /// Gives up what was not read, for a reader that is not known here.
    pub(crate) fn rest(&mut self) -> Table {
        std::mem::take(&mut self.table)
    }

    /// Whatever was not read is unknown.
    pub(crate) fn finish(self) {
        for (key, node) in &self.table {
            self.problems.add(&node.at, unknown(key, &self.path, &self.known));
        }
    }
}

/// The message for a key that nobody knows.
pub(crate) fn unknown(key: &str, section: &str, known: &[&str]) -> String {
    let place = if section.is_empty() { "at the top".to_owned() } else { format!("in [{section}]") };
    if later::key(section, key) {
        return format!("key {key:?} {place} is not known yet: it is planned for a later version");
    }
    if section.ends_with(".target") {
        // The sink's own keys stand beside the connection's; those of its tables stand elsewhere.
        let own = known.iter().filter(|key| !matches!(**key, "table" | "tables"));
        let all: Vec<&str> = own.copied().chain(super::target::KEYS).collect();
        return format!("unknown key {key:?} {place}{}", hint(key, &all));
    }
    format!("unknown key {key:?} {place}{}", hint(key, known))
}

/// The resolved text.
pub(crate) fn text(node: &Node) -> Result<&str, String> {
    secret(node).map(Secret::expose)
}

/// Text with its template.
pub(crate) fn secret(node: &Node) -> Result<&Secret, String> {
    match &node.value {
        Value::Text(text) => Ok(text),
        other => Err(format!("expected a string, found {}", other.kind())),
    }
}

/// Text that is not empty.
pub(crate) fn filled(node: &Node) -> Result<&str, String> {
    match text(node)? {
        "" => Err("must not be empty".to_owned()),
        text => Ok(text),
    }
}

/// A whole number within bounds.
pub(crate) fn integer(node: &Node, least: i64, most: i64) -> Result<i64, String> {
    let number = match &node.value {
        Value::Integer(number) => *number,
        Value::Text(text) if node.at.is_variable() => text
            .expose()
            .replace('_', "")
            .parse()
            .map_err(|_| format!("{:?} is no whole number", text.template()))?,
        other => return Err(format!("expected a whole number, found {}", other.kind())),
    };
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is out of range, {least} to {most} is possible"))
    }
}

/// A duration within bounds.
pub(crate) fn duration(node: &Node, least: Duration, most: Duration) -> Result<Duration, String> {
    let duration = with_unit(node, units::duration, "\"20 s\"")?;
    if (least..=most).contains(&duration) {
        return Ok(duration);
    }
    let [asked, least, most] = [duration, least, most].map(units::show_duration);
    Err(format!("{asked} is out of range, {least} to {most} is possible"))
}

/// A byte size within bounds.
pub(crate) fn bytes(node: &Node, least: u64, most: u64) -> Result<u64, String> {
    let size = with_unit(node, units::bytes, "\"4 MiB\"")?;
    if (least..=most).contains(&size) {
        return Ok(size);
    }
    let [asked, least, most] = [size, least, most].map(units::show_bytes);
    Err(format!("{asked} is out of range, {least} to {most} is possible"))
}

fn with_unit<T>(
    node: &Node,
    read: impl FnOnce(&str) -> Result<T, String>,
    example: &str,
) -> Result<T, String> {
    match &node.value {
        Value::Integer(number) => Err(format!("{number} has no unit; write for instance {example}")),
        _ => read(text(node)?),
    }
}

/// One of a few words.
pub(crate) fn word<'w>(node: &Node, words: &[&'w str]) -> Result<&'w str, String> {
    let text = text(node)?;
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Ok(word);
    }
    if later::value(&node.path, text) {
        return Err(format!("{text:?} is not known yet: it is planned for a later version"));
    }
    Err(format!("unknown value {text:?}{}", hint(text, words)))
}

/// A list of strings; from a variable, separated by commas, or as the file would have it: `["a", "^b{1,2}"]`.
pub(crate) fn strings(node: &Node) -> Result<Vec<(Place, String)>, String> {
    match &node.value {
        Value::List(items) => items
            .iter()
            .map(|item| {
                Ok((item.at.clone(), text(item).map_err(|e| format!("in the list: {e}"))?.to_owned()))
            })
            .collect(),
        Value::Text(text) if node.at.is_variable() => {
            Ok(listed(text.expose())?.into_iter().map(|item| (node.at.clone(), item)).collect())
        }
        other => Err(format!("expected a list of strings, found {}", other.kind())),
    }
}

/// The elements of a variable's list.
pub(crate) fn listed(text: &str) -> Result<Vec<String>, String> {
    if text.trim_start().starts_with('[') {
        // TOML wants a key in front of a list.
        let written =
            toml::from_str::<std::collections::BTreeMap<String, Vec<String>>>(&format!("list = {text}"));
        let mut list = written.map_err(|_| {
            "a list that begins with [ must be one of strings, as in the file: [\"a\", \"b\"]".to_owned()
        })?;
        return Ok(list.remove("list").unwrap_or_default());
    }
    Ok(text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect())
}
