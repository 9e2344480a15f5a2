//! Whether a table keeps its rows through a crash, together with the offsets: only a real table of the file itself does.

use sqlx::Row;

use super::tx::Tx;
use crate::error::Failure;

/// What stands against a target, for people; none for a table of the file. Names are compared as SQLite does, without regard to case.
///
/// # Errors
/// As the driver's, by class.
pub async fn unfit(tx: &mut Tx, table: &str) -> Result<Option<String>, Failure> {
    let temporary: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE)",
    )
    .bind(table)
    .fetch_one(tx.sql())
    .await?;
    if temporary {
        return Ok(Some(format!("{table} is a temporary table: it ends with its connection")));
    }
    let found = sqlx::query(
        "SELECT type, COALESCE(sql LIKE 'CREATE VIRTUAL%', false) FROM main.sqlite_schema
         WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE",
    )
    .bind(table)
    .fetch_optional(tx.sql())
    .await?;
    let Some(row) = found else { return Ok(Some(format!("{table}: no such table"))) };
    let (kind, is_virtual): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match (kind.as_str(), is_virtual) {
        ("table", false) => None,
        ("table", true) => Some(format!(
            "{table} is a virtual table: whether its rows commit together with the offsets is not known"
        )),
        _ => Some(format!("{table} is a view; name the table itself")),
    })
}
