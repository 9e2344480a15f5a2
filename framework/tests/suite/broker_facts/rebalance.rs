//! What the group wants, and what it takes for an answer.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oncesink::kafka::Event;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::{Servers, unique};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, TopicPartitionList};

use crate::member::{Member, Seen, offsets};

/// Assigns nothing, and answers a revoke with the list as it came; when that is refused, with nothing.
#[derive(Default)]
struct Literal {
    assigned: AtomicBool,
    answers: Mutex<Vec<Result<(), String>>>,
}

impl ClientContext for Literal {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}
}

impl ConsumerContext for Literal {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let nothing = TopicPartitionList::new();
        if code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            consumer.incremental_assign(&nothing).expect("assigning nothing");
            self.assigned.fetch_or(list.count() > 0, Ordering::Relaxed);
            return;
        }
        let answer = consumer.incremental_unassign(list).map_err(|error| error.to_string());
        if answer.is_err() {
            consumer.incremental_unassign(&nothing).expect("unassigning nothing");
        }
        self.answers.lock().expect("the lock").push(answer);
    }
}

#[tokio::test]
async fn rule_71_revoke_list_names_unassigned_partitions_and_is_refused_whole() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_71", 2).await;
    let group = unique("group");
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", &group)
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("session.timeout.ms", "2000")
        .set("heartbeat.interval.ms", "500");
    let first: BaseConsumer<Literal> =
        config.create_with_context(Literal::default()).expect("making a consumer");
    first.subscribe(&[&topic]).expect("subscribing");
    let (first, second) = tokio::task::spawn_blocking(move || {
        while !first.context().assigned.load(Ordering::Relaxed) {
            first.poll(Duration::from_millis(20));
        }
        first
    })
    .await
    .map(|first| (first, Member::join(kafka, &topic, &group)))
    .expect("joining");

    let done = std::sync::Arc::new(AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&done);
    let polling = tokio::task::spawn_blocking(move || {
        while !seen.load(Ordering::Relaxed) {
            first.poll(Duration::from_millis(20));
        }
        std::mem::take(&mut *first.context().answers.lock().expect("the lock"))
    });
    let mut second = second;
    // The empty answer repaired it: the group goes on.
    second.assigned(1).await;
    done.store(true, Ordering::Relaxed);
    let answers = polling.await.expect("polling");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].as_ref().is_err_and(|error| error.contains("INVALID_ARG")), "{answers:?}");
    assert!(second.stop().await);
}

#[tokio::test]
async fn rule_72_and_74_growth_is_one_assignment_under_which_nothing_stalls() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_72", 2).await;
    let mut member = Member::join_with(kafka.bootstrap(), &topic, &unique("group"), 1, |s| {
        s.properties.insert("topic.metadata.refresh.interval.ms".into(), "500".into());
    });
    member.assigned(2).await;
    let starts = vec![member.start(0, 0), member.start(1, 0)];
    member.begin(starts).await;
    member.read_until(|s| s.is_end(0, 0)).await;
    kafka.grow(&topic, 4).await;
    kafka.produce(&topic, (0..20).map(|n| Record::to(2 + n % 2).value("early"))).await;

    // One record after the other in partition 0, each waited for, until the new partitions came and some more.
    let (mut slowest, mut grown, mut offset) = (Duration::ZERO, None, 0);
    while grown.is_none_or(|at| offset < at + 20) {
        let begin = Instant::now();
        kafka.produce(&topic, [Record::to(0).value("v")]).await;
        member
            .read_until(|s| matches!(s, Seen::Record { partition: 0, offset: o, .. } if *o == offset))
            .await;
        slowest = slowest.max(begin.elapsed());
        offset += 1;
        assert!(offset < 5000, "the new partitions never came");
        if grown.is_none()
            && let Some(event) = member.ready()
        {
            match event {
                Event::Assigned { places, .. } => {
                    assert_eq!(BTreeSet::from_iter(places), BTreeSet::from_iter(member.places([2, 3])));
                    grown = Some(offset);
                }
                Event::Error { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    // Resumed without a request to wake the broker's thread, it stands still for up to a second.
    assert!(slowest < Duration::from_millis(700), "stood still for {slowest:?}");
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_72_partitions_started_long_after_their_assignment_miss_nothing() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_72_late", 2).await;
    let group = unique("group");
    let mut first = Member::join(kafka, &topic, &group);
    first.assigned(2).await;
    kafka.produce(&topic, (0..20).map(|n| Record::to(n % 2).value("v"))).await;
    // Nobody waits for the first: the second gets its share while nothing was started at all.
    let mut second = Member::join(kafka, &topic, &group);
    let revoked = first.revoked().await;
    first.answer(revoked.clone(), true).await;
    second.assigned(1).await;
    let kept = 1 - revoked[0].partition;
    first.begin_at(kept, 0).await;
    second.begin_at(revoked[0].partition, 0).await;
    for (member, partition) in [(&mut first, kept), (&mut second, revoked[0].partition)] {
        let seen = member.read_until(|s| s.is_end(partition, 10)).await;
        assert_eq!(offsets(&seen, partition), Vec::from_iter(0..10));
    }
    assert!(second.stop().await && first.stop().await);
}

#[tokio::test]
async fn rule_70_a_kept_partition_flows_on_as_soon_as_a_late_revoke_is_answered() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_70", 2).await;
    let group = unique("group");
    let mut first = Member::join(kafka, &topic, &group);
    first.assigned(2).await;
    let starts = vec![first.start(0, 0), first.start(1, 0)];
    first.begin(starts).await;
    first.read_until(|s| s.is_end(0, 0)).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..4 {
        let mut second = Member::join(kafka, &topic, &group);
        let revoked = first.revoked().await;
        let (gone, kept) = (revoked[0].partition, 1 - revoked[0].partition);
        // Longer than a fetch is held open: none is in flight, and the broker's thread sleeps.
        tokio::time::sleep(Duration::from_millis(900)).await;
        let offset = kafka.produce(&topic, [Record::to(kept).value("v")]).await[0];
        assert!(offsets(&first.drain(), kept).is_empty(), "a kept partition does not stand still");
        let begin = Instant::now();
        first.answer(revoked, true).await;
        first.read_until(|s| matches!(s, Seen::Record { partition, offset: o, .. } if (*partition, *o) == (kept, offset))).await;
        slowest = slowest.max(begin.elapsed());
        second.assigned(1).await;
        assert!(second.stop().await);
        first.assigned(1).await;
        let end = kafka.high_watermark(&topic, gone).await;
        first.begin_at(gone, end).await;
    }
    // Without a request that wakes the broker's thread it takes up to a second, half of one in the mean.
    assert!(slowest < Duration::from_millis(250), "stood still for {slowest:?} after the answer");
    assert!(first.stop().await);
}
