//! What a record would become, for people who look before they run.

use super::column::Table;
use super::mapping::{Mapping, Tombstones};
use super::row::{RowCell, RowReader, encode_cell};
use crate::error::{BadRecord, Reason};
use crate::record::Record;

/// What a record becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preview {
    /// A row, by the sink's mode: column and value as JSON, or bytes as hexadecimal digits.
    Row(Vec<(String, String)>),
    /// The row with this key is deleted.
    Delete(Vec<(String, String)>),
}

/// Reads and encodes a record as a batch would.
pub(super) fn preview<T: Table>(
    mapping: &Mapping<T>,
    record: &Record<'_>,
) -> Result<Option<Preview>, Box<BadRecord>> {
    let mut row = RowReader::new(mapping);
    if record.value().is_none() {
        return match mapping.tombstones {
            Tombstones::Skip => Ok(None),
            Tombstones::Bad => {
                let message = "a record without a value (delete = \"none\" would skip it)".to_owned();
                Err(Box::new(mapping.bad(record, Reason::Tombstone, message, None)))
            }
            Tombstones::Delete => {
                row.read(mapping, record, None)?;
                Ok(Some(Preview::Delete(shown(mapping, record, &row, |column| {
                    mapping.key.contains(&column)
                })?)))
            }
        };
    }
    row.read(mapping, record, record.value())?;
    row.check_carried(mapping, record)?;
    Ok(Some(Preview::Row(shown(mapping, record, &row, |_| true)?)))
}

fn shown<T: Table>(
    mapping: &Mapping<T>,
    record: &Record<'_>,
    row: &RowReader<'_>,
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<(String, String)>, Box<BadRecord>> {
    let mut shown = Vec::new();
    for (index, column) in mapping.table.columns().iter().enumerate().filter(|(index, _)| wanted(*index)) {
        let Some(cell) = row.cells.get(index).and_then(Option::as_ref) else { continue };
        let mut bytes = Vec::new();
        encode_cell(mapping, record, index, column, cell, &mut bytes)?;
        let text = match cell {
            RowCell::Null => "null".to_owned(),
            RowCell::Json(raw) => raw.clone().into_owned(),
            RowCell::Bytes(bytes) => format!("\\x{}", hex::encode(bytes)),
        };
        shown.push((column.name.clone(), text));
    }
    Ok(shown)
}
