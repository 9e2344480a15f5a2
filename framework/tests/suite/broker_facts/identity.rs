//! A topic that is another one under the same name, and a log that was cut.

use std::sync::Arc;
use std::time::Duration;

use oncesink::kafka::TopicState;
use oncesink_test_support::kafka::{KafkaCluster, KafkaOptions, Record};
use oncesink_test_support::{Servers, eventually, unique};

use super::transactions::monitor;
use crate::member::{DEADLINE, Member, Seen, offsets};

fn records(count: usize) -> impl Iterator<Item = Record> {
    (0..count).map(|_| Record::to(0).value("v"))
}

#[tokio::test]
async fn rule_76_a_recreated_topic_that_has_grown_past_the_position_is_read_on_without_an_event() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_76", 1).await;
    kafka.produce(&topic, records(100)).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    member.read_until(|s| s.is_end(0, 100)).await;
    // Not fetched meanwhile, or it would be a matter of chance whether the new log is noticed while it is still shorter.
    member.unassign([0], false).await;
    kafka.delete_topic(&topic).await;
    kafka.create_topic(&topic, 1, &[]).await;
    kafka.produce(&topic, records(200)).await;
    member.begin_at(0, 100).await;
    let seen = member.read_until(|s| s.is_broken() || s.is_end(0, 200)).await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(100..200), "the first hundred of the new topic are skipped");
    assert!(!seen.iter().any(Seen::is_broken), "{seen:?}");
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_76_a_recreated_topic_that_is_shorter_breaks_the_partition() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_76_short", 1).await;
    kafka.produce(&topic, records(100)).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    member.read_until(|s| s.is_end(0, 100)).await;
    kafka.delete_topic(&topic).await;
    kafka.create_topic(&topic, 1, &[]).await;
    kafka.produce(&topic, records(50)).await;
    let seen = member.read_until(Seen::is_broken).await;
    let broken = seen.iter().find(|s| s.is_broken());
    assert!(matches!(broken, Some(Seen::Broken { out_of_range: true, truncated: false, .. })), "{broken:?}");
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_77_a_topic_made_again_has_another_id_and_a_missing_one_is_told_apart() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_77", 3).await;
    let monitor = monitor(kafka);
    let names: [Arc<str>; 2] = [topic.as_str().into(), unique("missing").into()];
    let facts = monitor.topics(&names).await.expect("an answer");
    assert_eq!((&facts[0].name, &facts[1].name), (&names[0], &names[1]));
    assert_eq!(facts[0].state, TopicState::Exists { id: Some(kafka.topic_id(&topic).await), partitions: 3 });
    assert_eq!(facts[1].state, TopicState::Unknown);

    kafka.delete_topic(&topic).await;
    kafka.create_topic(&topic, 3, &[]).await;
    let again = eventually(DEADLINE, || async {
        let facts = monitor.topics(&names[..1]).await.expect("an answer");
        matches!(facts[0].state, TopicState::Exists { .. }).then_some(facts)
    })
    .await;
    assert_ne!(again[0].state, facts[0].state);
    assert_eq!(monitor.cluster_id().await.expect("an answer"), kafka.cluster_id().await);
}

#[tokio::test]
async fn rule_77_only_a_start_with_its_leader_epoch_notices_a_log_that_was_cut_and_grew_again() {
    let cluster = KafkaCluster::start(KafkaOptions::one()).await;
    let topic = cluster.topic("rule_77_cut", 1).await;
    cluster.produce(&topic, records(100)).await;
    // Each restart elects a leader with a new epoch. A position of 120 with the epoch of before can only stem from records that are no more.
    let broker = Arc::clone(&cluster.brokers()[0]);
    broker.stop().await;
    broker.restart().await;
    cluster.produce(&topic, records(50)).await;
    let mut member = Member::join(&cluster, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    let seen = member.read_until(|s| s.is_end(0, 150)).await;
    let epoch_at = |wanted: i64| {
        seen.iter().find_map(|s| match s {
            Seen::Record { offset, epoch, .. } if *offset == wanted => *epoch,
            _ => None,
        })
    };
    let (old, new) = (epoch_at(99).expect("an epoch"), epoch_at(149).expect("an epoch"));
    assert!(new > old, "{new} after {old}");

    for (offset, epoch, cut) in
        [(120, None, false), (120, Some(old), true), (100, Some(old), false), (120, Some(new), false)]
    {
        member.unassign([0], false).await;
        member.drain();
        let mut start = member.start(0, offset);
        start.leader_epoch = epoch;
        member.begin(vec![start]).await;
        let seen = member.read_until(|s| s.is_broken() || s.is_end(0, 150)).await;
        let alarm = seen.iter().find(|s| s.is_broken());
        assert_eq!(alarm.is_some(), cut, "from {offset} with {epoch:?}: {alarm:?}");
        match alarm {
            Some(Seen::Broken { truncated, .. }) => assert!(truncated, "{alarm:?}"),
            _ => assert_eq!(offsets(&seen, 0), Vec::from_iter(offset..150)),
        }
    }
    assert!(tokio::time::timeout(Duration::from_secs(60), member.stop()).await.expect("stopping"));
}
