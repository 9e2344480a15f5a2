//! The cells of one record: each column's value, from wherever the mapping says that it comes.
//!
//! Invariant: what a record does not carry has no cell, and null is a cell. Must not: copy a value that can be borrowed.

use std::borrow::Cow;

use super::column::{Cell, Column, Table, Takes};
use super::config::Mode;
use super::encode::append_key;
use super::mapping::{Mapping, Source, Unknown};
use super::names;
use super::reader::{Key, Reader, Refusal, below, utf8};
use crate::error::{BadRecord, Reason};
use crate::record::Record;
use crate::value;

pub(super) fn no_key<T: Table>(
    mapping: &Mapping<T>,
    record: &Record<'_>,
    column: usize,
    null: bool,
) -> BadRecord {
    let name = mapping.table.columns().get(column).map_or("", |column| column.name.as_str());
    let table = mapping.table.display();
    let (reason, message) = if null {
        (Reason::NullInKey, format!("key column {table}.{name}: null is no key"))
    } else if record.key().is_none() && mapping.reads_key {
        (Reason::NoKey, format!("key column {table}.{name}: the record has no key"))
    } else {
        (Reason::NoKey, format!("key column {table}.{name}: the record does not carry it"))
    };
    mapping.bad(record, reason, message, Some(column))
}

/// Appends a value that is not null.
pub(super) fn encode_cell<T: Table>(
    mapping: &Mapping<T>,
    record: &Record<'_>,
    index: usize,
    column: &Column,
    cell: &RowCell<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Box<BadRecord>> {
    if column.takes == Takes::Unsupported {
        let why = "is of a type that this version does not write";
        return Err(Box::new(mapping.closed(record, column, Reason::WrongType, why)));
    }
    let cell = match cell {
        RowCell::Json(raw) => Cell::Json(raw),
        RowCell::Bytes(bytes) => Cell::Bytes(bytes),
        RowCell::Null => return Ok(()),
    };
    let Some(form) = mapping.forms.get(index) else { return Ok(()) };
    let encoded = mapping.table.encode(index, cell, form, out);
    encoded.map_err(|fault| Box::new(mapping.unfit(record, column, &fault)))
}

/// A value of one record, for one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowCell<'b> {
    Null,
    Json(Cow<'b, str>),
    Bytes(Cow<'b, [u8]>),
}

impl<'b> RowCell<'b> {
    fn json(raw: impl Into<Cow<'b, str>>) -> Self {
        let raw = raw.into();
        if value::is_null(&raw) { Self::Null } else { Self::Json(raw) }
    }

    /// Text from beside the value: bytes where the column takes bytes, else a JSON string.
    fn beside(bytes: &'b [u8], column: &Column) -> Result<Self, Refusal> {
        if column.takes == Takes::Bytes {
            return Ok(Self::Bytes(Cow::Borrowed(bytes)));
        }
        let text = utf8(bytes)?;
        Ok(Self::Json(Cow::Owned(serde_json::Value::from(text).to_string())))
    }
}

/// The cells of one record after the other.
pub(super) struct RowReader<'b> {
    reader: Reader<'b>,
    key: Key<'b>,
    /// By column; none where the record does not carry it.
    pub(super) cells: Vec<Option<RowCell<'b>>>,
}

impl<'b> RowReader<'b> {
    pub(super) fn new<T: Table>(mapping: &Mapping<T>) -> Self {
        Self {
            reader: Reader::new(mapping),
            key: Key::None,
            cells: vec![None; mapping.table.columns().len()],
        }
    }

    pub(super) fn carries(&self, column: usize) -> bool {
        self.cells.get(column).is_some_and(Option::is_some)
    }

    /// Reads a record's cells; without a payload those that come from beside the value.
    pub(super) fn read<T: Table>(
        &mut self,
        mapping: &Mapping<T>,
        record: &Record<'b>,
        payload: Option<&'b [u8]>,
    ) -> Result<(), Box<BadRecord>> {
        let refused = |(reason, message): Refusal| Box::new(mapping.bad(record, reason, message, None));
        match payload {
            Some(payload) => self.reader.read(payload, mapping).map_err(refused)?,
            None => self.reader.clear(),
        }
        self.key = match record.key() {
            Some(key) if mapping.reads_key => Key::read(key).map_err(refused)?,
            _ => Key::None,
        };
        self.check_key_fields(mapping).map_err(refused)?;
        let sources = mapping.sources.iter().map(Option::as_ref);
        for (index, (column, source)) in mapping.table.columns().iter().zip(sources).enumerate() {
            // Most columns are this one, at the price of a look.
            if let Some(Source::Field(slot)) = source {
                if let Some(cell) = self.cells.get_mut(index) {
                    *cell = self.reader.values.get(*slot).copied().flatten().map(RowCell::json);
                }
                continue;
            }
            // A record that deletes is read for its key only: what is wrong with anything else of it is nobody's concern.
            let wanted = payload.is_some() || mapping.key.contains(&index);
            let source = source.filter(|_| wanted);
            let found = source.map(|source| self.find(source, column, record, payload)).transpose();
            let found = found.map_err(|(reason, message)| {
                let message = format!("column {}.{}: {message}", mapping.table.display(), column.name);
                Box::new(mapping.bad(record, reason, message, Some(index)))
            })?;
            if let Some(cell) = self.cells.get_mut(index) {
                *cell = found.flatten();
            }
        }
        if let Unknown::Column(index) = mapping.unknown
            && let Some(cell) = self.cells.get_mut(index)
            && !self.reader.unknown.is_empty()
        {
            *cell = Some(RowCell::Json(Cow::Owned(gather(&self.reader.unknown))));
        }
        Ok(())
    }

    /// A field of the key that nobody asks for would be left out of the key in silence.
    fn check_key_fields<T: Table>(&self, mapping: &Mapping<T>) -> Result<(), Refusal> {
        let Key::Object(fields) = &self.key else { return Ok(()) };
        if mapping.unknown == Unknown::Ignore {
            return Ok(());
        }
        match fields.iter().find(|(name, _)| !mapping.asks_key_field(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let message =
                    format!("the key's field {} is no key column and goes to no other", names::field(name));
                Err((Reason::UnknownField, message))
            }
        }
    }

    fn find(
        &self,
        source: &Source,
        column: &Column,
        record: &Record<'b>,
        payload: Option<&'b [u8]>,
    ) -> Result<Option<RowCell<'b>>, Refusal> {
        let field = |slot: &usize| self.reader.values.get(*slot).copied().flatten();
        Ok(match source {
            Source::Field(slot) => field(slot).map(RowCell::json),
            Source::Below(slot, path) => field(slot).and_then(|raw| below(raw, path)).map(RowCell::json),
            Source::Value => match payload {
                Some(payload) if column.takes == Takes::Bytes => Some(RowCell::Bytes(Cow::Borrowed(payload))),
                Some(payload) => Some(RowCell::json(utf8(payload)?.trim())),
                None => None,
            },
            Source::KeyColumn { alone } => match &self.key {
                Key::Scalar(raw) if *alone => Some(RowCell::json(raw.clone())),
                Key::Scalar(_) => {
                    let message = "the key is no JSON object, and there are several key columns".to_owned();
                    return Err((Reason::NoKey, message));
                }
                key => key.field(&column.name).map(RowCell::json),
            },
            Source::Key(path) => match (path.split_first(), record.key()) {
                (_, None) => None,
                (None, Some(bytes)) if column.takes == Takes::Json => match &self.key {
                    // Text that is no JSON is a string of it; a database that keeps documents as text would not notice.
                    Key::Scalar(raw) => Some(RowCell::json(raw.clone())),
                    _ => Some(RowCell::json(utf8(bytes)?.trim())),
                },
                (None, Some(bytes)) => Some(RowCell::beside(bytes, column)?),
                (Some((name, rest)), _) => {
                    self.key.field(name).and_then(|raw| below(raw, rest)).map(RowCell::json)
                }
            },
            Source::Header(name) => match record.headers().find(name) {
                None => None,
                Some(None) => Some(RowCell::Null),
                Some(Some(bytes)) => Some(RowCell::beside(bytes, column)?),
            },
            Source::Topic => Some(RowCell::json(serde_json::Value::from(record.topic()).to_string())),
            Source::Partition => Some(RowCell::json(record.partition().to_string())),
            Source::Offset => Some(RowCell::json(record.offset().to_string())),
            Source::Timestamp => record.timestamp().map(|at| RowCell::json(at.to_string())),
            Source::Constant(raw) => Some(RowCell::json(raw.clone())),
        })
    }

    /// Nulls, keys and missing fields, before anything is encoded.
    pub(super) fn check_carried<T: Table>(
        &self,
        mapping: &Mapping<T>,
        record: &Record<'_>,
    ) -> Result<(), Box<BadRecord>> {
        for index in &mapping.key {
            match self.cells.get(*index).and_then(Option::as_ref) {
                Some(RowCell::Json(_) | RowCell::Bytes(_)) => {}
                cell => return Err(Box::new(no_key(mapping, record, *index, cell.is_some()))),
            }
        }
        self.check_twins(mapping, record)?;
        let guarded = mapping.guarded.iter().copied();
        for (index, column) in guarded.filter_map(|index| Some((index, mapping.table.columns().get(index)?)))
        {
            match self.cells.get(index).and_then(Option::as_ref) {
                Some(RowCell::Null) if column.not_null => {
                    let why = "is NOT NULL, the field is null";
                    return Err(Box::new(mapping.closed(record, column, Reason::NullInNotNull, why)));
                }
                None if column.required && mapping.mode != Mode::Update => {
                    return Err(Box::new(mapping.lacking(record, column)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A field of the value that bears the name of a key column must say what the key says.
    fn check_twins<T: Table>(&self, mapping: &Mapping<T>, record: &Record<'_>) -> Result<(), Box<BadRecord>> {
        for (index, slot) in &mapping.twins {
            let Some(twin) = self.reader.values.get(*slot).copied().flatten() else { continue };
            let cell = self.cells.get(*index).and_then(Option::as_ref);
            if matches!(cell, Some(RowCell::Json(raw)) if raw == twin) {
                continue;
            }
            let Some((column, cell)) = mapping.table.columns().get(*index).zip(cell) else { continue };
            let twin = RowCell::json(twin);
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for (cell, out) in [(cell, &mut key), (&twin, &mut value)] {
                let mut bytes = Vec::new();
                encode_cell(mapping, record, *index, column, cell, &mut bytes)?;
                append_key(mapping, *index, &bytes, out);
            }
            if twin == RowCell::Null || key != value {
                let why = "comes from the record's key, and the value has another in the field of that name; columns.<column> names the one that counts";
                return Err(Box::new(mapping.closed(record, column, Reason::Rejected, why)));
            }
        }
        Ok(())
    }
}

/// The fields that nobody asked for as one JSON object, values as they were received.
fn gather(unknown: &[(Cow<'_, str>, &str)]) -> String {
    let mut extra = String::new();
    for (name, value) in unknown {
        extra.push(if extra.is_empty() { '{' } else { ',' });
        extra.push_str(&serde_json::Value::from(name.as_ref()).to_string());
        extra.push(':');
        extra.push_str(value);
    }
    extra.push('}');
    extra
}
