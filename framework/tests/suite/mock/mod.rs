//! The framework's parts against the cluster within this process, which demonstrations and examples run on, and which can answer as brokers of before Kafka
//! 2.8 do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use oncesink::TopicPartition;
use oncesink::kafka::{Ends, MockCluster, Monitor, TopicState};
use oncesink_test_support::{eventually, unique};

use crate::member::{DEADLINE, Member, Seen, offsets};

/// A cluster with one topic, with this many records in each of its partitions.
fn cluster(topic: &str, partitions: i32, records: usize) -> MockCluster {
    let cluster = MockCluster::start().expect("a cluster");
    cluster.create_topic(topic, partitions).expect("a topic");
    for partition in (0..partitions).flat_map(|partition| std::iter::repeat_n(partition, records)) {
        cluster.produce(topic, partition, None, Some(b"v")).expect("a record");
    }
    cluster.flush().expect("all records");
    cluster
}

fn monitor(cluster: &MockCluster) -> Monitor {
    let brokers = ("bootstrap.servers".to_owned(), cluster.brokers().to_owned());
    Monitor::new(&BTreeMap::from([brokers])).expect("a client")
}

async fn states(monitor: &Monitor, names: &[&str]) -> Vec<TopicState> {
    let names: Vec<Arc<str>> = names.iter().map(|&name| name.into()).collect();
    monitor.topics(&names).await.expect("an answer").into_iter().map(|facts| facts.state).collect()
}

#[tokio::test]
async fn the_monitor_is_told_cluster_topics_and_ends() {
    let cluster = cluster("t", 2, 10);
    let monitor = monitor(&cluster);
    let facts = monitor.cluster().await.expect("an answer");
    assert!(facts.id.starts_with("mockCluster"), "{facts:?}");

    let states = states(&monitor, &["t", "missing"]).await;
    assert!(matches!(&states[0], TopicState::Exists { id: Some(_), partitions: 2 }), "{states:?}");
    assert_eq!(states[1], TopicState::Unknown);

    let ends = monitor.ends(&[TopicPartition::new("t", 0), TopicPartition::new("t", 7)]).await;
    let [there, nowhere] = ends.expect("an answer").try_into().expect("two answers");
    assert_eq!(there, Ok(Ends { log_start: 0, high_watermark: 10, last_stable: 10, leader_epoch: None }));
    assert!(nowhere.is_err(), "{nowhere:?}");
}

#[tokio::test]
async fn brokers_without_topic_ids_tell_that_there_are_none_and_silence_is_an_error() {
    let cluster = cluster("t", 1, 1);
    let monitor = monitor(&cluster);
    let before = states(&monitor, &["t"]).await;
    assert!(matches!(&before[0], TopicState::Exists { id: Some(_), .. }), "{before:?}");

    cluster.without_topic_ids().expect("an older cluster");
    // Connections of before are broken, which is an error and never "no id".
    let old = eventually(DEADLINE, || async {
        let facts = monitor.topics(&["t".into(), "missing".into()]).await.ok()?;
        Some(facts.into_iter().map(|facts| facts.state).collect::<Vec<_>>())
    })
    .await;
    assert_eq!(old, [TopicState::Exists { id: None, partitions: 1 }, TopicState::Unknown]);

    drop(cluster);
    let names = ["t".into()];
    monitor.topics(&names).await.expect_err("nobody is there to say that there is no id");
}

#[tokio::test]
async fn a_group_is_joined_at_once_and_read_to_its_end() {
    let cluster = cluster("t", 2, 100);
    let began = std::time::Instant::now();
    let mut member = Member::join_with(cluster.brokers(), "t", &unique("group"), 1, |_| {});
    member.assigned(2).await;
    assert!(began.elapsed() < Duration::from_millis(2_500), "by default a group waits three seconds");
    member.begin_at(0, 50).await;
    let seen = member.read_until(|seen| seen.is_end(0, 100)).await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(50..100));
    assert!(!seen.iter().any(Seen::is_broken), "{seen:?}");
    assert!(member.stop().await);
}
