//! A batch into encoded rows, before its transaction begins and without the database.
//!
//! Invariant: a pure function of the batch and of the catalog as it was read. Either every record of the batch is accounted for, or all of its bad records are
//! reported. Folding happens here, after the parts of the batch are chosen, and again whenever one of them leaves.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::column::Table;
use super::config::Mode;
use super::fold::{Changes, Fold, RecordAt, Rule};
use super::mapping::{Mapping, Tombstones};
use super::row::{RowCell, RowReader, encode_cell, no_key};
use super::rows::{Groups, RowAt};
use crate::batch::{Batch, Part};
use crate::error::{BadRecord, Class, Failure, Reason, SinkError};
use crate::record::Record;
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
pub(super) fn append_key<T: Table>(mapping: &Mapping<T>, column: usize, encoded: &[u8], key: &mut Vec<u8>) {
    let start = key.len();
    key.extend_from_slice(&[0; 4]);
    mapping.table.key_form(column, encoded, key);
    let length = (key.len() - start - 4) as u32;
    if let Some(slot) = key.get_mut(start..start + 4) {
        slot.copy_from_slice(&length.to_be_bytes());
    }
}
