//! The configuration as a tree in which every value knows where it was written.
//!
//! Invariant: `Debug` of a node shows no text. Must not: know any key.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeTable, DeValue};

use super::environment::Environment;
use super::error::{ConfigError, Place, Problems};
use super::secret::Secret;

pub(crate) type Table = BTreeMap<String, Node>;

/// A value, its place and its path (`sinks.orders.batch.rows`).
#[derive(Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Place,
    pub(crate) path: String,
    pub(crate) value: Value,
}

#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    Text(Secret),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date or time written without quotes.
    Time(String),
    List(Vec<Node>),
    Table(Table),
}

impl Value {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a point",
            Self::Boolean(_) => "a boolean",
            Self::Time(_) => "a time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Table(table) => f.debug_map().entries(table).finish(),
            Value::List(list) => f.debug_list().entries(list).finish(),
            value => write!(f, "<{}>", value.kind()),
        }
    }
}

/// Reads TOML. Texts are resolved; what cannot be resolved is a problem.
pub(crate) fn parse(
    text: &str,
    file: &str,
    environment: &Environment,
    problems: &mut Problems,
) -> Result<Table, ConfigError> {
    let lines = Lines::new(text, file);
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or_else(|| Place::file(file), |span| lines.place(span.start));
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        ConfigError::one(&at, format!("this is no TOML: {message}"))
    })?;
    let mut reader = Reader { lines, environment, problems };
    Ok(reader.table(root.get_ref(), ""))
}

struct Lines<'a> {
    file: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &str, file: &'a str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1).collect();
        Self { file, starts }
    }

    fn place(&self, offset: usize) -> Place {
        Place::line(self.file, 1 + self.starts.partition_point(|start| *start <= offset))
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    environment: &'a Environment,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, parent: &str) -> Table {
        let mut read = Table::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
            let at = self.lines.place(key.span().start);
            if let Some(value) = self.value(value.get_ref(), &at, &path) {
                read.insert(name, Node { at, path, value });
            }
        }
        read
    }

    fn value(&mut self, value: &DeValue<'_>, at: &Place, path: &str) -> Option<Value> {
        Some(match value {
            DeValue::String(text) => match Secret::resolve(text, self.environment) {
                Ok(text) => Value::Text(text),
                Err(message) => {
                    self.problems.add(at, format!("{path}: {message}"));
                    return None;
                }
            },
            DeValue::Integer(number) => {
                match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                    Ok(number) => Value::Integer(number),
                    Err(_) => {
                        self.problems.add(at, format!("{path}: {} is out of range", number.as_str()));
                        return None;
                    }
                }
            }
            DeValue::Float(number) => {
                Value::Float(number.as_str().replace('_', "").parse().unwrap_or(f64::NAN))
            }
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(time) => Value::Time(time.to_string()),
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items.iter() {
                    let at = self.lines.place(item.span().start);
                    if let Some(value) = self.value(item.get_ref(), &at, path) {
                        list.push(Node { at, path: path.to_owned(), value });
                    }
                }
                Value::List(list)
            }
            DeValue::Table(table) => Value::Table(self.table(table, path)),
        })
    }
}
