//! Places in records onto columns: what one topic's records become, compiled once against the catalog.
//!
//! Invariant: names are compared exactly. A column has one source. The column that takes the unknown fields takes no field of its own name: such a field is
//! unknown like any other, and nothing is written twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::column::{Column, Table, Takes};
use super::config::{ColumnFrom, Delete, KeyFrom, Mode, TableConfig, UnknownFields};
use super::names;
use super::path::Path;
use crate::error::{BadRecord, Reason};
use crate::record::Record;
use crate::value::{Fault, Form, Zone};

/// One topic's way into its table.
#[derive(Debug)]
pub struct Mapping<T> {
    /// The table.
    pub table: Arc<T>,
    /// How rows are written.
    pub mode: Mode,
    /// Indices of the key columns, in the file's order.
    pub key: Vec<usize>,
    pub(super) unknown: Unknown,
    pub(super) tombstones: Tombstones,
    /// Top-level fields that somebody asks for, in the table's order as far as they go by name.
    pub(super) slots: Vec<String>,
    by_field: HashMap<String, usize>,
    /// By column: where its values come from; none where nothing does.
    pub(super) sources: Vec<Option<Source>>,
    /// By column: how its values are read.
    pub(super) forms: Vec<Form>,
    /// Some source asks for the key.
    pub(super) reads_key: bool,
    /// Key columns that a field of the value bears the name of, with the field's slot: the two must agree.
    pub(super) twins: Vec<(usize, usize)>,
    /// Columns that not every row may leave out or set to null.
    pub(super) guarded: Vec<usize>,
}

/// What becomes of a field without a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Error,
    Ignore,
    /// Index of the JSON column.
    Column(usize),
}

/// What becomes of a record without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tombstones {
    Bad,
    Skip,
    Delete,
}

/// Where a column's values come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// A top-level field of the value.
    Field(usize),
    /// A place below one.
    Below(usize, Vec<String>),
    /// The whole value.
    Value,
    /// The key's field of this column's name, or the whole key when it is a scalar and there is no other key column.
    KeyColumn {
        alone: bool,
    },
    /// A place in the key; all of it without names.
    Key(Vec<String>),
    Header(String),
    Topic,
    Partition,
    Offset,
    Timestamp,
    Constant(String),
}

impl Source {
    /// Whether a record without a value has it.
    fn beside_the_value(&self) -> bool {
        !matches!(self, Self::Field(_) | Self::Below(..) | Self::Value)
    }
}

impl<T: Table> Mapping<T> {
    /// Compiles the keys of a section against a table.
    ///
    /// # Errors
    /// For people: what in the section does not fit, and what helps.
    pub fn compile(config: &TableConfig, table: Arc<T>) -> Result<Self, String> {
        let key =
            config.key.iter().map(|name| column_of(&*table, "key", name)).collect::<Result<Vec<_>, _>>()?;
        if let Some(double) = config
            .key
            .iter()
            .enumerate()
            .find(|(nth, name)| config.key.iter().take(*nth).any(|before| before == *name))
        {
            return Err(format!("key names column {:?} twice", double.1));
        }
        if !key.is_empty() {
            table.check_key(&key)?;
        }
        let unknown = match &config.unknown_fields {
            UnknownFields::Error => Unknown::Error,
            UnknownFields::Ignore => Unknown::Ignore,
            UnknownFields::Column(name) => Unknown::Column(extra_column(&*table, name)?),
        };
        let zone = config.zone.as_deref().map(Zone::find).transpose()?;
        let columns = table.columns().len();
        let mut mapping = Self {
            mode: config.mode,
            key,
            unknown,
            tombstones: match config.delete {
                None => Tombstones::Bad,
                Some(Delete::None) => Tombstones::Skip,
                Some(Delete::Tombstone) => Tombstones::Delete,
            },
            slots: Vec::new(),
            by_field: HashMap::new(),
            sources: vec![None; columns],
            forms: vec![Form { reading: None, zone }; columns],
            reads_key: false,
            twins: Vec::new(),
            guarded: (0..columns).filter(|index| guarded(&*table, *index)).collect(),
            table,
        };
        mapping.find_sources(config)?;
        mapping.check_sources(config)?;
        Ok(mapping)
    }

    fn find_sources(&mut self, config: &TableConfig) -> Result<(), String> {
        let mut written: BTreeMap<usize, Option<ColumnFrom>> = BTreeMap::new();
        for (name, column) in &config.columns {
            let index = column_of(&*self.table, "columns", name)?;
            self.read_as(index, name, column.reading)?;
            written.insert(index, column.from.clone());
        }
        let from_key = config.key_from.unwrap_or(KeyFrom::Key) == KeyFrom::Key;
        let table = Arc::clone(&self.table);
        for (index, column) in table.columns().iter().enumerate() {
            let named = written.get(&index);
            let source = match named {
                Some(Some(ColumnFrom::Path(path))) => Some(self.source(path)),
                Some(Some(ColumnFrom::Constant(raw))) => Some(Source::Constant(raw.clone())),
                _ if self.unknown == Unknown::Column(index) => None,
                _ if self.key.contains(&index) && from_key => {
                    let alone = self.key.len() == 1;
                    if config.by_name != Some(false) {
                        let slot = self.slot_of(&column.name);
                        self.twins.push((index, slot));
                    }
                    Some(Source::KeyColumn { alone })
                }
                // A field of its own name is known, whatever becomes of it. `key_from` is a word on the key columns, also where others are not found by name.
                _ if config.by_name != Some(false) || named.is_some() || self.key.contains(&index) => {
                    Some(Source::Field(self.slot_of(&column.name)))
                }
                _ => None,
            };
            if matches!(named, Some(Some(_))) && column.takes == Takes::Generated {
                return Err(format!("columns.{}: the column is computed by the database", column.name));
            }
            if let Some(slot) = self.sources.get_mut(index) {
                *slot = source.filter(|_| column.takes != Takes::Generated);
            }
        }
        self.reads_key = self
            .sources
            .iter()
            .flatten()
            .any(|source| matches!(source, Source::Key(_) | Source::KeyColumn { .. }));
        Ok(())
    }

    fn read_as(
        &mut self,
        index: usize,
        name: &str,
        reading: Option<crate::value::Reading>,
    ) -> Result<(), String> {
        let Some(reading) = reading else { return Ok(()) };
        let Some(column) = self.table.columns().get(index) else { return Ok(()) };
        if !column.takes.allows(reading) {
            return Err(format!(
                "columns.{name}: as = {:?} does not suit column {}.{} {}",
                reading.name(),
                self.table.display(),
                column.name,
                column.type_name
            ));
        }
        if let Some(form) = self.forms.get_mut(index) {
            form.reading = Some(reading);
        }
        Ok(())
    }

    fn source(&mut self, path: &Path) -> Source {
        match path {
            Path::Value(names) => match names.split_first() {
                None => Source::Value,
                Some((field, [])) => Source::Field(self.slot_of(field)),
                Some((field, rest)) => Source::Below(self.slot_of(field), rest.to_vec()),
            },
            Path::Key(names) => Source::Key(names.clone()),
            Path::Header(name) => Source::Header(name.clone()),
            Path::Topic => Source::Topic,
            Path::Partition => Source::Partition,
            Path::Offset => Source::Offset,
            Path::Timestamp => Source::Timestamp,
        }
    }

    fn slot_of(&mut self, field: &str) -> usize {
        if let Some(slot) = self.by_field.get(field) {
            return *slot;
        }
        self.slots.push(field.to_owned());
        self.by_field.insert(field.to_owned(), self.slots.len() - 1);
        self.slots.len() - 1
    }

    fn check_sources(&mut self, config: &TableConfig) -> Result<(), String> {
        let table = Arc::clone(&self.table);
        for (index, column) in table.columns().iter().enumerate() {
            let source = self.sources.get(index).and_then(Option::as_ref);
            if source == Some(&Source::Timestamp)
                && let Some(form) = self.forms.get_mut(index).filter(|_| column.takes == Takes::Time)
            {
                // What the unit of a record's timestamp is, Kafka says.
                form.reading.get_or_insert(crate::value::Reading::Epoch(crate::value::Unit::Milliseconds));
            }
            let Some(source) = source.filter(|_| self.key.contains(&index)) else {
                if self.key.contains(&index) {
                    return Err(format!("key column {}: nothing is mapped to it", column.name));
                }
                continue;
            };
            if self.tombstones == Tombstones::Delete && !source.beside_the_value() {
                return Err(format!(
                    "delete = \"tombstone\": key column {} comes from the value, which a record without a value does not have; write key_from = \"key\", or columns.{} = \"key...\"",
                    column.name, column.name
                ));
            }
        }
        if config.mode == Mode::Insert && config.by_name == Some(false) && config.columns.is_empty() {
            return Err("by_name = false and no columns: nothing would be written".to_owned());
        }
        Ok(())
    }

    /// The slot of a field.
    pub(super) fn slot(&self, field: &str) -> Option<usize> {
        self.by_field.get(field).copied()
    }

    /// Whether the key's field is a key column's, or somebody else asks for it.
    pub(super) fn asks_key_field(&self, field: &str) -> bool {
        self.sources.iter().enumerate().any(|(index, source)| match source {
            Some(Source::KeyColumn { .. }) => {
                self.table.columns().get(index).is_some_and(|column| column.name == field)
            }
            Some(Source::Key(names)) => names.first().is_none_or(|name| name == field),
            _ => false,
        })
    }

    /// A bad record because of one column's value.
    pub(super) fn unfit(&self, record: &Record<'_>, column: &Column, fault: &Fault) -> BadRecord {
        let message = format!(
            "field {}: {} does not fit column {}.{} {}",
            names::field(&column.name),
            fault.what,
            self.table.display(),
            column.name,
            column.type_name
        );
        self.concerning(record.bad(fault.reason, message), Some(column))
    }

    /// A bad record because of a field whose column takes no such value, whatever it is.
    pub(super) fn closed(
        &self,
        record: &Record<'_>,
        column: &Column,
        reason: Reason,
        why: &str,
    ) -> BadRecord {
        let message = format!(
            "field {}: column {}.{} {} {why}",
            names::field(&column.name),
            self.table.display(),
            column.name,
            column.type_name
        );
        self.concerning(record.bad(reason, message), Some(column))
    }

    /// A bad record because of a field that is missing.
    pub(super) fn lacking(&self, record: &Record<'_>, column: &Column) -> BadRecord {
        let message = format!(
            "field {} is missing, and column {}.{} is NOT NULL without a default",
            names::field(&column.name),
            self.table.display(),
            column.name
        );
        self.concerning(record.bad(Reason::MissingField, message), Some(column))
    }

    /// A bad record because of its fields as such, or of a column that has no value of its own.
    pub(super) fn bad(
        &self,
        record: &Record<'_>,
        reason: Reason,
        message: String,
        column: Option<usize>,
    ) -> BadRecord {
        let column = column.and_then(|index| self.table.columns().get(index));
        self.concerning(record.bad(reason, message), column)
    }

    fn concerning(&self, mut bad: BadRecord, column: Option<&Column>) -> BadRecord {
        bad.table = Some(self.table.display());
        bad.column = column.map(|column| column.name.clone());
        bad.sql_state = self.table.sql_state(bad.reason).map(ToOwned::to_owned);
        bad
    }
}

fn guarded<T: Table>(table: &T, index: usize) -> bool {
    table.columns().get(index).is_some_and(|column| column.not_null || column.required)
}

fn column_of<T: Table>(table: &T, what: &str, name: &str) -> Result<usize, String> {
    table.columns().iter().position(|column| column.name == name).ok_or_else(|| {
        format!("{what}: table {} has no column {name:?} (it has {})", table.display(), column_names(table))
    })
}

fn extra_column<T: Table>(target: &T, name: &str) -> Result<usize, String> {
    let found = target.columns().iter().enumerate().find(|(_, column)| column.name == name);
    let Some((index, column)) = found else {
        let (table, names) = (target.display(), column_names(target));
        return Err(format!(
            "unknown_fields = \"column:{name}\": table {table} has no such column (it has {names})"
        ));
    };
    if column.takes != Takes::Json {
        let (table, type_name) = (target.display(), &column.type_name);
        return Err(format!(
            "unknown_fields = \"column:{name}\": column {table}.{name} is {type_name}; it must be {}",
            target.json_types()
        ));
    }
    if !column.insertable {
        let grant = target.grant(name).unwrap_or_default();
        return Err(format!("unknown_fields = \"column:{name}\": the role may not write it. {grant}"));
    }
    Ok(index)
}

fn column_names<T: Table>(table: &T) -> String {
    names::list(table.columns().iter().map(|column| column.name.as_str()))
}
