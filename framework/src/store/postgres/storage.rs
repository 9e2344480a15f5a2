//! Whether a table keeps its rows through a crash, together with the offsets.
//!
//! Why: with logged offsets and an UNLOGGED target, a crash of the server empties the target and leaves the offsets where they were.

use sqlx::{PgConnection, Row};

use super::tx::Tx;
use crate::error::Failure;

/// How a relation is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A permanent, local, logged table; of a partitioned one, all parts.
    Permanent,
    /// There is no such relation.
    Missing,
    /// Anything else: the relation or the part of it concerned, and why it cannot hold rows that belong to offsets.
    Unfit {
        /// Name with schema.
        relation: String,
        /// What is wrong, and what helps.
        why: &'static str,
    },
}

impl Storage {
    /// What is wrong, for people; none for a permanent table.
    pub fn problem(&self, schema: &str, table: &str) -> Option<String> {
        match self {
            Self::Permanent => None,
            Self::Missing => Some(format!("{schema}.{table}: no such table")),
            Self::Unfit { relation, why } => Some(format!("{relation} {why}")),
        }
    }
}

/// How a target is stored. Names as the catalog spells them.
///
/// # Errors
/// As the driver's, by class.
pub async fn storage_of(tx: &mut Tx, schema: &str, table: &str) -> Result<Storage, Failure> {
    storage(tx.sql(), schema, table).await
}

/// The same on any connection.
pub(super) async fn storage(
    connection: &mut PgConnection,
    schema: &str,
    table: &str,
) -> Result<Storage, Failure> {
    let rows = sqlx::query(
        "WITH root AS (
             SELECT c.oid, c.relkind
             FROM pg_catalog.pg_class AS c
             JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2),
         tree AS (
             SELECT oid FROM root
             UNION
             SELECT t.relid FROM root, LATERAL pg_catalog.pg_partition_tree(root.oid) AS t
             WHERE root.relkind = 'p')
         SELECT n.nspname || '.' || c.relname AS relation, c.relkind::text AS kind, c.relpersistence::text AS persistence
         FROM tree
         JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid
         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
         ORDER BY relation",
    )
    .bind(schema)
    .bind(table)
    .fetch_all(connection)
    .await?;
    if rows.is_empty() {
        return Ok(Storage::Missing);
    }
    for row in rows {
        let (kind, persistence): (String, String) = (row.try_get("kind")?, row.try_get("persistence")?);
        if let Some(why) = unfit(&kind, &persistence) {
            return Ok(Storage::Unfit { relation: row.try_get("relation")?, why });
        }
    }
    Ok(Storage::Permanent)
}

fn unfit(kind: &str, persistence: &str) -> Option<&'static str> {
    match (kind, persistence) {
        ("r" | "p", "p") => None,
        ("r" | "p", "u") => Some(
            "is UNLOGGED: a crash of the server empties it while the offsets stay; ALTER TABLE .. SET LOGGED helps",
        ),
        ("r" | "p", _) => Some("is a temporary table: it ends with its session"),
        ("f", _) => Some("is a foreign table: its rows do not commit together with the offsets"),
        ("v" | "m", _) => Some("is a view; name the table itself"),
        _ => Some("is no table"),
    }
}
