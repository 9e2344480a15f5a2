//! Sessions that hold a row and do not move: ours are ended, foreign ones never.

use std::time::Duration;

use oncesink::store::{Claim, Store};
use oncesink_test_support::eventually;
use sqlx::Executor;

use super::{Bench, claimed, step, wanted};

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_frozen_session_of_the_group_is_ended_by_the_claim() {
    let bench = Bench::registered("frozen_own", 1).await;
    let (frozen, claimer) = (bench.store(), bench.store());
    let fence = bench.claim(&frozen, 0).await.fence;
    let mut tx = frozen.begin(frozen.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    frozen.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap();

    let identity = bench.identity("next");
    let wanted = wanted("t", 0);
    // Before the framework calls it frozen, it is only waited for.
    assert_eq!(claimer.claim_waiting(&identity, &wanted, false).await.unwrap(), Claim::Busy);
    assert_eq!(claimer.sessions_ended(), 0);
    let claim = eventually(DEADLINE, || async {
        let claim = claimer.claim_waiting(&identity, &wanted, true).await.unwrap();
        (claim != Claim::Busy).then_some(claim)
    })
    .await;
    assert_eq!((claimed(&claim).offset, claimed(&claim).fence.epoch), (10, 2));
    assert_eq!(claimer.sessions_ended(), 1);
    assert!(frozen.guard(&mut tx).await.is_err());
}

#[tokio::test]
async fn a_foreign_session_is_waited_for() {
    let bench = Bench::registered("frozen_foreign", 1).await;
    let claimer = bench.store();
    // Another group's name, and our name borne by another role.
    let other = Bench { schema: bench.schema.clone(), group: "another group".into() };
    let role = oncesink_test_support::unique("stranger");
    bench.schema.execute(&format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
    let (before, after) =
        bench.schema.url().split_once("postgres@").expect("the URL of the test server names its role");
    let strangers_url = format!("{before}{role}@{after}");
    for holder in [other.store(), bench.store_at(&strangers_url)] {
        let mut tx =
            holder.begin(holder.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
        tx.sql().execute("SELECT FROM kafka_offsets FOR UPDATE").await.unwrap();
        for _ in 0..3 {
            let claim = claimer.claim_waiting(&bench.identity("next"), &wanted("t", 0), true).await.unwrap();
            assert_eq!(claim, Claim::Busy);
        }
        assert_eq!(claimer.sessions_ended(), 0);
        assert!(holder.rollback(tx).await.is_some(), "the foreign session lives");
    }
    bench.schema.execute(&format!("DROP ROLE {role}")).await;
}

#[tokio::test]
async fn an_abandoned_session_is_ended_by_its_identity() {
    let bench = Bench::registered("frozen_abandoned", 1).await;
    let store = bench.store();
    let session = store.connect().await.unwrap();
    let id = oncesink::postgres::Postgres::session_id(&session);
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(oncesink::postgres::Postgres::tx_session_id(&tx), id);
    // Dropped in mid-statement: the server does not notice, and the row stays locked.
    tx.sql().execute("SELECT FROM kafka_offsets FOR UPDATE").await.unwrap();
    let statement =
        tokio::time::timeout(Duration::from_millis(100), tx.sql().execute("SELECT pg_sleep(25)")).await;
    assert!(statement.is_err());
    drop(tx);
    let claims = store.claim(&bench.identity("a"), &[wanted("t", 0)]).await.unwrap();
    assert_eq!(claims, [Claim::Busy]);

    assert!(store.end_session(id).await.unwrap());
    let claim = store.claim_waiting(&bench.identity("a"), &wanted("t", 0), false).await.unwrap();
    assert_eq!(claimed(&claim).offset, 10);
    let gone = eventually(DEADLINE, || async { (!store.end_session(id).await.unwrap()).then_some(true) });
    assert!(gone.await, "a session that is gone is no error");
}

#[tokio::test]
async fn another_groups_session_is_not_ended_by_its_identity() {
    let bench = Bench::registered("frozen_identity", 1).await;
    let other = Bench { schema: bench.schema.clone(), group: "another group".into() };
    let (store, theirs) = (bench.store(), other.store());
    let session = theirs.connect().await.unwrap();
    let id = oncesink::postgres::Postgres::session_id(&session);
    assert!(!store.end_session(id).await.unwrap());
    assert!(theirs.begin(session, oncesink::Statements::Foreign).await.is_ok());
}

#[tokio::test]
async fn a_session_of_the_group_that_is_only_busy_is_not_ended() {
    let bench = Bench::registered("frozen_busy", 1).await;
    let (busy, claimer) = (bench.store(), bench.store());
    let fence = bench.claim(&busy, 0).await.fence;
    let mut tx = busy.begin(busy.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    busy.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap();
    let committing = async {
        // Long enough for the watch to look several times, well below what it calls frozen.
        tx.sql().execute("SELECT pg_sleep(0.4)").await.unwrap();
        busy.guard(&mut tx).await.unwrap();
        busy.commit(tx).await.map_err(|_| "commit").unwrap();
    };
    let (identity, wanted) = (bench.identity("next"), wanted("t", 0));
    let (claim, ()) = tokio::join!(claimer.claim_waiting(&identity, &wanted, true), committing);
    assert_eq!(claimed(&claim.unwrap()).offset, 12);
    assert_eq!(claimer.sessions_ended(), 0);
}

/// In mid-COPY neither the statement's nor the idle limit of the server fires for a client that sends nothing.
#[tokio::test]
async fn a_session_frozen_in_mid_copy_is_ended_by_the_claim() {
    let bench = Bench::with_rows("frozen_copy", 1).await;
    let (frozen, claimer) = (bench.store(), bench.store());
    let fence = bench.claim(&frozen, 0).await.fence;
    let mut tx = frozen.begin(frozen.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    frozen.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap();
    let mut copy = tx.sql().copy_in_raw("COPY rows FROM STDIN").await.unwrap();
    copy.send(&b"10\n"[..]).await.unwrap();

    let (identity, wanted) = (bench.identity("next"), wanted("t", 0));
    let claim = eventually(DEADLINE, || async {
        let claim = claimer.claim_waiting(&identity, &wanted, true).await.unwrap();
        (claim != Claim::Busy).then_some(claim)
    })
    .await;
    assert_eq!(claimed(&claim).offset, 10);
    assert_eq!(claimer.sessions_ended(), 1);
    assert!(copy.finish().await.is_err());
    assert_eq!(bench.schema.count("rows").await, 0);
}
