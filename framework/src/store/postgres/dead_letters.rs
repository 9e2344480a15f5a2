//! Dead letters: bad records with their bytes, upserted within the transaction that passes over them.
//!
//! Invariant: on the transaction's own connection, all of them or an error. Must not: let a byte of a record into an error; the server's own words about data
//! are replaced before they come here.

use super::tx::{Tx, of_the_connector, storable};
use crate::dead_letter::DeadLetter;
use crate::error::{Class, Failure};

/// Bytes of keys and values in one statement, about at most: one letter is never cut.
const CHUNK_BYTES: usize = 1 << 20;
/// Letters in one statement.
const CHUNK_LETTERS: usize = 1000;

/// Keeps them, in statements of bounded size.
pub(super) async fn keep(tx: &mut Tx, group: &str, letters: &[DeadLetter<'_>]) -> Result<(), Failure> {
    let mut rest = letters;
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(chunk(rest));
        upsert(tx, group, chunk).await?;
        rest = more;
    }
    Ok(())
}

/// How many of these go into one statement; at least one.
fn chunk(letters: &[DeadLetter<'_>]) -> usize {
    let mut bytes = 0;
    let fits = letters.iter().take(CHUNK_LETTERS).take_while(|letter| {
        let fits = bytes == 0 || bytes + letter.bytes() <= CHUNK_BYTES;
        bytes += letter.bytes().max(1);
        fits
    });
    fits.count().max(1)
}

async fn upsert(tx: &mut Tx, group: &str, letters: &[DeadLetter<'_>]) -> Result<(), Failure> {
    let names = tx.names();
    let statement = format!(
        "INSERT INTO {} AS d (consumer_group, topic, partition_id, record_offset, record_timestamp, record_key, record_value, record_headers,
                              class, reason, sql_state, target_table, target_column)
         SELECT $1, w.topic, w.partition_id, w.record_offset, TIMESTAMPTZ 'epoch' + w.milliseconds * INTERVAL '1 millisecond',
                w.record_key, w.record_value, w.record_headers, w.class, w.reason, w.sql_state, w.target_table, w.target_column
         FROM UNNEST($2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bytea[], $9::text[], $10::text[],
                     $11::text[], $12::text[], $13::text[])
              AS w (topic, partition_id, record_offset, milliseconds, record_key, record_value, record_headers, class, reason, sql_state,
                    target_table, target_column)
         ON CONFLICT (consumer_group, topic, partition_id, record_offset) DO UPDATE
         SET record_timestamp = EXCLUDED.record_timestamp,
             record_key = EXCLUDED.record_key,
             record_value = EXCLUDED.record_value,
             record_headers = EXCLUDED.record_headers,
             class = EXCLUDED.class,
             reason = EXCLUDED.reason,
             sql_state = EXCLUDED.sql_state,
             target_table = EXCLUDED.target_table,
             target_column = EXCLUDED.target_column,
             last_seen = CURRENT_TIMESTAMP,
             attempts = d.attempts + 1,
             status = 'new'",
        names.dead_letters
    );
    let texts = |of: fn(&DeadLetter<'_>) -> &'static str| letters.iter().map(of).collect::<Vec<_>>();
    let table = names.display_dead_letters();
    let kept = sqlx::query(&statement)
        .bind(group)
        .bind(letters.iter().map(|letter| &*letter.topic_partition().topic).collect::<Vec<_>>())
        .bind(letters.iter().map(|letter| letter.topic_partition().partition).collect::<Vec<_>>())
        .bind(letters.iter().map(DeadLetter::offset).collect::<Vec<_>>())
        .bind(letters.iter().map(|letter| letter.timestamp().and_then(storable)).collect::<Vec<_>>())
        .bind(letters.iter().map(DeadLetter::key).collect::<Vec<_>>())
        .bind(letters.iter().map(DeadLetter::value).collect::<Vec<_>>())
        .bind(letters.iter().map(DeadLetter::headers).collect::<Vec<_>>())
        .bind(texts(|letter| letter.reason().class()))
        .bind(texts(|letter| letter.reason().code()))
        .bind(letters.iter().map(DeadLetter::sql_state).collect::<Vec<_>>())
        .bind(letters.iter().map(DeadLetter::table).collect::<Vec<_>>())
        .bind(letters.iter().map(DeadLetter::column).collect::<Vec<_>>())
        .execute(tx.sql())
        .await
        .map_err(|error| of_the_connector(error.into()).context(&table))?
        .rows_affected();
    if kept != letters.len() as u64 {
        let told = format!(
            "{table}: took {kept} of {} dead letters; does a trigger or a rule of it drop rows?",
            letters.len()
        );
        let mut failure = Failure::new(Class::SickObject, told);
        failure.session_alive = true;
        return Err(failure);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::{Batch, Part, SliceBuilder};
    use crate::error::{BadRecord, Reason};
    use crate::record::TopicPartition;

    /// Bad records with values of these lengths.
    fn batch(lengths: &[usize]) -> Batch {
        let place = TopicPartition::new("t", 0);
        let mut builder = SliceBuilder::new(place.clone(), 0);
        for (offset, length) in (0..).zip(lengths) {
            builder.push(offset, None, None, None, Some(&vec![0; *length]), []);
        }
        let mut part = Part::whole(Arc::new(builder.build()));
        for offset in 0..lengths.len() as i64 {
            let (place, message) = (place.clone(), String::new());
            let (reason, sql_state, table, column) = (Reason::Check, None, None, None);
            assert!(part.set_aside(BadRecord { place, offset, reason, message, sql_state, table, column }));
        }
        Batch::new(vec![part])
    }

    fn chunks(lengths: &[usize]) -> Vec<usize> {
        let batch = batch(lengths);
        let letters = batch.dead_letters();
        let (mut rest, mut chunks) = (&letters[..], Vec::new());
        while !rest.is_empty() {
            chunks.push(chunk(rest));
            rest = &rest[chunk(rest)..];
        }
        chunks
    }

    #[test]
    fn statements_are_bounded_in_bytes_and_letters_and_a_letter_is_never_cut() {
        assert_eq!(chunks(&[10; 3]), [3]);
        assert_eq!(chunks(&[0; 2500]), [1000, 1000, 500]);
        assert_eq!(chunks(&[3 * CHUNK_BYTES, 1, CHUNK_BYTES / 2, CHUNK_BYTES / 2, 5]), [1, 2, 2]);
        assert_eq!(chunks(&[1, 3 * CHUNK_BYTES, 1]), [1, 1, 1]);
    }
}
