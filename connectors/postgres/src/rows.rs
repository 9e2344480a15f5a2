//! The rows of one table, grouped by the fields that they carry, already as tuples of a binary COPY.
//!
//! A tuple is a 16-bit number of fields, then each field as a 32-bit length (-1 for NULL) and that many bytes. The same bytes are bound as array elements or
//! as single parameters where no COPY is used, so that all ways of writing give identical rows.

use std::collections::HashMap;
use std::ops::Range;

use crate::catalog::{Kind, Table, Target};

/// What a binary COPY begins with: signature, no flags, no extension (Postgres documentation, COPY, "Binary Format").
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// And ends with: a field count of -1.
const COPY_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Rows that carry the same columns.
#[derive(Debug)]
pub(crate) struct Group {
    /// Indices into the table's columns, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) rows: usize,
    /// A COPY without its trailer.
    bytes: Vec<u8>,
    row_start: usize,
    /// Column that these rows lack although nothing else would fill it: such rows are bad.
    pub(crate) lacking: Option<usize>,
}

impl Group {
    fn new(table: &Table, present: &[u64], room: usize) -> Self {
        let columns: Vec<_> = (0..table.columns.len()).filter(|index| is_present(present, *index)).collect();
        let lacking = table
            .columns
            .iter()
            .enumerate()
            .position(|(index, column)| column.required && !is_present(present, index));
        let mut bytes = Vec::with_capacity(room);
        bytes.extend_from_slice(COPY_HEADER);
        Self { columns, rows: 0, bytes, row_start: 0, lacking }
    }

    /// Begins a row; [`Group::end_row`] or [`Group::drop_row`] follows.
    pub(crate) fn begin_row(&mut self) {
        self.row_start = self.bytes.len();
        self.bytes.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
    }

    /// Counts the row that was begun.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// Takes back what was appended of the row that was begun.
    pub(crate) fn drop_row(&mut self) {
        self.bytes.truncate(self.row_start);
    }

    /// Appends a NULL.
    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    /// Appends a value with its length in front.
    pub(crate) fn value<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes)?;
        let length = (self.bytes.len() - start - 4) as i32;
        if let Some(slot) = self.bytes.get_mut(start..start + 4) {
            slot.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// The whole COPY.
    pub(crate) fn into_copy(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&COPY_TRAILER);
        self.bytes
    }

    /// The values, row by row, as ranges of [`Group::bytes`]; none is NULL.
    pub(crate) fn cells(&self) -> Vec<Option<Range<usize>>> {
        let mut cells = Vec::with_capacity(self.rows * self.columns.len());
        let mut at = COPY_HEADER.len();
        for _ in 0..self.rows {
            at += 2;
            for _ in &self.columns {
                let length = self
                    .bytes
                    .get(at..at + 4)
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(-1, i32::from_be_bytes);
                at += 4;
                let range = usize::try_from(length).ok().map(|length| at..at + length);
                at = range.as_ref().map_or(at, |range| range.end);
                cells.push(range);
            }
        }
        cells
    }

    /// The bytes that [`Group::cells`] points into.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The types of the columns, in order.
    pub(crate) fn kinds<'t>(&'t self, table: &'t Table) -> impl Iterator<Item = Kind> + 't {
        self.columns.iter().filter_map(|index| match table.columns.get(*index)?.target {
            Target::Typed(kind) => Some(kind),
            _ => None,
        })
    }

    /// The names of the columns, in order.
    pub(crate) fn names<'t>(&'t self, table: &'t Table) -> impl Iterator<Item = &'t str> + 't {
        self.columns.iter().filter_map(|index| table.columns.get(*index).map(|column| column.name.as_str()))
    }
}

/// All groups of one table in one batch.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Group>,
    index: HashMap<Box<[u64]>, usize>,
    /// One bit a column, for the row at hand.
    present: Vec<u64>,
    /// Group of the row before and its columns: the next row mostly has the same.
    last: (Vec<u64>, usize),
    /// Bytes to make room for in the first group, which mostly is the only one.
    room: usize,
}

impl Groups {
    /// No groups yet, of records with so many bytes.
    pub(crate) fn with_room(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// The group of a row that carries these columns.
    pub(crate) fn of<'g>(
        &'g mut self,
        table: &Table,
        carried: impl Iterator<Item = usize>,
    ) -> Option<&'g mut Group> {
        self.present.clear();
        self.present.resize(table.columns.len().div_ceil(64), 0);
        for column in carried {
            if let Some(word) = self.present.get_mut(column / 64) {
                *word |= 1 << (column % 64);
            }
        }
        if self.last.0 != self.present {
            let found = self.find(table);
            self.last.0.clone_from(&self.present);
            self.last.1 = found;
        }
        self.groups.get_mut(self.last.1)
    }

    fn find(&mut self, table: &Table) -> usize {
        if let Some(index) = self.index.get(self.present.as_slice()) {
            return *index;
        }
        let room = std::mem::take(&mut self.room);
        self.groups.push(Group::new(table, &self.present, room));
        self.index.insert(self.present.as_slice().into(), self.groups.len() - 1);
        self.groups.len() - 1
    }
}

fn is_present(present: &[u64], column: usize) -> bool {
    present.get(column / 64).is_some_and(|word| word >> (column % 64) & 1 == 1)
}
