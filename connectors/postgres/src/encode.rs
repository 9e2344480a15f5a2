//! A batch into statements, before its transaction begins and without the database.

use std::sync::Arc;

use oncesink::plan::Mappings;
use oncesink::{Batch, SinkError, Written};

use crate::catalog::Table;
use crate::statement::{self, Statement};

/// What `write` does for a batch.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Vec<(Arc<Table>, Vec<Statement>)>,
    pub(crate) written: Written,
}

/// Encodes a batch.
///
/// # Errors
/// All bad records of the batch; `StaleCatalog` for a topic that was not there when the sink was opened.
pub(crate) fn encode(batch: &Batch, mappings: &Mappings<Table>) -> Result<Plan, SinkError> {
    let planned = mappings.encode(batch)?;
    let mut tables: Vec<(Arc<Table>, Vec<Statement>)> = Vec::with_capacity(planned.targets.len());
    for (index, changes) in &planned.targets {
        if let Some(target) = mappings.targets().get(*index) {
            let nth = tables.iter().filter(|(table, _)| Arc::ptr_eq(table, &target.table)).count();
            tables.push((Arc::clone(&target.table), statement::plan(target, changes, nth)));
        }
    }
    tables.retain(|(_, statements): &(_, Vec<_>)| !statements.is_empty());
    Ok(Plan { tables, written: planned.written })
}
