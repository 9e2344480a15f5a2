//! Brokers that go away, and disks that lie.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncesink::kafka::ErrorCode;
use oncesink_test_support::kafka::{KafkaCluster, KafkaOptions, Record};
use oncesink_test_support::unique;
use rdkafka::consumer::Consumer;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::native;
use crate::member::{DEADLINE, Member, Seen, offsets};

#[tokio::test]
async fn rule_80_a_flipped_byte_is_noticed_only_with_checksums_and_offsets_behind_it_are_garbage() {
    let cluster = KafkaCluster::start(KafkaOptions::one()).await;
    let topic = cluster.topic("rule_80", 1).await;
    for n in 0..3 {
        cluster.produce(&topic, [Record::to(0).value(format!("value-{n}"))]).await;
    }
    let segment = cluster.brokers()[0].segment(&topic, 0);
    let mut bytes = fs::read(&segment).expect("reading the log");
    let place = bytes.windows(7).position(|window| window == b"value-1").expect("the record in the log");
    bytes[place] = b'V';
    fs::write(&segment, bytes).expect("writing the log");

    let mut member = Member::join(&cluster, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    let seen = member.read_until(Seen::is_broken).await;
    let first = seen.iter().find(|s| s.is_broken());
    assert!(matches!(first, Some(Seen::Broken { code: ErrorCode::BadMessage, .. })), "{first:?}");
    assert_eq!(offsets(&seen, 0), [0]);
    assert!(member.stop().await);

    // Without them it is delivered as if nothing were.
    let address = cluster.bootstrap().to_owned();
    let value = tokio::task::spawn_blocking(move || {
        let consumer = native::consumer(&address, &[("check.crcs", "false")]);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&topic, 0, Offset::Offset(1)).expect("an offset");
        consumer.assign(&list).expect("assigning");
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < DEADLINE, "nothing came");
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
                return message.payload().map(Vec::from);
            }
        }
    });
    assert_eq!(value.await.expect("reading").as_deref(), Some(&b"Value-1"[..]));
}

#[tokio::test]
async fn rule_81_a_leader_that_is_killed_costs_no_record_and_no_rebalance() {
    let cluster = KafkaCluster::start(KafkaOptions::three()).await;
    let topic = cluster.topic("rule_81", 1).await;
    let mut member = Member::join_with(cluster.bootstrap(), &topic, &unique("group"), 1, |s| {
        s.session_timeout = Duration::from_secs(30);
    });
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    cluster.produce(&topic, (0..200).map(|_| Record::to(0).value("before"))).await;
    let mut seen = member.read_until(|s| s.is_end(0, 200)).await;
    let leader = cluster.leader(&topic, 0).await;
    cluster.broker(leader).kill9();
    cluster.produce(&topic, (0..200).map(|_| Record::to(0).value("after"))).await;
    seen.extend(member.read_until(|s| s.is_end(0, 400)).await);
    assert_eq!(offsets(&seen, 0), Vec::from_iter(0..400));
    // Asserts that nothing but errors came.
    member.errors();
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_82_a_consumer_closes_while_its_broker_is_gone_or_frozen() {
    for freeze in [false, true] {
        let cluster = KafkaCluster::start(KafkaOptions::one()).await;
        let topic = cluster.topic("rule_82", 1).await;
        cluster.produce(&topic, (0..100).map(|_| Record::to(0).value("v"))).await;
        let mut member = Member::join(&cluster, &topic, &unique("group"));
        member.assigned(1).await;
        member.begin_at(0, 0).await;
        member.read_until(|s| s.is_end(0, 100)).await;
        let broker = Arc::clone(&cluster.brokers()[0]);
        if freeze {
            broker.freeze();
        } else {
            broker.kill9();
        }
        let begin = Instant::now();
        let clean = member.stop().await;
        // Seen: 5 s under the classic protocol with a frozen coordinator, milliseconds with a killed one.
        assert!(clean && begin.elapsed() < Duration::from_secs(25), "{clean} after {:?}", begin.elapsed());
        if freeze {
            broker.thaw();
        }
    }
}
