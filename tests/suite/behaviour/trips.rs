//! C165: how many round trips a batch takes does not depend on its size.

use std::sync::Arc;

use oncesink::plan::Config;
use oncesink::position::{Interval, StartPolicy};
use oncesink::postgres::{Postgres, PostgresConfig, Session};
use oncesink::store::{Claim, Fence, Identity, Starts, Step, Store, TopicIdentity, Wanted};
use oncesink::{Batch, Part, SliceBuilder, SliceEnd, TopicPartition};
use oncesink_postgres::Tables;
use oncesink_test_support::Servers;
use oncesink_test_support::proxy::Proxy;

const MOST: u64 = 7;

/// Claims partition 0 of topic `t`.
async fn claimed(store: &Postgres) -> Fence {
    store.apply(None).await.unwrap();
    let topic = TopicIdentity { name: "t".into(), id: "id".into(), target: "s: t".into() };
    let identity = Identity {
        group: "trips".into(),
        sink: "s".into(),
        cluster_id: "cluster".into(),
        owner: "tests".into(),
    };
    let starts =
        Starts { topic: topic.clone(), policy: StartPolicy::Earliest, first: vec![0], beginning: vec![0] };
    store.register(&identity, &starts).await.unwrap();
    let wanted = Wanted { place: TopicPartition::new("t", 0), topic };
    match store.claim(&identity, &[wanted]).await.unwrap().remove(0) {
        Claim::Claimed(claimed) => claimed.fence,
        other => panic!("not claimed: {other:?}"),
    }
}

/// What one transaction of the writer is, from BEGIN to COMMIT.
async fn transaction(
    store: &Postgres,
    session: Session,
    sink: &Tables,
    fence: Fence,
    (from, rows): (i64, i64),
) -> Session {
    let mut slice = SliceBuilder::new(TopicPartition::new("t", 0), from);
    for offset in from..from + rows {
        let (key, value) = (offset.to_string(), format!(r#"{{"v":{offset}}}"#));
        slice.push(offset, Some(0), None, Some(key.as_bytes()), Some(value.as_bytes()), []);
    }
    let mut batch = Batch::new(vec![Part::whole(Arc::new(slice.build()))]);
    batch.set_encoded(sink.encode(&batch).unwrap());
    let step = Step {
        place: TopicPartition::new("t", 0),
        fence,
        interval: Interval { from, to: from + rows },
        end: SliceEnd::default(),
    };
    let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
    assert_eq!(store.advance(&mut tx, &[step]).await.unwrap(), [true]);
    sink.write(&mut tx, &batch).await.unwrap();
    store.guard(&mut tx).await.unwrap();
    store.commit(tx).await.unwrap()
}

#[tokio::test]
async fn c165_round_trips_do_not_depend_on_the_size_of_a_batch_on_postgres() {
    let schema = Servers::shared().await.postgres().schema("trips").await;
    schema.execute("CREATE TABLE t (id bigint PRIMARY KEY, v bigint)").await;
    let proxy = Proxy::start(schema.url());
    let store = Postgres::new(PostgresConfig::new(proxy.url()), "trips").unwrap();
    let fence = claimed(&store).await;
    let config: Config =
        serde_json::from_str(r#"{"table":{"mode":"upsert","key":["id"],"delete":"none"}}"#).unwrap();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    let sink = Tables::open(&config, &["t".to_owned()], &mut tx).await.unwrap();
    let mut session = store.rollback(tx).await.unwrap();
    let mut from = 0;
    // Arrays up to 1,000 rows, above that a staged table, which is looked for in each transaction.
    for (sizes, looks) in [([10, 500, 1000], 0), ([1500, 3000, 9000], 1)] {
        let mut taken = Vec::new();
        // The first one prepares statements and makes the table that rows are staged in.
        for rows in [sizes[0]].into_iter().chain(sizes) {
            let before = proxy.seen().trips;
            session = transaction(&store, session, &sink, fence, (from, rows)).await;
            from += rows;
            taken.push(proxy.seen().trips - before - looks);
        }
        taken.remove(0);
        assert!(taken.iter().all(|trips| *trips <= MOST && *trips == taken[0]), "{sizes:?}: {taken:?}");
    }
    assert_eq!(schema.count("t").await, from);
}
