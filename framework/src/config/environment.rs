//! Variables of the environment that set keys: `ONCESINK_SINKS__ORDERS__BATCH__ROWS=5000` is `sinks.orders.batch.rows`.
//!
//! Invariants: a value stays a string (a password `00123` is no number), and a variable wins over the file. Only names with `__` are keys: `ONCESINK_LOG`
//! and `ONCESINK_TEST_...` are none, nor are the `ONCESINK_SERVICE_HOST` and `ONCESINK_PORT` that Kubernetes makes for a service of our name.

use std::collections::BTreeMap;

use super::error::{Place, Problems};
use super::secret::Secret;
use super::section;
use super::tree::{Node, Table, Value};

const PREFIX: &str = "ONCESINK_";
const TESTS: &str = "ONCESINK_TEST_";

/// A snapshot of the environment.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process; what is no UTF-8 is left out.
    pub fn process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn keys(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().filter_map(|(name, value)| {
            let path = name.strip_prefix(PREFIX)?;
            (!name.starts_with(TESTS) && path.contains("__")).then_some((name.as_str(), path, value.as_str()))
        })
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// Lays the variables over what the file says.
pub(crate) fn overlay(root: &mut Table, environment: &Environment, problems: &mut Problems) {
    for (name, path, value) in environment.keys() {
        let at = Place::variable(name);
        let segments: Vec<String> = path.split("__").map(str::to_ascii_lowercase).collect();
        if segments.iter().any(String::is_empty) {
            problems.add(&at, "an empty part between \"__\" and \"__\"");
            continue;
        }
        let segments = with_topic(root, segments);
        match Secret::resolve(value, environment) {
            Ok(text) => put(root, "", &segments, &at, text, problems),
            Err(message) => problems.add(&at, message),
        }
    }
}

/// `sinks.shop.tables.shop_orders` means the topic `shop.orders`: most shells take no dot or dash in a variable's name. Looked for among the sections that stand
/// in the file, then among the topics that are named there.
fn with_topic(root: &Table, mut segments: Vec<String>) -> Vec<String> {
    let inner = |table: &'_ Table, key: &str| match table.get(key).map(|node| &node.value) {
        Some(Value::Table(table)) => Some(table.clone()),
        _ => None,
    };
    let [sinks, sink, tables, topic, ..] = segments.as_mut_slice() else { return segments };
    if (sinks.as_str(), tables.as_str()) != ("sinks", "tables") {
        return segments;
    }
    let Some(section) = inner(root, "sinks").and_then(|sinks| inner(&sinks, sink)) else { return segments };
    let sections = inner(&section, "tables").unwrap_or_default().into_keys();
    let named = match section.get("topics").map(|node| &node.value) {
        Some(Value::List(items)) => {
            items.iter().filter_map(|item| section::text(item).ok().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    let plain = |name: &str| -> String {
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
    };
    let wanted = plain(topic);
    if let Some(found) = sections.chain(named).find(|name| plain(name) == wanted) {
        *topic = found;
    }
    segments
}

fn put(
    table: &mut Table,
    parent: &str,
    segments: &[String],
    at: &Place,
    text: Secret,
    problems: &mut Problems,
) {
    let Some((first, rest)) = segments.split_first() else { return };
    // Names of variables are upper case by custom: a key of the file that differs by case only is the one meant.
    let key = table.keys().find(|key| key.eq_ignore_ascii_case(first)).unwrap_or(first).clone();
    let path = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
    if rest.is_empty() {
        table.insert(key, Node { at: at.clone(), path, value: Value::Text(text) });
        return;
    }
    let node = table.entry(key).or_insert_with(|| Node {
        at: at.clone(),
        path: path.clone(),
        value: Value::Table(Table::new()),
    });
    match &mut node.value {
        Value::Table(inner) => put(inner, &path, rest, at, text, problems),
        _ => problems.add(at, format!("{path} is no section, it has no key {:?}", rest.join("__"))),
    }
}
