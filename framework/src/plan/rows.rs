//! Encoded rows, grouped by the columns that they carry.
//!
//! A row is a tuple: a 16-bit number of cells, then each cell as a 32-bit length (-1 for null) and that many bytes, all big-endian. That is the form of a
//! binary COPY of Postgres, which can thus send rows as they lie here; other connectors read the cells.

use std::collections::HashMap;

/// Rows that carry the same columns.
#[derive(Debug)]
pub struct Group {
    /// Indices into the table's columns, ascending.
    pub columns: Vec<usize>,
    bytes: Vec<u8>,
    /// Where each row begins.
    starts: Vec<usize>,
}

impl Group {
    pub(super) fn new(columns: Vec<usize>, room: usize) -> Self {
        Self { columns, bytes: Vec::with_capacity(room), starts: Vec::new() }
    }

    /// Number of rows, superseded ones included.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// All rows, one behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// One row's tuple.
    pub fn row(&self, row: usize) -> &[u8] {
        let Some(start) = self.starts.get(row) else { return &[] };
        let end = self.starts.get(row + 1).copied().unwrap_or(self.bytes.len());
        self.bytes.get(*start..end).unwrap_or_default()
    }

    /// One row's cells, in the order of [`Group::columns`]; none is null.
    pub fn cells(&self, row: usize) -> Cells<'_> {
        Cells { rest: self.row(row).get(2..).unwrap_or_default() }
    }

    /// Begins a row; [`Group::end_row`] or [`Group::drop_row`] follows.
    pub(super) fn begin_row(&mut self) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
    }

    /// Takes back the row that was begun last.
    pub(super) fn drop_row(&mut self) {
        if let Some(start) = self.starts.pop() {
            self.bytes.truncate(start);
        }
    }

    /// Appends a null.
    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    /// Appends a value with its length in front.
    pub(super) fn value<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes)?;
        let length = (self.bytes.len() - start - 4) as i32;
        if let Some(slot) = self.bytes.get_mut(start..start + 4) {
            slot.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// Appends a cell that is encoded already.
    pub(super) fn cell(&mut self, cell: Option<&[u8]>) {
        match cell {
            Some(bytes) => {
                self.bytes.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                self.bytes.extend_from_slice(bytes);
            }
            None => self.null(),
        }
    }
}

/// The cells of a row.
#[derive(Clone, Debug)]
pub struct Cells<'g> {
    rest: &'g [u8],
}

impl<'g> Iterator for Cells<'g> {
    type Item = Option<&'g [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (cell, rest) = rest.split_at_checked(length)?;
                self.rest = rest;
                Some(Some(cell))
            }
            Err(_) => {
                self.rest = rest;
                Some(None)
            }
        }
    }
}

/// A row among groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAt {
    /// Index of the group.
    pub group: usize,
    /// Index of the row in it.
    pub row: usize,
}

/// All groups of one target in one batch.
#[derive(Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
    index: HashMap<Box<[u64]>, usize>,
    /// One bit a column, for the row at hand.
    present: Vec<u64>,
    /// Columns of the row before and its group: the next row mostly has the same.
    last: Option<(Vec<u64>, usize)>,
    /// Bytes to make room for in the first group, which mostly is the only one.
    room: usize,
}

impl Groups {
    /// No groups yet, of records with so many bytes.
    pub(super) fn with_room(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// The groups, in the order in which their first rows came.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(super) fn group_mut(&mut self, index: usize) -> Option<&mut Group> {
        self.groups.get_mut(index)
    }

    /// Index of the group of a row that carries these columns, of a table with so many.
    pub(super) fn of(&mut self, columns: usize, carried: impl Iterator<Item = usize>) -> usize {
        self.present.clear();
        self.present.resize(columns.div_ceil(64), 0);
        for column in carried {
            if let Some(word) = self.present.get_mut(column / 64) {
                *word |= 1 << (column % 64);
            }
        }
        if let Some((last, group)) = &self.last
            && *last == self.present
        {
            return *group;
        }
        let found = self.find();
        match &mut self.last {
            Some((last, group)) => {
                last.clone_from(&self.present);
                *group = found;
            }
            None => self.last = Some((self.present.clone(), found)),
        }
        found
    }

    fn find(&mut self) -> usize {
        if let Some(index) = self.index.get(self.present.as_slice()) {
            return *index;
        }
        let columns = (0..self.present.len() * 64).filter(|column| self.is_present(*column)).collect();
        let room = std::mem::take(&mut self.room);
        self.groups.push(Group::new(columns, room));
        self.index.insert(self.present.as_slice().into(), self.groups.len() - 1);
        self.groups.len() - 1
    }

    fn is_present(&self, column: usize) -> bool {
        self.present.get(column / 64).is_some_and(|word| word >> (column % 64) & 1 == 1)
    }

    /// A new row with the columns of both: where both carry one, the later row's.
    pub(super) fn merge(&mut self, columns: usize, earlier: RowAt, later: RowAt) -> RowAt {
        let mut cells = self.owned(earlier);
        cells.extend(self.owned(later));
        let group = self.of(columns, cells.keys().copied());
        let mut row = 0;
        if let Some(group) = self.groups.get_mut(group) {
            row = group.len();
            group.begin_row();
            cells.values().for_each(|cell| group.cell(cell.as_deref()));
        }
        RowAt { group, row }
    }

    /// A row's cells by column.
    fn owned(&self, at: RowAt) -> std::collections::BTreeMap<usize, Option<Vec<u8>>> {
        let Some(group) = self.groups.get(at.group) else { return Default::default() };
        let cells = group.cells(at.row).map(|cell| cell.map(<[u8]>::to_vec));
        group.columns.iter().copied().zip(cells).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(groups: &mut Groups, cells: &[(usize, Option<&[u8]>)]) -> RowAt {
        let group = groups.of(70, cells.iter().map(|(column, _)| *column));
        let into = groups.group_mut(group).unwrap();
        into.begin_row();
        cells.iter().for_each(|(_, cell)| into.cell(*cell));
        RowAt { group, row: into.len() - 1 }
    }

    #[test]
    fn rows_are_grouped_by_what_they_carry_and_read_back() {
        let mut groups = Groups::default();
        let first = put(&mut groups, &[(0, Some(b"a")), (69, None)]);
        let second = put(&mut groups, &[(0, Some(b"b"))]);
        let third = put(&mut groups, &[(0, Some(b"")), (69, Some(b"z"))]);
        assert_eq!((first.group, second.group, third.group, third.row), (0, 1, 0, 1));
        let cells = |at: RowAt| groups.groups()[at.group].cells(at.row).collect::<Vec<_>>();
        assert_eq!(cells(first), [Some(b"a".as_slice()), None]);
        assert_eq!(cells(second), [Some(b"b".as_slice())]);
        assert_eq!(cells(third), [Some(b"".as_slice()), Some(b"z")]);
        assert_eq!(groups.groups()[0].columns, [0, 69]);
    }

    #[test]
    fn merged_rows_carry_the_columns_of_both_and_the_later_values() {
        let mut groups = Groups::default();
        let earlier = put(&mut groups, &[(0, Some(b"k")), (1, Some(b"1")), (2, Some(b"2"))]);
        let later = put(&mut groups, &[(0, Some(b"k")), (2, None), (3, Some(b"3"))]);
        let merged = groups.merge(70, earlier, later);
        let group = &groups.groups()[merged.group];
        assert_eq!(group.columns, [0, 1, 2, 3]);
        assert_eq!(
            group.cells(merged.row).collect::<Vec<_>>(),
            [Some(b"k".as_slice()), Some(b"1"), None, Some(b"3")]
        );
    }

    #[test]
    fn a_row_that_was_dropped_leaves_nothing() {
        let mut group = Group::new(vec![0], 0);
        group.begin_row();
        group.cell(Some(b"x"));
        group.drop_row();
        assert!(group.is_empty() && group.bytes().is_empty());
    }
}
