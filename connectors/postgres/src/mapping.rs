//! Fields onto columns: what one topic's records become, compiled once against the catalog.
//!
//! Invariant: names are compared exactly. The column that takes the unknown fields takes no field of its own name: such a field is unknown like any other,
//! and nothing is written twice.

use std::collections::HashMap;

use oncesink::{BadRecord, Reason, Record};

use crate::catalog::{Column, Kind, SharedTable, Target};
use crate::config::{Delete, TableConfig, UnknownFields};
use crate::quote;
use crate::value::{Fault, Zone};

/// One topic's way into its table.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) table: SharedTable,
    /// Index of the table among those of this sink.
    pub(crate) table_index: usize,
    pub(crate) unknown: Unknown,
    pub(crate) skip_tombstones: bool,
    pub(crate) zone: Option<Zone>,
    columns: HashMap<String, usize>,
}

/// What becomes of a field without a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Error,
    Ignore,
    /// Index of the json or jsonb column.
    Column(usize),
}

impl Mapping {
    /// Compiles the keys against a table; the error is for people.
    pub(crate) fn new(config: &TableConfig, table: SharedTable, table_index: usize) -> Result<Self, String> {
        let unknown = match &config.unknown_fields {
            UnknownFields::Error => Unknown::Error,
            UnknownFields::Ignore => Unknown::Ignore,
            UnknownFields::Column(name) => Unknown::Column(extra_column(&table, name)?),
        };
        let zone = config.zone.as_deref().map(Zone::find).transpose()?;
        let columns = table.columns.iter().enumerate();
        let columns = columns
            .filter(|(index, _)| unknown != Unknown::Column(*index))
            .map(|(index, column)| (column.name.clone(), index))
            .collect();
        Ok(Self {
            table,
            table_index,
            unknown,
            skip_tombstones: config.delete == Some(Delete::None),
            zone,
            columns,
        })
    }

    /// The column of a field.
    pub(crate) fn column(&self, field: &str) -> Option<usize> {
        self.columns.get(field).copied()
    }

    /// A bad record because of one column's value.
    pub(crate) fn unfit(&self, record: &Record<'_>, column: &Column, fault: &Fault) -> BadRecord {
        let message = format!(
            "field {}: {} does not fit column {}.{} {}",
            quote::field(&column.name),
            fault.what,
            self.table.display(),
            column.name,
            column.type_name
        );
        self.concerning(record.bad(fault.reason, message), Some(column))
    }

    /// A bad record because of a field whose column takes no such value, whatever it is.
    pub(crate) fn closed(
        &self,
        record: &Record<'_>,
        column: &Column,
        reason: Reason,
        why: &str,
    ) -> BadRecord {
        let message = format!(
            "field {}: column {}.{} {} {why}",
            quote::field(&column.name),
            self.table.display(),
            column.name,
            column.type_name
        );
        self.concerning(record.bad(reason, message), Some(column))
    }

    /// A bad record because of a field that is missing.
    pub(crate) fn lacking(&self, record: &Record<'_>, column: &Column) -> BadRecord {
        let message = format!(
            "field {} is missing, and column {}.{} is NOT NULL without a default",
            quote::field(&column.name),
            self.table.display(),
            column.name
        );
        self.concerning(record.bad(Reason::NullInNotNull, message), Some(column))
    }

    /// A bad record because of its fields as such.
    pub(crate) fn bad(&self, record: &Record<'_>, reason: Reason, message: String) -> BadRecord {
        self.concerning(record.bad(reason, message), None)
    }

    fn concerning(&self, mut bad: BadRecord, column: Option<&Column>) -> BadRecord {
        bad.table = Some(self.table.display());
        bad.column = column.map(|column| column.name.clone());
        bad
    }
}

fn extra_column(table: &SharedTable, name: &str) -> Result<usize, String> {
    let found = table.columns.iter().enumerate().find(|(_, column)| column.name == name);
    let Some((index, column)) = found else {
        let (table, names) = (table.display(), names(table));
        return Err(format!(
            "unknown_fields = \"column:{name}\": table {table} has no such column (it has {names})"
        ));
    };
    if !matches!(column.target, Target::Typed(Kind::Json | Kind::Jsonb)) {
        let (table, type_name) = (table.display(), &column.type_name);
        return Err(format!(
            "unknown_fields = \"column:{name}\": column {table}.{name} is {type_name}; it must be json or jsonb"
        ));
    }
    if !column.insertable {
        let (sql, column) = (table.sql(), quote::identifier(name));
        return Err(format!(
            "unknown_fields = \"column:{name}\": the role may not write it. GRANT INSERT ({column}) ON {sql} TO ..."
        ));
    }
    Ok(index)
}

fn names(table: &SharedTable) -> String {
    const SHOWN: usize = 20;
    let mut names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).take(SHOWN).collect();
    if table.columns.len() > SHOWN {
        names.push("...");
    }
    names.join(", ")
}
