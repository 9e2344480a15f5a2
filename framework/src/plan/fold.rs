//! The net effect of a batch on each key.
//!
//! Invariant: what is left, deletes first and then rows, ends in the same table as applying the records one by one would: a row that was deleted and made again
//! is deleted and made again, a column that no record carried is not touched, and no key occurs twice. Every record is counted once: as written, as
//! deleted, or as collapsed into another one of its key.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use super::rows::{Group, Groups, RowAt};
use crate::written::Counts;

/// A record's place in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordAt {
    /// Index of the part.
    pub part: usize,
    /// The record's offset.
    pub offset: i64,
}

/// What is left of the records of one key.
#[derive(Debug, Default)]
struct Net {
    /// The row with this key is deleted first: index into the group of deletes, and the part that asked for it.
    deleted: Option<(usize, usize)>,
    /// Then this row is written; the part of the last record in it.
    put: Option<(RowAt, usize)>,
    /// Where the rows of `put` came from; only kept where a row without a match makes its records bad.
    sources: Vec<RecordAt>,
    /// The records that changed the row before it was deleted: it had to be there for them, too.
    sources_before: Vec<RecordAt>,
}

/// What several records of one key come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A later record changes what it carries.
    Last,
    /// The same, of a row that must be there before: a batch that lacks it knows whose records are bad.
    MustExist,
    /// The first record counts; later ones are left out.
    First,
}

/// Folds records of one target as they come.
#[derive(Debug)]
pub(super) struct Fold {
    by_key: HashMap<Box<[u8]>, Net>,
    deletes: Group,
    columns: usize,
    rule: Rule,
}

impl Fold {
    /// Of a table with so many columns, by these key columns.
    pub(super) fn new(columns: usize, key: &[usize], rule: Rule) -> Self {
        let mut key = key.to_vec();
        key.sort_unstable();
        Self { by_key: HashMap::new(), deletes: Group::new(key, 0), columns, rule }
    }

    /// The last row of its group is one more record of this key; answers whether it may be: a row that must exist and that this batch deletes is not there to
    /// be updated.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        row: RowAt,
        from: RecordAt,
        groups: &mut Groups,
        counts: &mut [Counts],
    ) -> bool {
        let net = net_of(&mut self.by_key, key);
        if self.rule == Rule::MustExist && net.deleted.is_some() {
            return false;
        }
        let row = match net.put {
            Some(_) if self.rule == Rule::First => {
                count(counts, from.part, |counts| counts.collapsed += 1);
                return true;
            }
            Some((earlier, part)) => {
                supersede(counts, part);
                if covers(groups, row, earlier) { row } else { groups.merge(self.columns, earlier, row) }
            }
            None => row,
        };
        net.put = Some((row, from.part));
        count(counts, from.part, |counts| counts.records += 1);
        if self.rule == Rule::MustExist {
            net.sources.push(from);
        }
        true
    }

    /// A record that deletes this key, whose cells `write` appends in the table's order.
    pub(super) fn delete(
        &mut self,
        key: &[u8],
        part: usize,
        counts: &mut [Counts],
        write: impl FnOnce(&mut Group),
    ) {
        let net = net_of(&mut self.by_key, key);
        if let Some((_, part)) = net.put.take() {
            supersede(counts, part);
        }
        net.sources_before.append(&mut net.sources);
        match net.deleted {
            Some(_) => count(counts, part, |counts| counts.collapsed += 1),
            None => {
                self.deletes.begin_row();
                write(&mut self.deletes);
                net.deleted = Some((self.deletes.len() - 1, part));
                count(counts, part, |counts| counts.deleted += 1);
            }
        }
    }

    /// What is left, sorted by key, so that transactions that write the same keys lock them in the same order.
    pub(super) fn finish(self, groups: Groups) -> Changes {
        let mut nets: Vec<(Box<[u8]>, Net)> = self.by_key.into_iter().collect();
        nets.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut deletes, mut before) = (Vec::new(), (Vec::new(), Vec::new()));
        let mut puts: Vec<Vec<usize>> = groups.groups().iter().map(|_| Vec::new()).collect();
        let mut sources: Vec<Vec<Vec<RecordAt>>> = groups.groups().iter().map(|_| Vec::new()).collect();
        for (_, net) in nets {
            deletes.extend(net.deleted.map(|(row, _)| row));
            if let Some((row, _)) = net.deleted.filter(|_| !net.sources_before.is_empty()) {
                before.0.push(row);
                before.1.push(net.sources_before);
            }
            if let Some((at, _)) = net.put {
                if let Some(rows) = puts.get_mut(at.group) {
                    rows.push(at.row);
                }
                if let Some(of) = sources.get_mut(at.group).filter(|_| self.rule == Rule::MustExist) {
                    of.push(net.sources);
                }
            }
        }
        Changes { groups, rows: puts, sources, deletes: (self.deletes, deletes), before, order: Vec::new() }
    }
}

/// What is to be written into one target: first the deletes, then the rows of each group.
#[derive(Debug)]
pub struct Changes {
    groups: Groups,
    rows: Vec<Vec<usize>>,
    sources: Vec<Vec<Vec<RecordAt>>>,
    deletes: (Group, Vec<usize>),
    /// Of the deletes, those whose rows were to be changed before, and by which records.
    before: (Vec<usize>, Vec<Vec<RecordAt>>),
    order: Vec<RowAt>,
}

/// The rows of a group that are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'c> {
    /// The group.
    pub group: &'c Group,
    /// Indices of its rows, in the order of writing.
    pub rows: &'c [usize],
    /// The records behind each of these rows; empty where nobody asks.
    pub sources: &'c [Vec<RecordAt>],
}

impl<'c> Chosen<'c> {
    /// The cells of the n-th row.
    pub fn cells(&self, nth: usize) -> super::rows::Cells<'c> {
        self.group.cells(self.rows.get(nth).copied().unwrap_or(usize::MAX))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Changes {
    /// Every row of every group, in the order in which it came; `order` is that of all groups together, where somebody asks for it.
    pub(super) fn all(groups: Groups, order: Vec<RowAt>) -> Self {
        let rows = groups.groups().iter().map(|group| (0..group.len()).collect()).collect();
        let deletes = (Group::new(Vec::new(), 0), Vec::new());
        Self { groups, rows, sources: Vec::new(), deletes, before: (Vec::new(), Vec::new()), order }
    }

    /// Rows that are deleted, but that records before the deleting one were to change: the mode wants them to be there. To be looked for before anything else.
    pub fn changed_before_deletes(&self) -> Chosen<'_> {
        Chosen { group: &self.deletes.0, rows: &self.before.0, sources: &self.before.1 }
    }

    /// The rows of all groups one by one, in the order of their records: for `insert-ignore` without a key, where the first of two rows that exclude each other
    /// is the one that stays. Empty in all other modes.
    pub fn in_order(&self) -> impl Iterator<Item = (&Group, usize)> {
        self.order.iter().filter_map(|at| Some((self.groups.groups().get(at.group)?, at.row)))
    }

    /// The keys whose rows are deleted first; the group's columns are the key columns.
    pub fn deletes(&self) -> Chosen<'_> {
        Chosen { group: &self.deletes.0, rows: &self.deletes.1, sources: &[] }
    }

    /// The rows that are written then, by the columns that they carry.
    pub fn groups(&self) -> impl Iterator<Item = Chosen<'_>> {
        let sources = self.sources.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        self.groups
            .groups()
            .iter()
            .zip(&self.rows)
            .zip(sources)
            .map(|((group, rows), sources)| Chosen { group, rows, sources })
            .filter(|chosen| !chosen.rows.is_empty())
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.deletes.1.is_empty() && self.rows.iter().all(Vec::is_empty)
    }
}

fn net_of<'n>(by_key: &'n mut HashMap<Box<[u8]>, Net>, key: &[u8]) -> &'n mut Net {
    match by_key.entry(key.into()) {
        Slot::Occupied(slot) => slot.into_mut(),
        Slot::Vacant(slot) => slot.insert(Net::default()),
    }
}

fn covers(groups: &Groups, later: RowAt, earlier: RowAt) -> bool {
    if later.group == earlier.group {
        return true;
    }
    let columns = |at: RowAt| groups.groups().get(at.group).map_or(&[][..], |group| &group.columns);
    columns(earlier).iter().all(|column| columns(later).binary_search(column).is_ok())
}

/// The record counted as written before is collapsed into a later one.
fn supersede(counts: &mut [Counts], part: usize) {
    count(counts, part, |counts| {
        counts.records = counts.records.saturating_sub(1);
        counts.collapsed += 1;
    });
}

fn count(counts: &mut [Counts], part: usize, change: impl FnOnce(&mut Counts)) {
    if let Some(counts) = counts.get_mut(part) {
        change(counts);
    }
}
