//! A batch into statements, before its transaction begins and without the database.
//!
//! Invariant: a pure function of the batch and of the catalog as it was read. Either every record of the batch is accounted for in the plan, or all of its
//! bad records are reported.

use oncesink::{BadRecord, Batch, Class, Counts, Failure, Part, Reason, Record, SinkError, Written};

use crate::catalog::{Column, SharedTable, Target};
use crate::mapping::{Mapping, Unknown};
use crate::object::Fields;
use crate::rows::{Group, Groups};
use crate::statement::{self, Statement};
use crate::value;

/// What `write` does for a batch.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Vec<(SharedTable, Vec<Statement>)>,
    pub(crate) written: Written,
}

/// Encodes a batch. `mapping` finds a topic's mapping.
///
/// # Errors
/// All bad records of the batch; `StaleCatalog` for a topic that was not there when the sink was opened.
pub(crate) fn encode<'m>(
    batch: &Batch,
    mapping: impl Fn(&str) -> Option<&'m Mapping>,
) -> Result<Plan, SinkError> {
    let mut tables: Vec<(usize, SharedTable, Groups)> = Vec::new();
    let mut written = Written::default();
    let mut bad = Vec::new();
    for part in batch.parts().iter().filter(|part| !part.is_empty()) {
        let topic = &part.topic_partition().topic;
        let mapping = mapping(topic).ok_or_else(|| {
            Failure::new(
                Class::StaleCatalog,
                format!("topic {topic:?} was not there when the sink was opened"),
            )
        })?;
        let position = tables.iter().position(|(index, _, _)| *index == mapping.table_index);
        let position = position.unwrap_or_else(|| {
            tables.push((mapping.table_index, mapping.table.clone(), Groups::with_room(batch.bytes())));
            tables.len() - 1
        });
        if let Some((_, _, groups)) = tables.get_mut(position) {
            encode_part(part, mapping, groups, written.topic(topic), &mut bad);
        }
    }
    if !bad.is_empty() {
        return Err(SinkError::Bad(bad));
    }
    let tables = tables.into_iter().map(|(_, table, groups)| {
        let statements = statement::plan(&table, groups);
        (table, statements)
    });
    Ok(Plan { tables: tables.filter(|(_, statements)| !statements.is_empty()).collect(), written })
}

fn encode_part(
    part: &Part,
    mapping: &Mapping,
    groups: &mut Groups,
    counts: &mut Counts,
    bad: &mut Vec<BadRecord>,
) {
    let mut fields = Fields::new(mapping);
    let mut extra = String::new();
    for record in part.records() {
        match record.value() {
            None if mapping.skip_tombstones => counts.skipped += 1,
            None => {
                let message = "a record without a value (delete = \"none\" would skip it)";
                bad.push(mapping.bad(&record, Reason::Tombstone, message.to_owned()));
            }
            Some(payload) => {
                match encode_record(&record, payload, mapping, &mut fields, &mut extra, groups) {
                    Ok(()) => counts.records += 1,
                    Err(found) => bad.push(*found),
                }
            }
        }
    }
}

fn encode_record<'b>(
    record: &Record<'b>,
    payload: &'b [u8],
    mapping: &Mapping,
    fields: &mut Fields<'b>,
    extra: &mut String,
    groups: &mut Groups,
) -> Result<(), Box<BadRecord>> {
    fields
        .read(payload, mapping)
        .map_err(|(reason, message)| Box::new(mapping.bad(record, reason, message)))?;
    gather(mapping.unknown, fields, extra);
    let extra_column = match mapping.unknown {
        Unknown::Column(index) if !extra.is_empty() => Some(index),
        _ => None,
    };
    let value = |index: usize| match extra_column {
        Some(extra_index) if extra_index == index => Some(extra.as_str()),
        _ => fields.values.get(index).copied().flatten(),
    };
    let table = &mapping.table;
    let carried = (0..table.columns.len()).filter(|index| value(*index).is_some());
    let Some(group) = groups.of(table, carried) else {
        return Err(Box::new(mapping.bad(record, Reason::Rejected, "no group of rows".to_owned())));
    };
    if let Some(column) = group.lacking.and_then(|index| table.columns.get(index)) {
        return Err(Box::new(mapping.lacking(record, column)));
    }
    group.begin_row();
    for nth in 0..group.columns.len() {
        let Some(index) = group.columns.get(nth).copied() else { break };
        let (Some(column), Some(raw)) = (table.columns.get(index), value(index)) else { continue };
        if let Err(bad) = encode_value(record, column, mapping, raw, group) {
            group.drop_row();
            return Err(bad);
        }
    }
    group.end_row();
    Ok(())
}

fn encode_value(
    record: &Record<'_>,
    column: &Column,
    mapping: &Mapping,
    raw: &str,
    group: &mut Group,
) -> Result<(), Box<BadRecord>> {
    let closed = |reason, why| Err(Box::new(mapping.closed(record, column, reason, why)));
    let kind = match column.target {
        Target::Typed(kind) => kind,
        Target::Unsupported => {
            return closed(Reason::WrongType, "is of a type that this version does not write");
        }
        Target::GeneratedAlways => return closed(Reason::Rejected, "is always generated by the server"),
    };
    if value::is_null(raw) {
        if column.not_null {
            return closed(Reason::NullInNotNull, "is NOT NULL, the field is null");
        }
        group.null();
        return Ok(());
    }
    let written = group.value(|out| value::encode(kind, mapping.zone.as_ref(), raw, out));
    written.map_err(|fault| Box::new(mapping.unfit(record, column, &fault)))
}

/// The fields without a column as one JSON object, values as they were received; empty when there are none to keep.
fn gather(unknown: Unknown, fields: &Fields<'_>, extra: &mut String) {
    extra.clear();
    if !matches!(unknown, Unknown::Column(_)) || fields.unknown.is_empty() {
        return;
    }
    for (name, value) in &fields.unknown {
        extra.push(if extra.is_empty() { '{' } else { ',' });
        extra.push_str(&serde_json::Value::from(name.as_ref()).to_string());
        extra.push(':');
        extra.push_str(value);
    }
    extra.push('}');
}
