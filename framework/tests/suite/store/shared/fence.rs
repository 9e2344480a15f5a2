//! The fence of the advance: epoch, token and expected offset. Each test doubles a row when its condition is taken away.

use oncesink::store::{Fence, Step, Store};
use sqlx::Executor;
use uuid::Uuid;

use super::{Bench, Db, step};

/// One whole transaction: advance, a row for each offset passed over, guard, commit. Answers whether the row was mine.
async fn write(store: &Db, step: &Step) -> bool {
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    if store.advance(&mut tx, std::slice::from_ref(step)).await.unwrap() != [true] {
        store.rollback(tx).await.unwrap();
        return false;
    }
    // Without a primary key a doubled row would be seen by the count only.
    let insert = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT CAST({} AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {})
         INSERT INTO copies SELECT n FROM numbers",
        step.interval.from, step.interval.to
    );
    tx.sql().execute(&*insert).await.unwrap();
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.map_err(|_| "commit").unwrap();
    true
}

async fn bench(stem: &str) -> Bench {
    let bench = Bench::registered(stem, 2).await;
    bench.schema.execute("CREATE TABLE copies (n bigint)").await;
    bench
}

async fn copies(bench: &Bench) -> (i64, i64) {
    (bench.schema.count("copies").await, bench.schema.value("SELECT count(DISTINCT n) FROM copies").await)
}

#[tokio::test]
async fn c177_of_redelivered_batches_only_what_begins_at_the_stored_offset_is_applied() {
    let bench = bench("fence_ranges").await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    // 10 and 11 are applied; then batches come again that overlap in every way. The writer cuts what it knows to be stored; the fence alone must do as well.
    for (from, to, applied) in [
        (10, 12, true),
        (9, 12, false),
        (10, 11, false),
        (10, 12, false),
        (11, 13, false),
        (11, 12, false),
        (13, 20, false),
        (12, 21, true),
        (15, 18, false),
        (12, 21, false),
    ] {
        assert_eq!(write(&store, &step(0, fence, from, to)).await, applied, "{from}..{to}");
    }
    assert_eq!(copies(&bench).await, (11, 11));
    assert_eq!(bench.offset(0).await, 21);
}

#[tokio::test]
async fn a_stale_owner_matches_nothing() {
    let bench = bench("fence_stale").await;
    let store = bench.store();
    let old = bench.claim(&store, 0).await;
    let new = bench.claim(&store, 0).await;
    assert!(!write(&store, &step(0, old.fence, 10, 12)).await);
    assert!(write(&store, &step(0, new.fence, 10, 12)).await);
    assert!(!write(&store, &step(0, old.fence, 10, 12)).await);
    assert_eq!(copies(&bench).await, (2, 2));
}

#[tokio::test]
async fn without_the_epoch_an_earlier_claim_of_the_same_token_would_double() {
    let bench = bench("fence_epoch").await;
    let store = bench.store();
    let claimed = bench.claim(&store, 0).await;
    let other = Fence { epoch: claimed.fence.epoch - 1, ..claimed.fence };
    assert!(!write(&store, &step(0, other, 10, 12)).await);
    assert!(write(&store, &step(0, claimed.fence, 10, 12)).await);
    assert_eq!(copies(&bench).await, (2, 2));
}

#[tokio::test]
async fn without_the_token_an_epoch_that_recurs_after_a_failover_would_double() {
    let bench = bench("fence_token").await;
    let store = bench.store();
    // A failover loses the first claim; the second one then writes the same epoch.
    let lost = bench.claim(&store, 0).await;
    bench.schema.execute("UPDATE kafka_offsets SET owner_epoch = 0").await;
    let owner = bench.claim(&store, 0).await;
    assert_eq!(lost.fence.epoch, owner.fence.epoch);
    assert!(!write(&store, &step(0, lost.fence, 10, 12)).await);
    assert!(write(&store, &step(0, owner.fence, 10, 12)).await);
    assert_eq!(copies(&bench).await, (2, 2));
}

#[tokio::test]
async fn without_the_expected_offset_a_repeated_batch_would_double() {
    let bench = bench("fence_offset").await;
    let store = bench.store();
    let claimed = bench.claim(&store, 0).await;
    let batch = step(0, claimed.fence, 10, 12);
    assert!(write(&store, &batch).await);
    assert!(!write(&store, &batch).await);
    // Nor may a batch leave a gap.
    assert!(!write(&store, &step(0, claimed.fence, 13, 14)).await);
    assert_eq!(copies(&bench).await, (2, 2));
}

#[tokio::test]
async fn another_group_has_offsets_of_its_own() {
    let bench = bench("fence_group").await;
    let store = bench.store();
    let claimed = bench.claim(&store, 0).await;
    let other = Bench { schema: bench.schema.clone(), group: "another".into() };
    other.store().register(&other.identity("o"), &super::starts("t", 2, 10)).await.unwrap();
    bench
        .schema
        .execute(&format!(
            "UPDATE kafka_offsets SET owner_epoch = 1, owner_token = '{}'",
            claimed.fence.token
        ))
        .await;
    assert!(write(&store, &step(0, claimed.fence, 10, 12)).await);
    let theirs: i64 = bench
        .schema
        .value("SELECT last_offset FROM kafka_offsets WHERE consumer_group = 'another' AND partition_id = 0")
        .await;
    assert_eq!(theirs, 10);
}

#[tokio::test]
async fn one_statement_moves_what_is_mine_and_tells_the_rest() {
    let bench = Bench::registered("fence_many", 50).await;
    let store = bench.store();
    let mut steps = Vec::new();
    for partition in 0..50 {
        let fence = if partition % 3 == 0 {
            Fence { epoch: 1, token: Uuid::new_v4() }
        } else {
            bench.claim(&store, partition).await.fence
        };
        steps.push(step(partition, fence, 10, 20 + i64::from(partition)));
    }
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let matched = store.advance(&mut tx, &steps).await.unwrap();
    let expected: Vec<bool> = (0..50).map(|partition| partition % 3 != 0).collect();
    assert_eq!(matched, expected);
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.map_err(|_| "commit").unwrap();
    assert_eq!((bench.offset(0).await, bench.offset(49).await), (10, 69));
}

#[tokio::test]
async fn what_stands_beside_the_offset_is_the_last_records() {
    let bench = bench("fence_beside").await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let epoch = "SELECT COALESCE(CAST(leader_epoch AS text), '-') FROM kafka_offsets WHERE partition_id = 0";
    let time = async || store.status(None).await.unwrap()[0].record_timestamp;
    assert!(write(&store, &step(0, fence, 10, 11)).await);
    assert_eq!(
        (bench.schema.value::<String>(epoch).await.as_str(), time().await),
        ("7", Some(1_700_000_000_123))
    );
    // An end of partition: the epoch is not known, the last record stays the last record.
    let mut end = step(0, fence, 11, 12);
    end.end = oncesink::SliceEnd::default();
    assert!(write(&store, &end).await);
    assert_eq!(
        (bench.schema.value::<String>(epoch).await.as_str(), time().await),
        ("-", Some(1_700_000_000_123))
    );
    // A time that no column holds must not stop the offset.
    let mut odd = step(0, fence, 12, 13);
    odd.end.timestamp = Some(i64::MAX);
    assert!(write(&store, &odd).await);
    odd.interval = oncesink::position::Interval { from: 13, to: 14 };
    odd.end.timestamp = Some(9_224_318_015_999);
    assert!(write(&store, &odd).await);
    odd.interval = oncesink::position::Interval { from: 14, to: 15 };
    odd.end.timestamp = Some(-210_866_803_200_000);
    assert!(write(&store, &odd).await);
}
