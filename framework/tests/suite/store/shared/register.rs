//! First rows: once, for all partitions, at offsets resolved once.

use oncesink::store::{Claim, Store};

use super::{Bench, claimed, names, starts, wanted};

#[tokio::test]
async fn the_first_claim_decides_and_later_ones_change_nothing() {
    let bench = Bench::new("register_once").await;
    let store = bench.store();
    let identity = bench.identity("a");
    assert_eq!(store.recorded(&names(&["t", "u"])).await.unwrap(), [None, None]);
    store.register(&identity, &starts("t", 3, 100)).await.unwrap();
    store.register(&identity, &starts("t", 3, 999)).await.unwrap();
    store.register(&identity, &starts("t", 2, 999)).await.unwrap();
    assert_eq!(store.recorded(&names(&["u", "t"])).await.unwrap(), [None, Some(3)]);
    let offsets: Vec<i64> =
        bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
    assert_eq!(offsets, [100, 100, 100]);
    assert_eq!(
        bench.schema.value::<String>("SELECT start_policy || ' ' || topic_id FROM oncesink_topics").await,
        "latest id of t"
    );
}

#[tokio::test]
async fn partitions_that_come_later_begin_at_their_beginning() {
    let bench = Bench::new("register_growth").await;
    let store = bench.store();
    let identity = bench.identity("a");
    store.register(&identity, &starts("t", 2, 100)).await.unwrap();
    let mut grown = starts("t", 4, 555);
    grown.beginning = vec![1, 2, 3, 4];
    store.register(&identity, &grown).await.unwrap();
    let offsets: Vec<i64> =
        bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
    assert_eq!(offsets, [100, 100, 3, 4]);
    assert_eq!(store.recorded(&names(&["t"])).await.unwrap(), [Some(4)]);
    let claims = store.claim(&identity, &[wanted("t", 3)]).await.unwrap();
    assert_eq!(claimed(&claims[0]).offset, 4);
}

#[tokio::test]
async fn a_topic_that_does_not_exist_yet_begins_at_its_beginning_later() {
    let bench = Bench::new("register_absent").await;
    let store = bench.store();
    let identity = bench.identity("a");
    let mut absent = starts("t", 0, 0);
    absent.topic.id = "".into();
    store.register(&identity, &absent).await.unwrap();
    assert_eq!(store.recorded(&names(&["t"])).await.unwrap(), [Some(0)]);
    let mut born = starts("t", 2, 500);
    born.beginning = vec![0, 7];
    store.register(&identity, &born).await.unwrap();
    let offsets: Vec<i64> =
        bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
    assert_eq!(offsets, [0, 7]);
    assert_eq!(bench.schema.value::<String>("SELECT topic_id FROM oncesink_topics").await, "id of t");
}

#[tokio::test]
async fn racing_first_claims_agree_on_one_start() {
    let bench = Bench::new("register_race").await;
    let racers = (0..8).map(|racer| {
        let (store, identity) = (bench.patient_store(), bench.identity(&racer.to_string()));
        tokio::spawn(async move { store.register(&identity, &starts("t", 50, 1000 + racer)).await })
    });
    for racer in futures_util::future::join_all(racers).await {
        racer.unwrap().unwrap();
    }
    let starts: Vec<i64> = bench.schema.column("SELECT DISTINCT last_offset FROM kafka_offsets").await;
    assert_eq!(starts.len(), 1, "{starts:?}");
    assert_eq!(bench.schema.count("kafka_offsets").await, 50);
}

#[tokio::test]
async fn a_recreated_topic_gets_no_rows_and_is_refused() {
    let bench = Bench::registered("register_recreated", 2).await;
    let store = bench.store();
    let mut recreated = starts("t", 4, 0);
    recreated.topic.id = "another id".into();
    store.register(&bench.identity("a"), &recreated).await.unwrap();
    assert_eq!(store.recorded(&names(&["t"])).await.unwrap(), [Some(2)]);
    let wanted: Vec<_> = [0, 3]
        .map(|partition| oncesink::store::Wanted { topic: recreated.topic.clone(), ..wanted("t", partition) })
        .into();
    let claims = store.claim(&bench.identity("a"), &wanted).await.unwrap();
    assert!(
        claims.iter().all(|claim| matches!(claim, Claim::Refused(r) if r.what == "topic id")),
        "{claims:?}"
    );
}

#[tokio::test]
async fn rows_that_exist_are_never_touched() {
    let bench = Bench::new("register_exists").await;
    bench
        .schema
        .execute(&format!(
            "INSERT INTO kafka_offsets (consumer_group, topic, partition_id, last_offset) VALUES ('{}', 't', 1, 42)",
            bench.group
        ))
        .await;
    bench.store().register(&bench.identity("a"), &starts("t", 3, 100)).await.unwrap();
    let offsets: Vec<i64> =
        bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
    assert_eq!(offsets, [100, 42, 100]);
}
