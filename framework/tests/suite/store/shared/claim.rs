//! Claims: who owns a row, what is compared before anything is raised.

use oncesink::store::{Claim, Store, TopicIdentity, Wanted};

use super::{Bench, claimed, step, topic, wanted};

#[tokio::test]
async fn the_second_owner_claims_from_where_the_first_one_stands() {
    let bench = Bench::registered("claim_two", 2).await;
    let (first, second) = (bench.store(), bench.store());
    let one = bench.claim(&first, 0).await;
    assert_eq!((one.offset, one.fence.epoch, one.leader_epoch, one.paused), (10, 1, None, false));

    let mut tx = first.begin(first.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(first.advance(&mut tx, &[step(0, one.fence, 10, 15)]).await.unwrap(), [true]);
    first.guard(&mut tx).await.unwrap();
    first.commit(tx).await.map_err(|_| "commit").unwrap();

    let two = bench.claim(&second, 0).await;
    assert_eq!((two.offset, two.fence.epoch, two.leader_epoch), (15, 2, Some(7)));
    assert_eq!(two.previous, one.fence);
    assert_ne!(two.fence.token, one.fence.token);
    // The other partition was not touched by any of this.
    assert_eq!(bench.stands(1).await, (0, 10));
}

#[tokio::test]
async fn answers_stand_in_the_order_asked_for() {
    let bench = Bench::registered("claim_order", 4).await;
    let store = bench.store();
    for partition in 0..4 {
        bench
            .schema
            .execute(&format!(
                "UPDATE kafka_offsets SET last_offset = {} WHERE partition_id = {partition}",
                partition + 100
            ))
            .await;
    }
    let order = [3, 0, 2, 1];
    let all: Vec<_> = order.iter().map(|partition| wanted("t", *partition)).collect();
    let claims = store.claim(&bench.identity("a"), &all).await.unwrap();
    let offsets: Vec<i64> = claims.iter().map(|claim| claimed(claim).offset).collect();
    assert_eq!(offsets, order.map(|partition| i64::from(partition) + 100));
}

#[tokio::test]
async fn another_identity_is_refused_and_fences_nobody() {
    let bench = Bench::registered("claim_refused", 1).await;
    let store = bench.store();
    let owner = bench.claim(&store, 0).await;

    let mut cluster = bench.identity("b");
    cluster.cluster_id = "cluster-2".into();
    let mut sink = wanted("t", 0);
    sink.topic.target = "other: public.rows".into();
    let mut recreated = wanted("t", 0);
    recreated.topic.id = "another id".into();
    let attempts = [
        ("cluster", cluster, wanted("t", 0)),
        ("sink", bench.identity("b"), sink),
        ("topic id", bench.identity("b"), recreated),
    ];
    for (what, identity, wanted) in attempts {
        for waiting in [false, true] {
            let claim = if waiting {
                store.claim_waiting(&identity, &wanted, true).await.unwrap()
            } else {
                store.claim(&identity, std::slice::from_ref(&wanted)).await.unwrap().remove(0)
            };
            let Claim::Refused(refusal) = claim else { panic!("{what}: {claim:?}") };
            assert_eq!(refusal.what, what);
            assert_ne!(refusal.stored, refusal.here);
        }
    }
    // The healthy owner's fence still holds.
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &[step(0, owner.fence, 10, 11)]).await.unwrap(), [true]);
}

#[tokio::test]
async fn a_refused_partition_does_not_hold_up_the_others() {
    let bench = Bench::registered("claim_mixed", 2).await;
    bench.schema.execute("UPDATE kafka_offsets SET sink = 'elsewhere' WHERE partition_id = 0").await;
    let claims = bench.store().claim(&bench.identity("a"), &[wanted("t", 0), wanted("t", 1)]).await.unwrap();
    assert!(matches!(&claims[0], Claim::Refused(refusal) if refusal.stored == "elsewhere"), "{claims:?}");
    assert_eq!(claimed(&claims[1]).fence.epoch, 1);
    assert_eq!(bench.stands(0).await, (0, 10));
}

#[tokio::test]
async fn what_the_row_does_not_know_yet_is_filled_in() {
    let bench = Bench::registered("claim_fill", 1).await;
    bench.schema.execute("UPDATE kafka_offsets SET cluster_id = NULL, topic_id = NULL, sink = NULL").await;
    bench.claim(&bench.store(), 0).await;
    let filled: String = bench
        .schema
        .value("SELECT cluster_id || ' / ' || topic_id || ' / ' || sink || ' / ' || owner FROM kafka_offsets")
        .await;
    assert_eq!(filled, "cluster-1 / id of t / s: public.rows / claimer");
}

#[tokio::test]
async fn a_row_missing_below_the_count_is_an_impossible_position() {
    let bench = Bench::registered("claim_missing", 2).await;
    bench.schema.execute("DELETE FROM kafka_offsets WHERE partition_id = 1").await;
    let claims = bench.store().claim(&bench.identity("a"), &[wanted("t", 1), wanted("t", 0)]).await.unwrap();
    assert_eq!(claims[0], Claim::Missing);
    assert_eq!(claimed(&claims[1]).offset, 10);
    // Beyond the count it is only not registered yet, which registering mends.
    let failure = bench.store().claim(&bench.identity("a"), &[wanted("t", 2)]).await.unwrap_err();
    assert!(failure.message.contains("t/2 is not registered yet"), "{failure}");
}

#[tokio::test]
async fn an_ordered_pause_is_obeyed_and_a_stop_is_tried_again() {
    let bench = Bench::registered("claim_paused", 2).await;
    bench
        .schema
        .execute("UPDATE kafka_offsets SET state = 'paused', state_reason = 'by hand' WHERE partition_id = 0")
        .await;
    bench
        .schema
        .execute("UPDATE kafka_offsets SET state = 'stopped', state_reason = 'bad' WHERE partition_id = 1")
        .await;
    let claims = bench.store().claim(&bench.identity("a"), &[wanted("t", 0), wanted("t", 1)]).await.unwrap();
    assert!(claimed(&claims[0]).paused && !claimed(&claims[1]).paused);
    let states: Vec<String> = bench
        .schema
        .column("SELECT state || ' ' || COALESCE(state_reason, '-') FROM kafka_offsets ORDER BY partition_id")
        .await;
    assert_eq!(states, ["paused by hand", "running -"]);
}

#[tokio::test]
async fn topics_that_differ_in_case_only_are_two() {
    let bench = Bench::registered("claim_case", 1).await;
    let store = bench.store();
    store.register(&bench.identity("a"), &super::starts("T", 1, 20)).await.unwrap();
    let upper = super::wanted("T", 0);
    let claims = store.claim(&bench.identity("a"), &[wanted("t", 0), upper]).await.unwrap();
    assert_eq!((claimed(&claims[0]).offset, claimed(&claims[1]).offset), (10, 20));
    assert_eq!(topic("T").name.as_ref(), "T");
}

#[tokio::test]
async fn a_stored_topic_id_is_never_left_uncompared_and_a_missing_one_is_filled() {
    let bench = Bench::registered("claim_untold", 1).await;
    let store = bench.store();
    let id = || bench.schema.value::<Option<String>>("SELECT topic_id FROM kafka_offsets");
    let untold = {
        let want = wanted("t", 0);
        Wanted { topic: TopicIdentity { id: "".into(), ..want.topic }, ..want }
    };
    // Brokers that tell no id now: nothing is touched, and nothing is said to differ.
    let claims = store.claim(&bench.identity("a"), std::slice::from_ref(&untold)).await.unwrap();
    assert!(matches!(&claims[0], Claim::Refused(refusal) if refusal.is_unknown()), "{claims:?}");
    assert_eq!((bench.stands(0).await, id().await.as_deref()), ((0, 10), Some("id of t")));

    // Brokers that never told one: claimed, and the first claim that knows the id writes it down.
    bench.schema.execute("UPDATE kafka_offsets SET topic_id = NULL").await;
    let claims = store.claim(&bench.identity("a"), &[untold]).await.unwrap();
    assert_eq!(claimed(&claims[0]).fence.epoch, 1);
    assert_eq!(id().await, None);
    bench.claim(&store, 0).await;
    assert_eq!(id().await.as_deref(), Some("id of t"));
}
