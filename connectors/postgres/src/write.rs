//! Statements onto the connection, and the comparison of the catalog behind them.
//!
//! Invariant: a COPY that was begun is ended, by `finish` here or by closing the connection: an error on the way out means that the connection is broken or
//! out of step, so the failure says that the session is gone and the framework drops the transaction with its connection. A future dropped in mid-COPY is
//! the same case.

use oncesink::postgres::Tx;
use oncesink::sqlx::encode::IsNull;
use oncesink::sqlx::error::{BoxDynError, DatabaseError};
use oncesink::sqlx::postgres::types::Oid;
use oncesink::sqlx::postgres::{PgArgumentBuffer, PgDatabaseError, PgTypeInfo, Postgres};
use oncesink::sqlx::{self, Encode, Type};
use oncesink::{Class, Failure, SinkError, Written};

use crate::catalog::{self, Table};
use crate::encode::Plan;
use crate::statement::{Parameter, Prepared, Statement};

/// Bytes of one message of a COPY.
const SEND_BYTES: usize = 256 * 1024;
/// What a COPY answers when its bytes are not those of the column's type: invalid_binary_representation, bad_copy_file_format, protocol_violation ("insufficient
/// data left in message") and an internal error (jsonb's version byte). Our bytes are right for the type that we know, so it must be another by now.
const BINARY_MISMATCH: [&str; 4] = ["22P03", "22P04", "08P01", "XX000"];

/// Sends a batch's statements.
///
/// # Errors
/// The server's, by class; `StaleCatalog` when a table is no longer the one that was encoded for.
pub(crate) async fn write(tx: &mut Tx, plan: &Plan) -> Result<Written, SinkError> {
    for (table, statements) in &plan.tables {
        for statement in statements {
            send(tx, table, statement).await?;
        }
    }
    compare(tx, plan).await?;
    Ok(plan.written.clone())
}

async fn send(tx: &mut Tx, table: &Table, statement: &Statement) -> Result<(), SinkError> {
    match statement {
        Statement::Copy { sql, bytes } => copy(tx, table, sql, bytes).await,
        Statement::Insert { sql, parameters, bytes, prepared } => {
            let mut query = sqlx::query(sql).persistent(*prepared == Prepared::Named);
            for Parameter { oid, value } in parameters {
                let bytes = value.clone().and_then(|range| bytes.get(range));
                query = query.bind(Wire { oid: *oid, bytes });
            }
            query.execute(tx.sql()).await.map_err(|error| failed("INSERT INTO", table, error))?;
            Ok(())
        }
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

/// Our rows hold a lock on each table by now that shuts every ALTER out, so what is read here is what the server took our bytes for.
async fn compare(tx: &mut Tx, plan: &Plan) -> Result<(), SinkError> {
    if plan.tables.is_empty() {
        return Ok(());
    }
    let oids: Vec<_> = plan.tables.iter().map(|(table, _)| table.oid).collect();
    let now = catalog::fingerprints(tx, &oids).await?;
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
