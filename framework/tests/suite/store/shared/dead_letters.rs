//! Dead letters: on the transaction that passes over them, all of them, and once a row each.

use std::sync::Arc;

use oncesink::store::Store;
use oncesink::{BadRecord, Batch, Part, Reason, SliceBuilder, TopicPartition};

use super::{Bench, Db, step};

/// Offsets 10.. of a partition of topic `t`, all bad; key, value, timestamp and header of each.
type Content<'c> = (Option<&'c [u8]>, Option<&'c [u8]>, Option<i64>, Option<(&'c [u8], Option<&'c [u8]>)>);

fn bad(partition: i32, reason: Reason, contents: &[Content<'_>]) -> Part {
    let place = TopicPartition::new("t", partition);
    let mut builder = SliceBuilder::new(place.clone(), 10);
    for (offset, (key, value, timestamp, header)) in (10..).zip(contents) {
        builder.push(offset, *timestamp, None, *key, *value, *header);
    }
    let mut part = Part::whole(Arc::new(builder.build()));
    for offset in 10..10 + contents.len() as i64 {
        let (sql_state, column) = (Some("23514".into()), Some("amount".into()));
        let (place, message, table) = (place.clone(), "words".into(), Some("public.rows".into()));
        assert!(part.set_aside(BadRecord { place, offset, reason, message, sql_state, table, column }));
    }
    part
}

/// One transaction that passes over these parts and keeps their dead letters.
async fn pass(bench: &Bench, store: &Db, parts: Vec<Part>, commits: bool) {
    let batch = Batch::new(parts);
    let mut steps = Vec::new();
    for part in batch.parts() {
        let partition = part.topic_partition().partition;
        let fence = bench.claim(store, partition).await.fence;
        steps.push(step(partition, fence, part.interval().from, part.interval().to));
    }
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &steps).await.unwrap(), vec![true; steps.len()]);
    store.dead_letters(&mut tx, &batch.dead_letters()).await.unwrap();
    if !commits {
        return drop(store.rollback(tx).await);
    }
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.map_err(|_| "commit").unwrap();
}

async fn letters(bench: &Bench) -> Vec<String> {
    let sql = "SELECT partition_id || ' ' || record_offset || ' ' || COALESCE(CAST(length(record_key) AS text), '-') || ' '
                      || COALESCE(CAST(length(record_value) AS text), '-') || ' ' || COALESCE(CAST(length(record_headers) AS text), '-') || ' '
                      || class || ' ' || reason || ' ' || sql_state || ' ' || target_table || ' ' || target_column || ' ' || attempts || ' ' || status
               FROM oncesink_dead_letters ORDER BY partition_id, record_offset";
    bench.schema.column(sql).await
}

#[tokio::test]
async fn dead_letters_commit_with_their_offset_or_not_at_all() {
    let bench = Bench::registered("letters_with", 2).await;
    let store = bench.store();
    let empty: &[u8] = b"";
    let first = [
        (Some(&b"key"[..]), Some(&b"\x00\xFF"[..]), Some(1), Some((&b"h"[..], Some(&b"v"[..])))),
        (None, None, None, None),
        // Neither is nothing; and a time that no column holds.
        (Some(empty), Some(empty), Some(i64::MAX), Some((empty, None))),
    ];
    let parts = || vec![bad(0, Reason::Check, &first), bad(1, Reason::Check, &first[..1])];
    pass(&bench, &store, parts(), false).await;
    assert_eq!((letters(&bench).await.len(), bench.offset(0).await, bench.offset(1).await), (0, 10, 10));
    pass(&bench, &store, parts(), true).await;
    let rest = "constraint check 23514 public.rows amount 1 new";
    let expected =
        ["0 10 3 2 5", "0 11 - - -", "0 12 0 0 3", "1 10 3 2 5"].map(|letter| format!("{letter} {rest}"));
    assert_eq!(letters(&bench).await, expected);
    assert_eq!((bench.offset(0).await, bench.offset(1).await), (13, 11));
    let times = "SELECT count(*) FROM oncesink_dead_letters WHERE record_timestamp IS NULL";
    assert_eq!(bench.schema.value::<i64>(times).await, 2);
    let news: Vec<(i32, i64)> = store
        .status(None)
        .await
        .unwrap()
        .iter()
        .map(|row| (row.place.partition, row.new_dead_letters))
        .collect();
    assert_eq!(news, [(0, 3), (1, 1)]);
}

#[tokio::test]
async fn a_second_time_raises_the_attempts_and_the_letter_is_new_again() {
    let bench = Bench::registered("letters_again", 1).await;
    let store = bench.store();
    let content = (None, Some(&b"value"[..]), None, None);
    pass(&bench, &store, vec![bad(0, Reason::Check, &[content, content])], true).await;
    let group = &bench.group;
    bench
        .schema
        .execute(&format!(
            "UPDATE oncesink_dead_letters SET status = 'discarded', first_seen = '2001-01-01T00:00:00Z', last_seen = '2001-01-01T00:00:00Z';
             INSERT INTO oncesink_events (who, consumer_group, topic, partition_id, kind, old_offset, new_offset, reason)
             VALUES ('a test', '{group}', 't', 0, 'reset', 12, 10, 'a second pass');
             UPDATE kafka_offsets SET last_offset = 10"
        ))
        .await;
    pass(&bench, &store, vec![bad(0, Reason::TooLong, &[content])], true).await;
    assert_eq!(
        letters(&bench).await,
        [
            "0 10 - 5 - value too_long 23514 public.rows amount 2 new",
            "0 11 - 5 - constraint check 23514 public.rows amount 1 discarded"
        ]
    );
    let seen = "SELECT count(*) FROM oncesink_dead_letters WHERE first_seen < '2002-01-01T00:00:00Z' AND last_seen > '2002-01-01T00:00:00Z'";
    assert_eq!(bench.schema.value::<i64>(seen).await, 1);
    // Another group's are its own.
    let other = Bench { schema: bench.schema.clone(), group: "another".into() };
    let theirs = other.store();
    theirs.register(&other.identity("o"), &super::starts("t", 1, 10)).await.unwrap();
    pass(&other, &theirs, vec![bad(0, Reason::Check, &[content])], true).await;
    assert_eq!(bench.schema.count("oncesink_dead_letters").await, 3);
}

#[tokio::test]
async fn thousands_at_once_are_all_kept() {
    let bench = Bench::registered("letters_many", 1).await;
    let store = bench.store();
    let value = vec![b'v'; 1_000];
    let content = (None, Some(&value[..]), None, None);
    pass(&bench, &store, vec![bad(0, Reason::Check, &vec![content; 2_500])], true).await;
    assert_eq!(bench.schema.count("oncesink_dead_letters").await, 2_500);
    assert_eq!(bench.offset(0).await, 2_510);
}
