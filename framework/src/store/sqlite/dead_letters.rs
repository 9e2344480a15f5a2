//! Dead letters: bad records with their bytes, upserted within the transaction that passes over them.
//!
//! Invariant: on the transaction's own connection, all of them or an error. Must not: let a byte of a record into an error.

use super::NOW;
use super::tx::Tx;
use crate::dead_letter::DeadLetter;
use crate::error::{Class, Failure};

/// Keeps them, one statement each: within the process a statement costs microseconds.
pub(super) async fn keep(tx: &mut Tx, group: &str, letters: &[DeadLetter<'_>]) -> Result<(), Failure> {
    let table = tx.names.dead_letters.clone();
    let statement = format!(
        "INSERT INTO {table} AS d (consumer_group, topic, partition_id, record_offset, record_timestamp, record_key, record_value,
                                   record_headers, class, reason, sql_state, target_table, target_column)
         VALUES (?1, ?2, ?3, ?4, strftime('%Y-%m-%dT%H:%M:%fZ', ?5 / 1000.0, 'unixepoch'), ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (consumer_group, topic, partition_id, record_offset) DO UPDATE
         SET record_timestamp = excluded.record_timestamp,
             record_key = excluded.record_key,
             record_value = excluded.record_value,
             record_headers = excluded.record_headers,
             class = excluded.class,
             reason = excluded.reason,
             sql_state = excluded.sql_state,
             target_table = excluded.target_table,
             target_column = excluded.target_column,
             last_seen = {NOW},
             attempts = d.attempts + 1,
             status = 'new'"
    );
    for letter in letters {
        let kept = sqlx::query(&statement)
            .bind(group)
            .bind(&*letter.topic_partition().topic)
            .bind(letter.topic_partition().partition)
            .bind(letter.offset())
            .bind(letter.timestamp())
            .bind(letter.key())
            .bind(letter.value())
            .bind(letter.headers())
            .bind(letter.reason().class())
            .bind(letter.reason().code())
            .bind(letter.sql_state())
            .bind(letter.table())
            .bind(letter.column())
            .execute(tx.sql())
            .await
            .map_err(|error| of_the_table(error.into()))?;
        if kept.rows_affected() != 1 {
            let told = "oncesink_dead_letters did not take a dead letter; does a trigger of it drop rows?";
            return Err(Failure { session_alive: true, ..Failure::new(Class::SickObject, told) });
        }
    }
    Ok(())
}

/// No record is at fault when the table of dead letters refuses.
fn of_the_table(failure: Failure) -> Failure {
    let class = match failure.class {
        Class::BadRecord => Class::SickObject,
        class => class,
    };
    Failure { class, data: None, ..failure }.context("oncesink_dead_letters")
}
