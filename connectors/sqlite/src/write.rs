//! Rows onto the connection: the catalog compared, then statements of few shapes.
//!
//! Invariant: the write lock is held since BEGIN, so that the catalog that was compared is the one that the rows meet. Must not: keep anything between batches.

use oncesink::plan::{self, Changes, Chosen, Group, Mode, RecordAt, Table as _};
use oncesink::sqlite::Tx;
use oncesink::sqlx::sqlite::SqliteArguments;
use oncesink::sqlx::{self, Arguments, Row};
use oncesink::{Batch, Class, Failure, SinkError, Written};

use crate::catalog;
use crate::sink::{Plan, Work};
use crate::statement;
use crate::value::Bound;

/// Writes a batch.
///
/// # Errors
/// SQLite's, by class; `StaleCatalog` when a table is no longer the one that was encoded for.
pub(crate) async fn write(tx: &mut Tx, batch: &Batch, plan: &Plan) -> Result<Written, SinkError> {
    if !plan.work.is_empty() {
        compare(tx, plan).await?;
        let limit = tx.variable_limit().await?;
        for work in &plan.work {
            Writer { tx, work, limit }.all(batch).await?;
        }
    }
    Ok(plan.written.clone())
}

/// The same version means the same definitions; another one means to look at ours.
async fn compare(tx: &mut Tx, plan: &Plan) -> Result<(), SinkError> {
    let version = catalog::schema_version(tx).await?;
    for Work { table, .. } in &plan.work {
        if version != table.schema_version
            && catalog::fingerprint(tx, &table.name).await? != table.fingerprint
        {
            let mut failure =
                Failure::new(Class::StaleCatalog, format!("table {} was altered", table.display()));
            failure.session_alive = true;
            return Err(failure.into());
        }
    }
    Ok(())
}

/// Rows in the order of their records, those of one shape together as far as none of another stands between; none where the order does not matter.
fn runs(changes: &Changes) -> Vec<(&Group, Vec<usize>)> {
    let mut runs: Vec<(&Group, Vec<usize>)> = Vec::new();
    for (group, row) in changes.in_order() {
        match runs.last_mut() {
            Some((last, rows)) if std::ptr::eq(*last, group) => rows.push(row),
            _ => runs.push((group, vec![row])),
        }
    }
    runs
}

struct Writer<'w> {
    tx: &'w mut Tx,
    work: &'w Work,
    /// Variables of one statement.
    limit: usize,
}

impl Writer<'_> {
    async fn all(&mut self, batch: &Batch) -> Result<(), SinkError> {
        let work = self.work;
        let Work { table, mode, key, changes } = work;
        self.all_there(batch, [changes.changed_before_deletes()]).await?;
        self.each(changes.deletes(), key, "DELETE FROM", |rows| Some(statement::delete(table, key, rows)))
            .await?;
        if *mode == Mode::Update {
            // All keys are looked for before the first row is changed.
            self.all_there(batch, changes.groups()).await?;
        }
        // Rows of several shapes, of which a row may exclude another: the first one stays, so they go in the order of their records.
        let runs = if changes.groups().nth(1).is_some() { runs(changes) } else { Vec::new() };
        let in_order = runs.iter().map(|(group, rows)| Chosen { group, rows, sources: &[] });
        let chosen: Vec<Chosen<'_>> =
            if runs.is_empty() { changes.groups().collect() } else { in_order.collect() };
        for chosen in chosen {
            let columns = &chosen.group.columns;
            if *mode == Mode::Update {
                self.each(chosen, columns, "UPDATE", |rows| statement::update(table, key, columns, rows))
                    .await?;
            } else {
                let text = |rows| Some(statement::insert(table, *mode, key, columns, rows));
                self.each(chosen, columns, "INSERT INTO", text).await?;
            }
        }
        Ok(())
    }

    /// Records whose key has no row are bad.
    async fn all_there<'c>(
        &mut self,
        batch: &Batch,
        chosen: impl IntoIterator<Item = Chosen<'c>>,
    ) -> Result<(), SinkError> {
        let mut bad = Vec::new();
        for chosen in chosen {
            let missing = self.missing(chosen).await?;
            bad.extend(plan::missing_rows(batch, &self.work.table.display(), missing.into_iter()));
        }
        if bad.is_empty() { Ok(()) } else { Err(SinkError::Bad(bad)) }
    }

    /// Runs the statement of each shape over rows, which bind these of their columns.
    async fn each(
        &mut self,
        chosen: Chosen<'_>,
        columns: &[usize],
        verb: &str,
        text: impl Fn(usize) -> Option<String>,
    ) -> Result<(), SinkError> {
        let mut prepared: Option<(usize, String)> = None;
        let mut first = 0;
        while first < chosen.len() {
            let rows = self.rows_of_next(chosen.len() - first, columns.len())?;
            let sql = match prepared.take().filter(|(of, _)| *of == rows) {
                Some((_, sql)) => sql,
                None => match text(rows) {
                    Some(sql) => sql,
                    None => return Ok(()),
                },
            };
            let arguments = self.arguments(chosen, columns, first..first + rows, verb)?;
            let done = sqlx::query_with(&sql, arguments).execute(self.tx.sql()).await;
            done.map_err(|error| self.failed(verb, error))?;
            first += rows;
            prepared = Some((rows, sql));
        }
        Ok(())
    }

    /// The records whose keys have no row.
    async fn missing<'c>(&mut self, chosen: Chosen<'c>) -> Result<Vec<&'c RecordAt>, SinkError> {
        const VERB: &str = "SELECT FROM";
        let Work { table, key, .. } = self.work;
        let mut missing = Vec::new();
        let mut first = 0;
        while first < chosen.len() {
            let rows = self.rows_of_next(chosen.len() - first, key.len())?;
            let sql = statement::missing(table, key, rows);
            let arguments = self.arguments(chosen, key, first..first + rows, VERB)?;
            let found = sqlx::query_with(&sql, arguments).fetch_all(self.tx.sql()).await;
            for row in found.map_err(|error| self.failed(VERB, error))? {
                let place: i64 = row.try_get(0)?;
                let place = usize::try_from(place).ok().and_then(|place| chosen.sources.get(first + place));
                missing.extend(place.into_iter().flatten());
            }
            first += rows;
        }
        Ok(missing)
    }

    fn rows_of_next(&self, left: usize, variables: usize) -> Result<usize, SinkError> {
        match statement::rows_of_next(left, variables, self.limit) {
            0 => Err(Failure::fatal(format!(
                "table {}: a row binds {variables} variables, and this SQLite allows {} in a statement",
                self.work.table.display(),
                self.limit
            ))
            .into()),
            rows => Ok(rows),
        }
    }

    fn arguments<'c>(
        &self,
        chosen: Chosen<'c>,
        columns: &[usize],
        rows: std::ops::Range<usize>,
        verb: &str,
    ) -> Result<SqliteArguments<'c>, SinkError> {
        let mut arguments = SqliteArguments::default();
        arguments.reserve(rows.len() * columns.len(), 0);
        let mut add = |cell| arguments.add(Bound(cell));
        let whole = columns == chosen.group.columns;
        for row in rows {
            let added = if whole {
                chosen.cells(row).try_for_each(&mut add)
            } else {
                columns.iter().try_for_each(|column| {
                    let nth = chosen.group.columns.binary_search(column).unwrap_or(usize::MAX);
                    add(chosen.cells(row).nth(nth).flatten())
                })
            };
            added.map_err(|error| self.failed(verb, sqlx::Error::Encode(error)))?;
        }
        Ok(arguments)
    }

    /// Adds what was being done, and the table where SQLite names none.
    fn failed(&self, verb: &str, error: sqlx::Error) -> SinkError {
        let table = self.work.table.display();
        match SinkError::from(error) {
            SinkError::Failed(mut failure) => {
                if let Some(data) = &mut failure.data {
                    data.table.get_or_insert_with(|| table.clone());
                }
                SinkError::Failed(failure.context(&format!("{verb} {table}")))
            }
            bad => bad,
        }
    }
}
