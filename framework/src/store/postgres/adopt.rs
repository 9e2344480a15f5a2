//! Taking over a table of the three-column recipe (topic, partition, offset).
//!
//! Invariant: asked, not guessed: whether its offset is the next to read or the last processed. The old table stays, under another name.

use sqlx::Executor;

use super::Postgres;
use super::control::Control;
use super::migrate::exists;
use super::names::{qualified, quote};
use crate::error::Failure;
use crate::store::bookkeeping;
use crate::store::operate::Meaning;

/// Renames the old table out of the way; from here on nobody writes to it until the transaction ends.
pub(super) async fn rename(control: &mut Control) -> Result<String, Failure> {
    let names = control.names();
    let Some(old) = names.before() else {
        return Err(Failure::fatal(format!("{} is too long a name to be renamed", names.display())));
    };
    if exists(control, &names, &old).await? {
        return Err(bookkeeping::in_the_way(&format!("{}.{old}", names.schema)));
    }
    control.sql().execute(&*format!("ALTER TABLE {} RENAME TO {}", names.offsets, quote(&old))).await?;
    Ok(old)
}

/// Copies the rows, with an event each. Answers how many.
pub(super) async fn copy(
    store: &Postgres,
    control: &mut Control,
    old: &str,
    meaning: Meaning,
) -> Result<u64, Failure> {
    let names = control.names();
    let source = qualified(&names.schema, old);
    let rows = format!(
        "INSERT INTO {} (consumer_group, topic, partition_id, last_offset)
         SELECT $1, topic::text, partition_id::integer, last_offset::bigint + $2
         FROM {source}",
        names.offsets
    );
    let copied =
        sqlx::query(&rows).bind(store.group()).bind(meaning.shortfall()).execute(control.sql()).await?;
    let events = format!(
        "INSERT INTO {} (who, consumer_group, topic, partition_id, kind, old_offset, new_offset, reason)
         SELECT $1, $2, topic::text, partition_id::integer, 'adopted', last_offset::bigint, last_offset::bigint + $3, $4
         FROM {source}
         ORDER BY topic, partition_id",
        names.events
    );
    sqlx::query(&events)
        .bind(store.who())
        .bind(store.group())
        .bind(meaning.shortfall())
        .bind(format!("{}.{old}: {meaning}", names.schema))
        .execute(control.sql())
        .await?;
    Ok(copied.rows_affected())
}
