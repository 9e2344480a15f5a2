//! The verbs: compared, fenced, told.

use oncesink::TopicPartition;
use oncesink::position::StartPolicy;
use oncesink::store::operate::{Reset, ResetTo, VerbError};
use oncesink::store::{EventRow, Fence, Store};

use super::{Bench, claimed, names, step, topic, wanted};

#[track_caller]
fn refusal<T: std::fmt::Debug>(answer: Result<T, VerbError>) -> String {
    match answer {
        Err(VerbError::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn skip_leaves_out_one_record_and_fences_the_owner() {
    let bench = Bench::registered("admin_skip", 2).await;
    let store = bench.store().acting_as("ann@host");
    let owner = bench.claim(&store, 0).await;
    let place = TopicPartition::new("t", 0);
    let why = refusal(store.skip(&place, 11, "broken").await);
    assert!(why.contains("t/0 stands at offset 10, not at 11"), "{why}");
    assert_eq!((bench.stands(0).await, bench.events().await.len()), ((1, 10), 0));

    let moved = store.skip(&place, 10, "broken").await.unwrap();
    assert_eq!((moved.old, moved.new), (Some(10), Some(11)));
    assert_eq!(bench.stands(0).await, (2, 11));
    let told: String = bench
        .schema
        .value("SELECT concat_ws(' ', who, topic, partition_id, kind, old_offset, new_offset, reason) FROM oncesink_events")
        .await;
    assert_eq!(told, "ann@host t 0 skipped 10 11 broken");
    // The running owner is fenced, also when it had passed the record itself.
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let steps = [step(0, owner.fence, 10, 11), step(0, owner.fence, 11, 12)];
    for step in steps {
        assert_eq!(store.advance(&mut tx, &[step]).await.unwrap(), [false]);
    }
    store.rollback(tx).await.unwrap();
    refusal(store.skip(&TopicPartition::new("t", 9), 0, "no such place").await);
}

#[tokio::test]
async fn resume_ends_a_stop_and_nothing_else() {
    let bench = Bench::registered("admin_resume", 1).await;
    let store = bench.store();
    let place = TopicPartition::new("t", 0);
    let why = refusal(store.resume(&place, None).await);
    assert!(why.contains("never claimed"), "{why}");
    let owner = bench.claim(&store, 0).await;
    let why = refusal(store.resume(&place, None).await);
    assert!(why.contains("it is running, at offset 10"), "{why}");

    store.note_state(&place, owner.fence, "stopped", Some("bad record")).await.unwrap();
    let status = store.status(None).await.unwrap();
    assert_eq!(
        (status[0].state.as_deref(), status[0].state_reason.as_deref()),
        (Some("stopped"), Some("bad record"))
    );
    assert!(status[0].state_since.is_some());
    store.resume(&place, None).await.unwrap();
    assert_eq!((bench.stands(0).await, bench.events().await), ((2, 10), vec!["resumed".to_owned()]));
    let rows = store.rows(std::slice::from_ref(&place)).await.unwrap();
    assert_ne!(rows[0].fence.token, owner.fence.token);

    // A note with an old fence is not written.
    store.note_state(&place, owner.fence, "stopped", None).await.unwrap();
    assert_eq!(store.status(None).await.unwrap()[0].state.as_deref(), Some("running"));
    bench.schema.execute("UPDATE kafka_offsets SET state = 'paused'").await;
    store.resume(&place, Some("enough")).await.unwrap();
}

#[tokio::test]
async fn reset_of_one_partition_goes_back_with_an_event() {
    let bench = Bench::registered("admin_reset", 2).await;
    let store = bench.store();
    let owner = bench.claim(&store, 0).await;
    let new = oncesink::store::TopicIdentity { id: "new id".into(), ..topic("t") };
    let reset = |partition, expect| Reset {
        topic: &new,
        cluster_id: "cluster-2",
        to: ResetTo::One { partition, expect, to: 3 },
        reason: "again",
    };
    let why = refusal(store.reset(&reset(0, Some(11))).await);
    assert!(why.contains("stands at offset 10"), "{why}");
    refusal(store.reset(&reset(2, None)).await);
    assert_eq!((bench.stands(0).await, bench.events().await.len()), ((1, 10), 0));

    let moves = store.reset(&reset(0, Some(10))).await.unwrap();
    assert_eq!((moves[0].old, moves[0].new), (Some(10), Some(3)));
    assert_eq!((bench.stands(0).await, bench.stands(1).await), ((2, 3), (0, 10)));
    assert_eq!(bench.events().await, ["reset"]);
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &[step(0, owner.fence, 3, 4)]).await.unwrap(), [false]);
    store.rollback(tx).await.unwrap();
    // The identity is taken over, so that the new cluster's claim is welcome.
    let mut identity = bench.identity("n");
    identity.cluster_id = "cluster-2".into();
    let want = oncesink::store::Wanted { topic: new.clone(), ..wanted("t", 0) };
    assert_eq!(claimed(&store.claim(&identity, &[want]).await.unwrap()[0]).offset, 3);
}

#[tokio::test]
async fn reset_of_a_topic_replaces_all_its_rows() {
    let bench = Bench::registered("admin_reset_all", 4).await;
    let store = bench.store();
    bench.schema.execute("DELETE FROM kafka_offsets WHERE partition_id = 1").await;
    let new = oncesink::store::TopicIdentity { id: "new id".into(), ..topic("t") };
    let reset = Reset {
        topic: &new,
        cluster_id: "cluster-1",
        to: ResetTo::All { to: &[1, 2, 30], policy: StartPolicy::Earliest },
        reason: "recreated",
    };
    let moves = store.reset(&reset).await.unwrap();
    let seen: Vec<_> = moves.iter().map(|moved| (moved.place.partition, moved.old, moved.new)).collect();
    assert_eq!(
        seen,
        [(0, Some(10), Some(1)), (1, None, Some(2)), (2, Some(10), Some(30)), (3, Some(10), None)]
    );
    let offsets: Vec<i64> =
        bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
    assert_eq!(offsets, [1, 2, 30]);
    assert_eq!(store.recorded(&names(&["t"])).await.unwrap(), [Some(3)]);
    assert_eq!(bench.events().await, ["reset"; 4]);
    let want: Vec<_> = (0..3)
        .map(|partition| oncesink::store::Wanted { topic: new.clone(), ..wanted("t", partition) })
        .collect();
    let claims = store.claim(&bench.identity("n"), &want).await.unwrap();
    assert!(claims.iter().all(|claim| claimed(claim).fence.epoch >= 1));
}

#[tokio::test]
async fn rows_events_and_status_tell_what_stands() {
    let bench = Bench::registered("admin_look", 2).await;
    let store = bench.store().acting_as("sink");
    let owner = bench.claim(&store, 1).await;
    let places = [1, 7, 0].map(|partition| TopicPartition::new("t", partition));
    let rows = store.rows(&places).await.unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.place.partition, row.fence.epoch, row.offset)).collect();
    assert_eq!(seen, [(0, 0, 10), (1, 1, 10)]);
    assert_eq!(rows[1].fence, owner.fence);
    assert_eq!(rows[0].fence, Fence { epoch: 0, token: uuid::Uuid::nil() });

    let event = EventRow {
        place: places[0].clone(),
        kind: "rewound",
        old_offset: Some(10),
        new_offset: None,
        reason: "seen".into(),
    };
    store.record(&event).await.unwrap();
    assert_eq!(bench.events().await, ["rewound"]);
    let status = store.status(Some(&bench.group)).await.unwrap();
    let seen: Vec<_> =
        status.iter().map(|row| (row.place.partition, row.owner.as_deref(), row.epoch)).collect();
    assert_eq!(seen, [(0, None, 0), (1, Some("claimer"), 1)]);
    assert!(status[1].updated_at > 1_600_000_000_000);
    assert_eq!(store.status(Some("nobody")).await.unwrap(), []);
}
