//! Statements onto the connection, and the comparison of the catalog behind them.
//!
//! Invariant: a COPY that was begun is ended, by `finish` here or by closing the connection: an error on the way out means that the connection is broken or
//! out of step, so the failure says that the session is gone and the framework drops the transaction with its connection. A future dropped in mid-COPY is
//! the same case.

use oncesink::plan::{self, RecordAt, Table as _};
use oncesink::postgres::Tx;
use oncesink::sqlx::encode::IsNull;
use oncesink::sqlx::error::{BoxDynError, DatabaseError};
use oncesink::sqlx::postgres::types::Oid;
use oncesink::sqlx::postgres::{PgArgumentBuffer, PgDatabaseError, PgTypeInfo, Postgres};
use oncesink::sqlx::{self, Encode, Executor, Row, Type};
use oncesink::{Batch, Class, Failure, SinkError, Written};

use crate::catalog::{self, FINGERPRINTS, Present, Table};
use crate::encode::Plan;
use crate::statement::{Bound, Parameter, Prepared, Statement};

/// Bytes of one message of a COPY.
const SEND_BYTES: usize = 256 * 1024;
/// What a COPY answers when its bytes are not those of the column's type: invalid_binary_representation, bad_copy_file_format, protocol_violation ("insufficient
/// data left in message") and an internal error (jsonb's version byte). Our bytes are right for the type that we know, so it must be another by now.
const BINARY_MISMATCH: [&str; 4] = ["22P03", "22P04", "08P01", "XX000"];

/// Sends a batch's statements.
///
/// # Errors
/// The server's, by class; `StaleCatalog` when a table is no longer the one that was encoded for.
pub(crate) async fn write(tx: &mut Tx, batch: &Batch, plan: &Plan) -> Result<Written, SinkError> {
    let mut now = None;
    let mut left: usize = plan.tables.iter().map(|(_, statements)| statements.len()).sum();
    for (table, statements) in &plan.tables {
        for statement in statements {
            left -= 1;
            match statement {
                Statement::Staged { create, copy, bytes, merge } => {
                    plain(tx, table, create).await?;
                    self::copy(tx, table, copy, bytes).await?;
                    if left == 0 {
                        now = Some(merge_and_look(tx, table, merge, plan).await?);
                    } else {
                        plain(tx, table, merge).await?;
                    }
                }
                Statement::Copy { sql, bytes } => copy(tx, table, sql, bytes).await?,
                Statement::Bound(bound) => {
                    let done = query(bound).execute(tx.sql()).await;
                    done.map_err(|error| failed(verb(&bound.sql), table, error))?;
                }
                Statement::Probe { ask, sources } => probe(tx, batch, table, ask, sources).await?,
            }
        }
    }
    let now = match now {
        Some(now) => now,
        None if plan.tables.is_empty() => return Ok(plan.written.clone()),
        None => catalog::fingerprints(tx, &oids(plan)).await?,
    };
    compare(plan, &now)?;
    Ok(plan.written.clone())
}

fn oids(plan: &Plan) -> Vec<Oid> {
    plan.tables.iter().map(|(table, _)| table.oid).collect()
}

/// A statement without parameters.
async fn plain(tx: &mut Tx, table: &Table, sql: &str) -> Result<(), SinkError> {
    tx.sql().execute(sql).await.map_err(|error| failed(verb(sql), table, error))?;
    Ok(())
}

/// What a statement does, for a message.
fn verb(sql: &str) -> &str {
    let end = sql.match_indices(' ').nth(1).map_or(sql.len(), |(at, _)| at);
    if sql.starts_with("UPDATE") { "UPDATE" } else { sql.get(..end).unwrap_or(sql) }
}

fn query(bound: &Bound) -> sqlx::query::Query<'_, Postgres, sqlx::postgres::PgArguments> {
    let Bound { sql, parameters, bytes, prepared } = bound;
    let mut query = sqlx::query(sql).persistent(*prepared == Prepared::Named);
    for Parameter { oid, value } in parameters {
        let bytes = value.clone().and_then(|range| bytes.get(range));
        query = query.bind(Wire { oid: *oid, bytes });
    }
    query
}

/// The last statement of a batch and the look at the catalog behind it in one trip: neither has parameters.
async fn merge_and_look(
    tx: &mut Tx,
    table: &Table,
    merge: &str,
    plan: &Plan,
) -> Result<Vec<Present>, SinkError> {
    let oids: Vec<String> = oids(plan).iter().map(|oid| oid.0.to_string()).collect();
    let look = FINGERPRINTS.replace("$1", &format!("'{{{}}}'", oids.join(",")));
    let both = format!("{merge}; {look}");
    let rows =
        tx.sql().fetch_all(both.as_str()).await.map_err(|error| failed("INSERT INTO", table, error))?;
    Ok(rows.iter().map(Present::of).collect::<Result<_, _>>()?)
}

/// Records whose key has no row are bad.
async fn probe(
    tx: &mut Tx,
    batch: &Batch,
    table: &Table,
    ask: &Bound,
    sources: &[Vec<RecordAt>],
) -> Result<(), SinkError> {
    let rows = query(ask).fetch_all(tx.sql()).await.map_err(|error| failed("SELECT FROM", table, error))?;
    let mut found = vec![false; sources.len()];
    for row in rows {
        let place: i64 = row.try_get(0)?;
        if let Some(found) = usize::try_from(place - 1).ok().and_then(|nth| found.get_mut(nth)) {
            *found = true;
        }
    }
    let missing = found.iter().zip(sources).filter(|(found, _)| !**found).flat_map(|(_, records)| records);
    match plan::missing_rows(batch, &table.display(), missing) {
        bad if bad.is_empty() => Ok(()),
        bad => Err(SinkError::Bad(bad)),
    }
}

async fn copy(tx: &mut Tx, table: &Table, sql: &str, bytes: &[u8]) -> Result<(), SinkError> {
    let failed = |error| failed("COPY", table, error);
    let mut copy = tx.sql().copy_in_raw(sql).await.map_err(failed)?;
    for chunk in bytes.chunks(SEND_BYTES) {
        if let Err(error) = copy.send(chunk).await {
            return Err(mid_copy(failed(error)));
        }
    }
    copy.finish().await.map_err(|error| mismatch(failed(error)))?;
    Ok(())
}

fn mismatch(error: SinkError) -> SinkError {
    match error {
        SinkError::Failed(mut failure)
            if failure.session_alive
                && failure.sql_state.as_deref().is_some_and(|state| BINARY_MISMATCH.contains(&state)) =>
        {
            failure.class = Class::StaleCatalog;
            failure.data = None;
            SinkError::Failed(failure)
        }
        other => other,
    }
}

/// The COPY was neither finished nor aborted: whatever the error says, this connection is not to be used again.
fn mid_copy(error: SinkError) -> SinkError {
    match error {
        SinkError::Failed(mut failure) => {
            failure.session_alive = false;
            SinkError::Failed(failure)
        }
        bad => bad,
    }
}

/// Adds what was being done and what the server says is concerned. Its DETAIL is left out: it quotes values.
fn failed(doing: &str, table: &Table, error: sqlx::Error) -> SinkError {
    let concerned = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        .map(concerned);
    match SinkError::from(error) {
        SinkError::Failed(failure) => {
            let doing = format!("{doing} {}{}", table.display(), concerned.unwrap_or_default());
            SinkError::Failed(failure.context(&doing))
        }
        bad => bad,
    }
}

fn concerned(error: &PgDatabaseError) -> String {
    let parts = [
        ("table", DatabaseError::table(error)),
        ("column", error.column()),
        ("constraint", DatabaseError::constraint(error)),
    ];
    let named: Vec<_> =
        parts.iter().filter_map(|(what, name)| name.map(|name| format!("{what} {name}"))).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// Our rows hold a lock on each table by now that shuts every ALTER out, so what was read is what the server took our bytes for.
fn compare(plan: &Plan, now: &[Present]) -> Result<(), SinkError> {
    match plan.tables.iter().find(|(table, _)| !now.iter().any(|present| present.is(table))) {
        None => Ok(()),
        Some((table, _)) => {
            let mut failure =
                Failure::new(Class::StaleCatalog, format!("table {} was altered", table.display()));
            failure.session_alive = true;
            Err(failure.into())
        }
    }
}

/// A parameter that is already in binary form.
struct Wire<'p> {
    oid: u32,
    bytes: Option<&'p [u8]>,
}

impl Type<Postgres> for Wire<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl<'q> Encode<'q, Postgres> for Wire<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        match self.bytes {
            Some(bytes) => {
                buffer.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        }
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.oid)))
    }
}
