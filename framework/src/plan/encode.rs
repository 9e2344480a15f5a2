//! A batch into encoded rows, before its transaction begins and without the database.
//!
//! Invariant: a pure function of the batch and of the catalog as it was read. Either every record of the batch is accounted for, or all of its bad records are
//! reported. Folding happens here, after the parts of the batch are chosen, and again whenever one of them leaves.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::column::{Cell, Column, Table, Takes};
use super::config::Mode;
use super::fold::{Changes, Fold, RecordAt, Rule};
use super::mapping::{Mapping, Source, Tombstones, Unknown};
use super::names;
use super::reader::{Key, Reader, Refusal, below, utf8};
use super::rows::{Groups, RowAt};
use crate::batch::{Batch, Part};
use crate::error::{BadRecord, Class, Failure, Reason, SinkError};
use crate::record::Record;
use crate::value;
use crate::written::{Counts, Written};

/// A table, and how it is written: topics that share all of this are written together.
#[derive(Debug)]
pub struct Target<T> {
    /// The table.
    pub table: Arc<T>,
    /// How rows are written.
    pub mode: Mode,
    /// Indices of the key columns.
    pub key: Vec<usize>,
}

/// The mappings of a sink's topics.
#[derive(Debug)]
pub struct Mappings<T> {
    by_topic: BTreeMap<String, (Mapping<T>, usize)>,
    targets: Vec<Target<T>>,
}

impl<T> Default for Mappings<T> {
    fn default() -> Self {
        Self { by_topic: BTreeMap::new(), targets: Vec::new() }
    }
}

impl<T: Table> Mappings<T> {
    /// Adds a topic.
    pub fn add(&mut self, topic: &str, mapping: Mapping<T>) {
        let same = |target: &Target<T>| {
            Arc::ptr_eq(&target.table, &mapping.table)
                && target.mode == mapping.mode
                && target.key == mapping.key
        };
        let target = self.targets.iter().position(same).unwrap_or_else(|| {
            let (table, mode, key) = (Arc::clone(&mapping.table), mapping.mode, mapping.key.clone());
            self.targets.push(Target { table, mode, key });
            self.targets.len() - 1
        });
        self.by_topic.insert(topic.to_owned(), (mapping, target));
    }

    /// The mapping of a topic.
    pub fn of(&self, topic: &str) -> Option<&Mapping<T>> {
        self.by_topic.get(topic).map(|(mapping, _)| mapping)
    }

    /// The targets.
    pub fn targets(&self) -> &[Target<T>] {
        &self.targets
    }

    /// Encodes a batch.
    ///
    /// # Errors
    /// All bad records of the batch; `StaleCatalog` for a topic that was not there when the sink was opened.
    pub fn encode(&self, batch: &Batch) -> Result<Planned, SinkError> {
        let mut work: Vec<Vec<Work>> = self.targets.iter().map(|_| Vec::new()).collect();
        let mut counts = vec![Counts::default(); batch.parts().len()];
        let mut bad = Vec::new();
        for (index, part) in batch.parts().iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let topic = &part.topic_partition().topic;
            let (mapping, target) = self.by_topic.get(&**topic).ok_or_else(|| not_opened(topic))?;
            let Some(work) = work.get_mut(*target) else { continue };
            if work.is_empty() {
                work.push(Work::new(mapping, batch.bytes()));
            }
            Encoder { mapping, work, counts: &mut counts, bad: &mut bad, part: index, key: Vec::new() }
                .part(part);
        }
        if !bad.is_empty() {
            return Err(SinkError::Bad(bad));
        }
        let changes = work
            .into_iter()
            .enumerate()
            .flat_map(|(target, work)| work.into_iter().map(move |work| (target, work.finish())));
        let mut written = Written::default();
        for (part, counts) in batch.parts().iter().zip(&counts) {
            written.topic(&part.topic_partition().topic).add(counts);
        }
        Ok(Planned { targets: changes.filter(|(_, changes)| !changes.is_empty()).collect(), written })
    }

    /// What a record would become: each column that it carries, with the value as JSON; none for a record that is skipped.
    ///
    /// # Errors
    /// Why it is bad.
    pub fn preview(&self, record: &Record<'_>) -> Result<Option<Preview>, SinkError> {
        let (mapping, _) = self.by_topic.get(record.topic()).ok_or_else(|| not_opened(record.topic()))?;
        super::preview::preview(mapping, record).map_err(|bad| SinkError::Bad(vec![*bad]))
    }
}

pub use super::preview::Preview;

/// The bad records of a mode that needs their rows to be there: of these places in the batch, in the order of its records.
pub fn missing_rows<'r>(
    batch: &Batch,
    table: &str,
    records: impl Iterator<Item = &'r RecordAt>,
) -> Vec<BadRecord> {
    let wanted: HashSet<(usize, i64)> = records.map(|at| (at.part, at.offset)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let parts = batch.parts().iter().enumerate();
    let records = parts.flat_map(|(nth, part)| part.records().map(move |record| (nth, record)));
    records
        .filter(|(nth, record)| wanted.contains(&(*nth, record.offset())))
        .map(|(_, record)| {
            let mut bad = record.bad(Reason::MissingRow, format!("no row of {table} has this key"));
            bad.table = Some(table.to_owned());
            bad
        })
        .collect()
}

fn not_opened(topic: &str) -> Failure {
    Failure::new(Class::StaleCatalog, format!("topic {topic:?} was not there when the sink was opened"))
}

/// What `write` does for a batch.
#[derive(Debug)]
pub struct Planned {
    /// Index of the target in [`Mappings::targets`], and what is to be written into it, in this order. A target comes more than once where its deletes must
    /// stay between the rows before and behind them.
    pub targets: Vec<(usize, Changes)>,
    /// The books.
    pub written: Written,
}

/// What a batch does to one target, or what a run of its records does.
struct Work {
    groups: Groups,
    fold: Option<Fold>,
    /// Where the order across groups matters, and no key tells which rows exclude each other.
    order: Option<Vec<RowAt>>,
    /// Whether the run deletes; none before its first record.
    deletes: Option<bool>,
}

impl Work {
    fn new<T: Table>(mapping: &Mapping<T>, room: usize) -> Self {
        let columns = mapping.table.columns().len();
        let rule = match mapping.mode {
            Mode::Upsert => Some(Rule::Last),
            Mode::Update => Some(Rule::MustExist),
            Mode::InsertIgnore if !mapping.key.is_empty() => Some(Rule::First),
            Mode::InsertIgnore | Mode::Insert => None,
        };
        Self {
            groups: Groups::with_room(room),
            fold: rule.map(|rule| Fold::new(columns, &mapping.key, rule)),
            order: (mapping.mode == Mode::InsertIgnore && rule.is_none()).then(Vec::new),
            deletes: None,
        }
    }

    fn finish(self) -> Changes {
        match self.fold {
            Some(fold) => fold.finish(self.groups),
            None => Changes::all(self.groups, self.order.unwrap_or_default()),
        }
    }
}

struct Encoder<'e, T> {
    mapping: &'e Mapping<T>,
    /// The runs so far; never empty.
    work: &'e mut Vec<Work>,
    counts: &'e mut [Counts],
    bad: &'e mut Vec<BadRecord>,
    part: usize,
    /// The key of the record at hand.
    key: Vec<u8>,
}

impl<T: Table> Encoder<'_, T> {
    fn part(&mut self, part: &Part) {
        let mut row = RowReader::new(self.mapping);
        for record in part.records() {
            let done = match record.value() {
                None => self.tombstone(&record, &mut row),
                Some(payload) => self.record(&record, payload, &mut row),
            };
            if let Err(found) = done {
                self.bad.push(*found);
            }
        }
    }

    fn tombstone<'b>(&mut self, record: &Record<'b>, row: &mut RowReader<'b>) -> Result<(), Box<BadRecord>> {
        let mapping = self.mapping;
        match mapping.tombstones {
            Tombstones::Skip => {
                if let Some(counts) = self.counts.get_mut(self.part) {
                    counts.skipped += 1;
                }
                Ok(())
            }
            Tombstones::Bad => {
                let message = "a record without a value (delete = \"none\" would skip it)".to_owned();
                Err(Box::new(mapping.bad(record, Reason::Tombstone, message, None)))
            }
            Tombstones::Delete => {
                row.read(mapping, record, None)?;
                let mut cells = Vec::with_capacity(mapping.key.len());
                self.key.clear();
                for column in &mapping.key {
                    let encoded = key_cell(mapping, record, row, *column)?;
                    append_key(mapping, *column, &encoded, &mut self.key);
                    cells.push((*column, encoded));
                }
                // As in every group: in the table's order, whatever the file's.
                cells.sort_unstable_by_key(|(column, _)| *column);
                if let Some(fold) = run(self.work, mapping, true).and_then(|work| work.fold.as_mut()) {
                    fold.delete(&self.key, self.part, self.counts, |group| {
                        cells.iter().for_each(|(_, cell)| group.cell(Some(cell)));
                    });
                }
                Ok(())
            }
        }
    }

    fn record<'b>(
        &mut self,
        record: &Record<'b>,
        payload: &'b [u8],
        row: &mut RowReader<'b>,
    ) -> Result<(), Box<BadRecord>> {
        let mapping = self.mapping;
        row.read(mapping, record, Some(payload))?;
        row.check_carried(mapping, record)?;
        let columns = mapping.table.columns();
        let carried = (0..columns.len()).filter(|index| row.carries(*index));
        let Some(work) = run(self.work, mapping, false) else { return Ok(()) };
        let at = work.groups.of(columns.len(), carried);
        let Some(group) = work.groups.group_mut(at) else { return Ok(()) };
        group.begin_row();
        for nth in 0..group.columns.len() {
            let Some(index) = group.columns.get(nth).copied() else { break };
            let Some(column) = columns.get(index) else { break };
            let written = match row.cells.get(index).and_then(Option::as_ref) {
                Some(RowCell::Null) | None => {
                    group.null();
                    Ok(())
                }
                Some(cell) => group.value(|out| encode_cell(mapping, record, index, column, cell, out)),
            };
            if let Err(bad) = written {
                group.drop_row();
                return Err(bad);
            }
        }
        let row_at = RowAt { group: at, row: group.len() - 1 };
        self.fold(record, row_at)
    }

    /// A row is encoded: it is a row of its own, or one more record of its key.
    fn fold(&mut self, record: &Record<'_>, at: RowAt) -> Result<(), Box<BadRecord>> {
        let (key, mapping) = (&mut self.key, self.mapping);
        let Some(Work { groups, fold, order, .. }) = self.work.last_mut() else { return Ok(()) };
        let Some(fold) = fold else {
            if let Some(counts) = self.counts.get_mut(self.part) {
                counts.records += 1;
            }
            if let Some(order) = order {
                order.push(at);
            }
            return Ok(());
        };
        key.clear();
        if let Some(group) = groups.groups().get(at.group) {
            for column in &mapping.key {
                let nth = group.columns.binary_search(column).unwrap_or(usize::MAX);
                let cell = group.cells(at.row).nth(nth).flatten().unwrap_or_default();
                append_key(mapping, *column, cell, key);
            }
        }
        let from = RecordAt { part: self.part, offset: record.offset() };
        if fold.put(key, at, from, groups, self.counts) {
            return Ok(());
        }
        let message =
            format!("no row of {} has this key: it was deleted just before", mapping.table.display());
        Err(Box::new(mapping.bad(record, Reason::MissingRow, message, None)))
    }
}

/// The run that takes a record that deletes, or one that does not. What a delete does to rows of other keys is done between the records before and behind it:
/// there a run ends where the kind changes.
fn run<'w, T: Table>(work: &'w mut Vec<Work>, mapping: &Mapping<T>, deletes: bool) -> Option<&'w mut Work> {
    let apart = mapping.table.deletes_reach_other_rows();
    let ended = |work: &Work| apart && work.deletes.is_some_and(|before| before != deletes);
    if work.last().is_none_or(ended) {
        work.push(Work::new(mapping, 0));
    }
    let work = work.last_mut()?;
    work.deletes = Some(deletes);
    Some(work)
}

/// The key's column in its encoded form.
fn key_cell<T: Table>(
    mapping: &Mapping<T>,
    record: &Record<'_>,
    row: &RowReader<'_>,
    index: usize,
) -> Result<Vec<u8>, Box<BadRecord>> {
    let mut bytes = Vec::new();
    let column = mapping.table.columns().get(index);
    match (column, row.cells.get(index).and_then(Option::as_ref)) {
        (Some(column), Some(cell)) if !matches!(cell, RowCell::Null) => {
            encode_cell(mapping, record, index, column, cell, &mut bytes)?;
            Ok(bytes)
        }
        (_, cell) => Err(Box::new(no_key(mapping, record, index, cell.is_some()))),
    }
}

/// Appends a key column so that keys are equal exactly when the database takes them for the same.
fn append_key<T: Table>(mapping: &Mapping<T>, column: usize, encoded: &[u8], key: &mut Vec<u8>) {
    let start = key.len();
    key.extend_from_slice(&[0; 4]);
    mapping.table.key_form(column, encoded, key);
    let length = (key.len() - start - 4) as u32;
    if let Some(slot) = key.get_mut(start..start + 4) {
        slot.copy_from_slice(&length.to_be_bytes());
    }
}

fn no_key<T: Table>(mapping: &Mapping<T>, record: &Record<'_>, column: usize, null: bool) -> BadRecord {
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

    fn carries(&self, column: usize) -> bool {
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
