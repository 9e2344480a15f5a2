//! Our tables in the user's database: numbered migrations under our own bookkeeping table and a lock, and the same text for a DBA.
//!
//! Invariant: all or nothing, in one transaction; a table that is not ours is never overwritten.

use std::fmt::Write;
use std::time::Duration;

use sqlx::{Executor, Row};

use super::Postgres;
use super::adopt;
use super::control::Control;
use super::names::Names;
use crate::error::{Class, Failure};
use crate::store::bookkeeping::{self, Migrations, Present};
use crate::store::operate::Meaning;

const BOOKKEEPING: &str = include_str!("../../../migrations/postgres/bookkeeping.sql");

/// All migrations, by version.
const MIGRATIONS: Migrations = &[(1, include_str!("../../../migrations/postgres/0001_offsets.sql"))];

/// Another migration, or a writer that ends its transaction, is waited for this long.
const LOCK_PATIENCE: Duration = Duration::from_secs(15);

/// What stands against a start, by the versions applied.
pub(super) fn version_problem(table: &str, applied: &[i32]) -> Option<String> {
    bookkeeping::version_problem(table, applied, MIGRATIONS)
}

impl Postgres {
    /// Versions still to be applied.
    ///
    /// # Errors
    /// As the driver's, by class.
    pub async fn pending(&self) -> Result<Vec<i32>, Failure> {
        let mut control = self.control().await?;
        let applied = applied(&mut control).await?;
        control.rollback().await?.close().await;
        Ok(MIGRATIONS.iter().map(|(version, _)| *version).filter(|v| !applied.contains(v)).collect())
    }

    /// Applies what is pending, in one transaction, and says what it did, a line each. Safe to call from several processes at once, and again.
    ///
    /// A table of the old recipe is taken over only when `adopt` says what its offsets mean; its rows then belong to this store's group.
    ///
    /// # Errors
    /// `Fatal` when a table of another kind has the name, when a table of the old recipe is there and `adopt` is not given, and the other way round.
    pub async fn apply(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure> {
        let mut control = self.patient(LOCK_PATIENCE).await?;
        let done =
            self.apply_within(&mut control, adopt).await.map_err(|failure| privileges(failure, &control))?;
        control.commit().await?.close().await;
        Ok(done)
    }

    async fn apply_within(
        &self,
        control: &mut Control,
        adopt: Option<Meaning>,
    ) -> Result<Vec<String>, Failure> {
        let names = control.names();
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
            .bind(format!("oncesink_migrations {}", names.schema))
            .execute(control.sql())
            .await?;
        let before = self.make_room(control, adopt).await?;
        let mut done: Vec<String> = before
            .iter()
            .map(|old| format!("renamed {} to {}.{old}", names.display(), names.schema))
            .collect();
        let applied = applied(control).await?;
        if applied.is_empty() {
            control.sql().execute(&*names.fill(BOOKKEEPING)).await?;
        }
        for (version, template) in MIGRATIONS.iter().filter(|(version, _)| !applied.contains(version)) {
            control.sql().execute(&*names.fill(template)).await?;
            let insert = format!("INSERT INTO {} (offsets_table, version) VALUES ($1, $2)", names.migrations);
            sqlx::query(&insert).bind(&names.table).bind(*version).execute(control.sql()).await?;
            done.push(bookkeeping::applied_line(&names.display(), *version));
        }
        if let (Some(old), Some(meaning)) = (before, adopt) {
            let rows = adopt::copy(self, control, &old, meaning).await?;
            done.push(format!("copied {rows} rows for group {} ({meaning})", self.group()));
        }
        Ok(done)
    }

    /// Sees to it that the name is free or ours. Answers the new name of an old table.
    async fn make_room(
        &self,
        control: &mut Control,
        adopt: Option<Meaning>,
    ) -> Result<Option<String>, Failure> {
        let names = control.names();
        let form = "schema.table";
        if present(control).await?.make_room(&names.display(), form, adopt)? {
            return adopt::rename(control).await.map(Some);
        }
        Ok(None)
    }

    /// All statements, for a DBA who applies them by hand. Connects only to find the schema, if none is named.
    ///
    /// # Errors
    /// As connecting's.
    pub async fn print(&self) -> Result<String, Failure> {
        let names = self.resolved().await?;
        let mut text = format!("BEGIN;\n\n{}", names.fill(BOOKKEEPING));
        for (version, template) in MIGRATIONS {
            let _ = write!(
                text,
                "\n{}\nINSERT INTO {} (offsets_table, version) VALUES ('{}', {version});\n",
                names.fill(template),
                names.migrations,
                names.table.replace('\'', "''")
            );
        }
        text.push_str("\nCOMMIT;\n");
        Ok(text)
    }
}

/// Says what helps when the role may not create tables.
fn privileges(failure: Failure, control: &Control) -> Failure {
    if failure.sql_state.as_deref() != Some("42501") {
        return failure;
    }
    let schema = &control.names().schema;
    let mut failure = failure.context(&format!(
        "creating tables in schema {schema} (let a DBA apply what this shows: {})",
        crate::remedy::command("migrate --print")
    ));
    failure.class = Class::Fatal;
    failure
}

/// Versions applied, by our bookkeeping.
pub(super) async fn applied(control: &mut Control) -> Result<Vec<i32>, Failure> {
    let names = control.names();
    if !exists(control, &names, "oncesink_migrations").await? {
        return Ok(Vec::new());
    }
    let statement =
        format!("SELECT version FROM {} WHERE offsets_table = $1 ORDER BY version", names.migrations);
    Ok(sqlx::query_scalar(&statement).bind(&names.table).fetch_all(control.sql()).await?)
}

pub(super) async fn exists(control: &mut Control, names: &Names, table: &str) -> Result<bool, Failure> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (
             SELECT FROM pg_catalog.pg_class AS c
             JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2)",
    );
    Ok(found.bind(&names.schema).bind(table).fetch_one(control.sql()).await?)
}

/// What stands where the offsets should, by its columns.
pub(super) async fn present(control: &mut Control) -> Result<Present, Failure> {
    let names = control.names();
    if !exists(control, &names, &names.table).await? {
        return Ok(Present::Absent);
    }
    let row = sqlx::query(
        "SELECT COALESCE(bool_or(a.attname = 'consumer_group'), false) AS ours,
                count(*) FILTER (WHERE a.attname IN ('topic', 'partition_id', 'last_offset')) = 3 AS recipe
         FROM pg_catalog.pg_attribute AS a
         JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped",
    )
    .bind(&names.schema)
    .bind(&names.table)
    .fetch_one(control.sql())
    .await?;
    Ok(Present::of(row.try_get("recipe")?, row.try_get("ours")?))
}
