//! A connection between transactions, and its identity on the server.
//!
//! Invariant: only a writable server's sessions come out of here, within the connect timeout. Dropping a session closes its connection; nothing is pooled.

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Row};

use super::config::Timeouts;
use super::encryption;
use super::names::{DEFAULT_OFFSETS, Names, Wanted};
use crate::error::{Class, Failure};

/// A session on the server, told apart from a later one with the same process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// Process id of the backend.
    pub(super) pid: i32,
    /// When the backend started, microseconds since the epoch by the server's clock.
    pub(super) started: i64,
}

/// A connection between transactions.
pub struct Session {
    pub(super) connection: PgConnection,
    pub(super) id: SessionId,
    pub(super) names: Arc<Names>,
    pub(super) version: Arc<str>,
}

/// What the first question on a new connection brings.
const INTRODUCTION: &str = "
    SELECT pg_backend_pid() AS pid,
           (SELECT (EXTRACT(EPOCH FROM backend_start) * 1000000)::bigint
            FROM pg_stat_activity
            WHERE pid = pg_backend_pid()) AS started,
           pg_is_in_recovery() AS recovering,
           current_setting('default_transaction_read_only') = 'on' AS read_only,
           current_setting('server_version') AS version,
           COALESCE(
               (SELECT n.nspname
                FROM pg_class AS c
                JOIN pg_namespace AS n ON n.oid = c.relnamespace
                WHERE c.relname = '@table@' AND n.nspname = ANY (current_schemas(false))
                ORDER BY array_position(current_schemas(false), n.nspname)
                LIMIT 1),
               current_schema())::text AS schema";

/// Connects, and accepts the session only when it can write. The offsets stand in the schema asked for, else in the first one of the search path that
/// has such a table, else in its first one.
pub(super) async fn connect(
    options: &PgConnectOptions,
    timeouts: &Timeouts,
    wanted: &Wanted,
    resolved: Option<&Arc<Names>>,
) -> Result<Session, Failure> {
    let place = format!("{}:{}", options.get_host(), options.get_port());
    let introduced = async {
        let mut connection = options.connect().await?;
        let question = INTRODUCTION.replace("@table@", &wanted.table.replace('\'', "''"));
        let row = connection.fetch_one(&*question).await?;
        Ok::<_, sqlx::Error>((connection, row))
    };
    let (connection, row) = match tokio::time::timeout(timeouts.connect, introduced).await {
        Ok(Ok(introduced)) => introduced,
        Ok(Err(error)) => {
            let failure = refused(error, options).await;
            return Err(failure.context(&format!("connecting to Postgres at {place}")));
        }
        Err(_) => {
            let waited = timeouts.connect;
            return Err(Failure::new(
                Class::Transient,
                format!(
                    "connecting to Postgres at {place}: no answer in {waited:?}. Is this a Postgres server? {CHECK_ADDRESS}"
                ),
            ));
        }
    };
    if row.try_get("recovering")? || row.try_get("read_only")? {
        let what = format!(
            "{place} is read-only (a standby, or default_transaction_read_only is on). Name the primary in the target's url"
        );
        return Err(Failure::new(Class::WrongServer, what));
    }
    let names = match (resolved, &wanted.schema) {
        (Some(names), _) => Arc::clone(names),
        (None, Some(schema)) => Arc::new(Names::new(schema, &wanted.table)),
        (None, None) => {
            let schema: Option<String> = row.try_get("schema")?;
            let Some(schema) = schema else {
                return Err(Failure::fatal(format!(
                    "no schema of the search_path is there for this role: GRANT USAGE ON SCHEMA .. TO it, or name one, offsets = \"schema.{DEFAULT_OFFSETS}\""
                )));
            };
            Arc::new(Names::new(&schema, &wanted.table))
        }
    };
    let id = SessionId { pid: row.try_get("pid")?, started: row.try_get("started")? };
    let version: String = row.try_get("version")?;
    Ok(Session { connection, id, names, version: version.into() })
}

const CHECK_ADDRESS: &str = "Check host and port in the target's url";

/// What was answered, with the remedy. What TLS fails of, or a file that cannot be used, has answered and refused: waiting mends nothing.
async fn refused(error: sqlx::Error, options: &PgConnectOptions) -> Failure {
    let unreachable = matches!(&error, sqlx::Error::Io(_));
    if matches!(&error, sqlx::Error::Tls(_) | sqlx::Error::Io(_))
        && let Some(cause) = encryption::cause(&error, options).await
    {
        return Failure::fatal(cause);
    }
    let mut failure = Failure::from(error);
    let remedy = match failure.sql_state.as_deref() {
        Some("28P01") if encryption::has_certificate(options) => {
            "Check the user and the password in the target's url, or its key password; the server may also compare the role with the name in the \
             certificate of sslcert"
        }
        Some("28P01") => "Check the user and the password in the target's url, or its key password",
        Some("28000") if failure.message.contains("no encryption") => {
            "The server may demand TLS: write sslmode=verify-full into the target's url, or let this user in by its pg_hba.conf"
        }
        Some("28000") if failure.message.contains("certificate") => {
            "Write sslcert and sslkey into the target's url; the name in the certificate must be the role's, or mapped to it by the server"
        }
        Some("28000") => "Check the user in the target's url, and the server's pg_hba.conf",
        Some("3D000") => "Create it, or name another in the target's url",
        Some("42501") => "GRANT CONNECT ON DATABASE .. TO the role",
        None if unreachable => CHECK_ADDRESS,
        _ => return failure,
    };
    failure.message = format!("{}. {remedy}", failure.message);
    failure
}

impl Session {
    /// The identity by which the server's backend can be ended.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Says goodbye to the server, so that the backend goes at once. Dropping the session closes the connection as well.
    pub(super) async fn close(self) {
        // The connection is gone either way.
        let _ = self.connection.close().await;
    }
}
