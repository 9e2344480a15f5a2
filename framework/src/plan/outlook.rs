//! How the records of a topic find their way, in a few words, for people who look before they run.

use super::column::Table;
use super::encode::Mappings;
use super::mapping::{Mapping, Unknown};

/// What the mapping of a topic makes of the fields that its records have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Fields that go somewhere, out of those that were asked about.
    pub known: usize,
    /// The way of writing, in words.
    pub way: String,
}

impl<T: Table> Mappings<T> {
    /// What becomes of these top-level fields of a topic's values, and how its records are written; none for a topic that is not mapped.
    pub fn outlook(&self, topic: &str, fields: &[&str]) -> Option<Outlook> {
        let mapping = self.of(topic)?;
        let extra = matches!(mapping.unknown, Unknown::Column(_));
        let known = fields.iter().filter(|field| extra || mapping.slot(field).is_some()).count();
        Some(Outlook { known, way: way(mapping) })
    }
}

fn way<T: Table>(mapping: &Mapping<T>) -> String {
    let mode = mapping.mode.name();
    let columns = mapping.table.columns();
    let key: Vec<&str> = mapping
        .key
        .iter()
        .filter_map(|index| columns.get(*index))
        .map(|column| column.name.as_str())
        .collect();
    match key.as_slice() {
        [] => format!("mode {mode}, no key needed"),
        key => format!("mode {mode}, key ({})", key.join(", ")),
    }
}
