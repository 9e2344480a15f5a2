//! Another connection holds the write lock of the file: what waits, what does not, and what is said of the holder.

use std::time::{Duration, Instant};

use oncesink::Class;
use oncesink::store::{Claim, EventRow, Store};
use sqlx::Executor;
use uuid::Uuid;

use super::{Bench, claimed, names, starts, step, wanted};

#[tokio::test]
async fn while_the_file_is_held_claims_are_busy_writes_transient_and_looks_answer() {
    let bench = Bench::registered("busy_held", 2).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let mut holder = bench.schema.connection().await;
    holder.execute("BEGIN IMMEDIATE").await.unwrap();

    let began = Instant::now();
    let all = [wanted("t", 0), wanted("t", 1)];
    assert_eq!(store.claim(&bench.identity("a"), &all).await.unwrap(), [Claim::Busy, Claim::Busy]);
    let alone = store.claim_waiting(&bench.identity("a"), &all[1], true).await.unwrap();
    assert_eq!(alone, Claim::Busy);
    let event = EventRow {
        place: all[0].place.clone(),
        kind: "rewound",
        old_offset: None,
        new_offset: None,
        reason: "test".into(),
    };
    let failures = [
        store
            .begin(store.connect().await.unwrap(), oncesink::Statements::Foreign)
            .await
            .err()
            .expect("begin"),
        store.register(&bench.identity("a"), &starts("t", 3, 0)).await.unwrap_err(),
        store.settle(&[step(0, fence, 10, 11)], Uuid::new_v4()).await.unwrap_err(),
        store.forward(&all[0].place, fence, 10, 11, "test").await.unwrap_err(),
        store.record(&event).await.unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(
            (failure.class, failure.sql_state.as_deref()),
            (Class::Transient, Some("SQLITE_BUSY")),
            "{failure}"
        );
        assert!(failure.message.contains("held by this process itself"), "{failure}");
    }
    assert!(began.elapsed() < Duration::from_secs(30), "each waits for about a second");
    // Looks read the last commit beside the holder.
    assert_eq!(store.rows(&[all[0].place.clone()]).await.unwrap()[0].fence, fence);
    assert_eq!(store.recorded(&names(&["t"])).await.unwrap(), [Some(2)]);
    assert_eq!(store.status(None).await.unwrap().len(), 2);
    assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());

    holder.execute("COMMIT").await.unwrap();
    let claims = store.claim(&bench.identity("a"), &all).await.unwrap();
    assert_eq!((claimed(&claims[0]).fence.epoch, claimed(&claims[1]).fence.epoch), (2, 1));
}

#[tokio::test]
async fn a_claim_waits_for_the_transaction_under_way_and_finds_where_it_ended() {
    let bench = Bench::registered("busy_waits", 1).await;
    let (first, second) = (bench.store(), bench.patient_store());
    let owner = bench.claim(&first, 0).await;
    let mut tx = first.begin(first.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    first.advance(&mut tx, &[step(0, owner.fence, 10, 15)]).await.unwrap();
    first.guard(&mut tx).await.unwrap();
    let (identity, want) = (bench.identity("b"), [wanted("t", 0)]);
    let claiming = second.claim(&identity, &want);
    let committing = async {
        // The claim waits in this process's queue meanwhile; the lock itself shows only where the holder is outside of it, as above.
        tokio::time::sleep(Duration::from_millis(300)).await;
        first.commit(tx).await.map_err(|_| "commit").unwrap()
    };
    let (claims, _session) = tokio::join!(claiming, committing);
    let claim = claimed(&claims.unwrap()[0]);
    assert_eq!((claim.offset, claim.fence.epoch), (15, 2));
}

#[tokio::test]
async fn many_writers_of_one_process_all_get_their_turn() {
    let bench = Bench::registered("busy_turns", 8).await;
    bench.schema.execute("CREATE TABLE copies (n bigint)").await;
    let writers = (0..8).map(|partition| {
        let store = bench.patient_store();
        let (identity, want) = (bench.identity("w"), wanted("t", partition));
        tokio::spawn(async move {
            let claims = store.claim(&identity, &[want]).await.unwrap();
            let fence = claimed(&claims[0]).fence;
            let mut session = store.connect().await.unwrap();
            for offset in 10..20 {
                let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
                let step = step(partition, fence, offset, offset + 1);
                assert_eq!(store.advance(&mut tx, &[step]).await.unwrap(), [true]);
                sqlx::query("INSERT INTO copies VALUES (?)").bind(offset).execute(tx.sql()).await.unwrap();
                store.guard(&mut tx).await.unwrap();
                session = store.commit(tx).await.map_err(|_| "commit").unwrap();
            }
        })
    });
    for writer in futures_util::future::join_all(writers).await {
        writer.unwrap();
    }
    assert_eq!(bench.schema.count("copies").await, 80);
    let offsets: Vec<i64> = bench.schema.column("SELECT DISTINCT last_offset FROM kafka_offsets").await;
    assert_eq!(offsets, [20]);
}
