//! Our tables in the user's file: numbered migrations under our own bookkeeping table and the write lock, and the same text for a DBA; taking over a table of
//! the three-column recipe; the checks before a start.
//!
//! Invariant: all or nothing, in one transaction; a table that is not ours is never overwritten.

use std::fmt::Write;

use sqlx::Executor;

use super::Sqlite;
use super::control::Control;
use super::names::{qualified, quote};
use crate::error::Failure;
use crate::store::bookkeeping::{self, Migrations, Present};
use crate::store::operate::{Meaning, Preflight};

const BOOKKEEPING: &str = include_str!("../../../migrations/sqlite/bookkeeping.sql");

/// All migrations, by version.
const MIGRATIONS: Migrations = &[(1, include_str!("../../../migrations/sqlite/0001_offsets.sql"))];

/// Our tables beside that of the offsets.
const NEEDED: [&str; 4] =
    ["oncesink_topics", "oncesink_events", "oncesink_dead_letters", "oncesink_migrations"];

impl Sqlite {
    /// Versions still to be applied.
    ///
    /// # Errors
    /// As the driver's, by class.
    pub async fn pending(&self) -> Result<Vec<i32>, Failure> {
        let mut control = self.look().await?;
        let applied = applied(&mut control).await?;
        self.keep(control.commit().await?);
        Ok(MIGRATIONS.iter().map(|(version, _)| *version).filter(|v| !applied.contains(v)).collect())
    }

    /// Makes the file if there is none, applies what is pending, in one transaction, and says what it did, a line each. Safe to call from several processes at
    /// once, and again.
    ///
    /// A table of the old recipe is taken over only when `adopt` says what its offsets mean; its rows then belong to this store's group.
    ///
    /// # Errors
    /// `Fatal` when a table of another kind has the name, when a table of the old recipe is there and `adopt` is not given, and the other way round.
    pub async fn apply(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure> {
        let mut control = self.making().await?;
        let done = self.apply_within(&mut control, adopt).await?;
        control.commit().await?.close().await;
        Ok(done)
    }

    async fn apply_within(
        &self,
        control: &mut Control,
        adopt: Option<Meaning>,
    ) -> Result<Vec<String>, Failure> {
        let names = control.names();
        let mut done = Vec::new();
        let form = "table";
        let before = if present(control).await?.make_room(&names.table, form, adopt)? {
            let old = rename(control).await?;
            done.push(format!("renamed {} to {old}", names.table));
            Some(old)
        } else {
            None
        };
        let applied = applied(control).await?;
        if applied.is_empty() {
            control.sql().execute(&*names.fill(BOOKKEEPING)).await?;
        }
        for (version, template) in MIGRATIONS.iter().filter(|(version, _)| !applied.contains(version)) {
            control.sql().execute(&*names.fill(template)).await?;
            let insert = format!("INSERT INTO {} (offsets_table, version) VALUES (?1, ?2)", names.migrations);
            sqlx::query(&insert).bind(&names.table).bind(*version).execute(control.sql()).await?;
            done.push(bookkeeping::applied_line(&names.table, *version));
        }
        if let (Some(old), Some(meaning)) = (before, adopt) {
            let rows = self.copy(control, &old, meaning).await?;
            done.push(format!("copied {rows} rows for group {} ({meaning})", self.group()));
        }
        Ok(done)
    }

    /// All statements, for a DBA who applies them by hand to a file. Nothing is opened.
    pub fn print(&self) -> String {
        let names = &self.names;
        let mut text =
            format!("PRAGMA journal_mode = WAL;\n\nBEGIN IMMEDIATE;\n\n{}", names.fill(BOOKKEEPING));
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
        text
    }

    /// Copies the rows of an old table, with an event each. Answers how many.
    async fn copy(&self, control: &mut Control, old: &str, meaning: Meaning) -> Result<u64, Failure> {
        let names = control.names();
        let source = qualified(old);
        let rows = format!(
            "INSERT INTO {} (consumer_group, topic, partition_id, last_offset)
             SELECT ?1, topic, partition_id, last_offset + ?2
             FROM {source}",
            names.offsets
        );
        let copied =
            sqlx::query(&rows).bind(self.group()).bind(meaning.shortfall()).execute(control.sql()).await?;
        let events = format!(
            "INSERT INTO {} (who, consumer_group, topic, partition_id, kind, old_offset, new_offset, reason)
             SELECT ?1, ?2, topic, partition_id, 'adopted', last_offset, last_offset + ?3, ?4
             FROM {source}
             ORDER BY topic, partition_id",
            names.events
        );
        sqlx::query(&events)
            .bind(self.who())
            .bind(self.group())
            .bind(meaning.shortfall())
            .bind(format!("{old}: {meaning}"))
            .execute(control.sql())
            .await?;
        Ok(copied.rows_affected())
    }

    /// Looks at our tables, and changes nothing.
    ///
    /// # Errors
    /// Those of opening and of the questions; what a person must mend is no error but a problem.
    pub async fn preflight(&self) -> Result<Preflight, Failure> {
        let mut control = self.look().await?;
        let names = control.names();
        let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(control.sql()).await?;
        let mut problems = Vec::new();
        match present(&mut control).await?.problem(&names.table) {
            Some(problem) => problems.push(problem),
            None => {
                for table in NEEDED {
                    if !exists(&mut control, table).await? {
                        problems.push(bookkeeping::no_table(table));
                    }
                }
            }
        }
        if problems.is_empty() {
            let applied = applied(&mut control).await?;
            problems.extend(bookkeeping::version_problem(&names.table, &applied, MIGRATIONS));
        }
        self.keep(control.commit().await?);
        let server_version = format!("SQLite {version}");
        Ok(Preflight { server_version, offsets: names.table.clone(), role: None, encryption: None, problems })
    }
}

/// Renames an old table out of the way.
async fn rename(control: &mut Control) -> Result<String, Failure> {
    let names = control.names();
    let old = bookkeeping::before(&names.table);
    if exists(control, &old).await? {
        return Err(bookkeeping::in_the_way(&old));
    }
    control.sql().execute(&*format!("ALTER TABLE {} RENAME TO {}", names.offsets, quote(&old))).await?;
    Ok(old)
}

/// Versions applied, by our bookkeeping.
async fn applied(control: &mut Control) -> Result<Vec<i32>, Failure> {
    if !exists(control, "oncesink_migrations").await? {
        return Ok(Vec::new());
    }
    let names = control.names();
    let statement = format!(
        "SELECT version FROM {} WHERE offsets_table = ?1 COLLATE NOCASE ORDER BY version",
        names.migrations
    );
    Ok(sqlx::query_scalar(&statement).bind(&names.table).fetch_all(control.sql()).await?)
}

/// SQLite compares the names of tables without regard to case.
async fn exists(control: &mut Control, table: &str) -> Result<bool, Failure> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE)",
    );
    Ok(found.bind(table).fetch_one(control.sql()).await?)
}

/// What stands where the offsets should, by its columns.
async fn present(control: &mut Control) -> Result<Present, Failure> {
    let names = control.names();
    if !exists(control, &names.table).await? {
        return Ok(Present::Absent);
    }
    let columns: Vec<String> = sqlx::query_scalar("SELECT lower(name) FROM pragma_table_xinfo(?1, 'main')")
        .bind(&names.table)
        .fetch_all(control.sql())
        .await?;
    let has = |wanted: &str| columns.iter().any(|column| column == wanted);
    Ok(Present::of(["topic", "partition_id", "last_offset"].into_iter().all(has), has("consumer_group")))
}
