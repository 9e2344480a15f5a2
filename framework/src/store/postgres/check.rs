//! The checks before a start: our tables exist, are ours, keep their rows, and may be used.

use sqlx::{PgConnection, Row};

use super::Postgres;
use super::control::Control;
use super::migrate;
use super::names::{DEAD_LETTERS, Names, qualified};
use super::storage::storage;
use crate::error::Failure;
use crate::store::operate::Preflight;

/// Who we are to the server, and by which connection.
const SESSION: &str = "
    SELECT current_user::text,
           CASE WHEN s.ssl THEN s.version WHEN inet_client_addr() IS NULL THEN 'local socket' ELSE 'not encrypted' END
    FROM (SELECT bool_or(ssl) AS ssl, max(version) AS version FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS s";

/// Our tables and what we do with them.
const NEEDED: [(&str, &[&str]); 4] = [
    ("oncesink_topics", &["SELECT", "INSERT", "UPDATE"]),
    ("oncesink_events", &["SELECT", "INSERT"]),
    (DEAD_LETTERS, &["SELECT", "INSERT", "UPDATE"]),
    ("oncesink_migrations", &["SELECT"]),
];

impl Postgres {
    /// Looks at our tables, and changes nothing.
    ///
    /// # Errors
    /// Those of connecting and of the questions; what a person must mend is no error but a problem.
    pub async fn preflight(&self) -> Result<Preflight, Failure> {
        let mut control = self.control().await?;
        let names = control.names();
        let (role, encryption): (String, String) = sqlx::query_as(SESSION).fetch_one(control.sql()).await?;
        let mut found = Preflight {
            server_version: control.version().to_owned(),
            offsets: names.display(),
            role: Some(role),
            encryption: Some(encryption),
            problems: Vec::new(),
        };
        match migrate::present(&mut control).await?.problem(&found.offsets) {
            Some(problem) => found.problems.push(problem),
            None => look(&mut control, &names, &mut found).await?,
        }
        control.rollback().await?.close().await;
        Ok(found)
    }
}

async fn look(control: &mut Control, names: &Names, found: &mut Preflight) -> Result<(), Failure> {
    let offsets: (&str, &[&str]) = (&names.table, &["SELECT", "INSERT", "UPDATE"]);
    for (table, needed) in [offsets].into_iter().chain(NEEDED) {
        if let Some(problem) =
            storage(control.sql(), &names.schema, table).await?.problem(&names.schema, table)
        {
            let remedy = if problem.ends_with("no such table") { ". Run: oncesink migrate" } else { "" };
            found.problems.push(format!("{problem}{remedy}"));
            continue;
        }
        let lacking = lacking(control.sql(), &names.schema, table, needed).await?;
        if !lacking.is_empty() {
            let role = found.role.as_deref().unwrap_or_default();
            found.problems.push(format!(
                "role {role} lacks a privilege. Run: GRANT {} ON {} TO {}",
                lacking.join(", "),
                qualified(&names.schema, table),
                super::names::quote(role),
            ));
        }
    }
    if found.problems.is_empty() {
        let applied = migrate::applied(control).await?;
        found.problems.extend(migrate::version_problem(&found.offsets, &applied));
    }
    Ok(())
}

/// Privileges of ours that are not there.
async fn lacking(
    connection: &mut PgConnection,
    schema: &str,
    table: &str,
    needed: &[&'static str],
) -> Result<Vec<&'static str>, Failure> {
    let rows = sqlx::query(
        "SELECT has_table_privilege(c.oid, w.privilege) AND has_schema_privilege(n.oid, 'USAGE') AS granted
         FROM UNNEST($3::text[]) WITH ORDINALITY AS w (privilege, place)
         JOIN pg_catalog.pg_class AS c ON c.relname = $2
         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = $1
         ORDER BY w.place",
    )
    .bind(schema)
    .bind(table)
    .bind(needed)
    .fetch_all(connection)
    .await?;
    let mut lacking = Vec::new();
    for (privilege, row) in needed.iter().zip(rows) {
        if !row.try_get::<bool, _>("granted")? {
            lacking.push(*privilege);
        }
    }
    Ok(lacking)
}
