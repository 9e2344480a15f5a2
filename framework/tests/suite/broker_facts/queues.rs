//! Shared queues: what forwarding and destroying them does.

use std::time::{Duration, Instant};

use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::{Servers, eventually};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::native::{Quiet, RawQueue, consumer};
use crate::member::DEADLINE;

fn at(topic: &str, offset: i64) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).expect("an offset");
    list
}

async fn topic_of(kafka: &Kafka, records: usize) -> String {
    let topic = kafka.topic("queues", 1).await;
    kafka.produce(&topic, (0..records).map(|_| Record::to(0).value("v"))).await;
    topic
}

/// Polls the consumer's own queue, on which nothing may come, and reads the other until the offset was seen.
async fn read_to(consumer: &BaseConsumer<Quiet>, queue: &RawQueue, last: i64) -> Vec<i64> {
    let (begin, mut read) = (Instant::now(), Vec::new());
    while read.last() != Some(&last) {
        assert!(begin.elapsed() < DEADLINE, "read {} up to {:?}", read.len(), read.last());
        assert!(
            !matches!(consumer.poll(Duration::ZERO), Some(Ok(_))),
            "a record on the consumer's own queue"
        );
        read.extend(std::iter::from_fn(|| queue.poll()));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    read
}

#[tokio::test]
async fn rule_89_an_unassign_loses_the_forward_and_a_new_one_heals_it() {
    let kafka = Servers::shared().await.kafka();
    let topic = topic_of(kafka, 100).await;
    let consumer = consumer(kafka.bootstrap(), &[]);
    let queue = RawQueue::new(&consumer);
    queue.forward(&consumer, &topic, 0);
    consumer.incremental_assign(&at(&topic, 0)).expect("assigning");
    assert_eq!(read_to(&consumer, &queue, 99).await, Vec::from_iter(0..100));

    consumer.incremental_unassign(&at(&topic, 0)).expect("unassigning");
    // An empty assign is done by librdkafka's own thread, after the stop that takes the forward away.
    consumer.incremental_assign(&TopicPartitionList::new()).expect("assigning nothing");
    consumer.incremental_assign(&at(&topic, 0)).expect("assigning");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(800) {
        assert!(!matches!(consumer.poll(Duration::ZERO), Some(Ok(_))), "the records show up after all");
        assert_eq!(queue.poll(), None, "the forward was kept");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    queue.forward(&consumer, &topic, 0);
    assert_eq!(read_to(&consumer, &queue, 99).await, Vec::from_iter(0..100));
    consumer.incremental_unassign(&at(&topic, 0)).expect("unassigning");
    drop(queue);
    tokio::task::spawn_blocking(move || drop(consumer)).await.expect("closing");
}

#[tokio::test]
async fn rule_90_a_queue_destroyed_under_an_assigned_partition_loses_records() {
    let kafka = Servers::shared().await.kafka();
    let topic = topic_of(kafka, 100).await;
    let consumer = consumer(kafka.bootstrap(), &[]);
    let queue = RawQueue::new(&consumer);
    queue.forward(&consumer, &topic, 0);
    consumer.incremental_assign(&at(&topic, 0)).expect("assigning");
    read_to(&consumer, &queue, 99).await;
    drop(queue);
    kafka.produce(&topic, (0..100).map(|_| Record::to(0).value("v"))).await;
    // The position moves on although nobody can read: the end of the partition reached is what statistics would show.
    tokio::time::sleep(Duration::from_millis(1500)).await;

    let queue = RawQueue::new(&consumer);
    queue.forward(&consumer, &topic, 0);
    kafka.produce(&topic, [Record::to(0).value("v")]).await;
    let read = read_to(&consumer, &queue, 200).await;
    assert_ne!(read.first(), Some(&100), "nothing was lost: destroying has become safe");
    consumer.incremental_unassign(&at(&topic, 0)).expect("unassigning");
    drop(queue);
    tokio::task::spawn_blocking(move || drop(consumer)).await.expect("closing");
}

#[tokio::test]
async fn rule_97_a_queue_that_outlives_its_consumer_makes_the_close_hang() {
    let kafka = Servers::shared().await.kafka();
    let topic = topic_of(kafka, 100).await;
    let close = |keep: bool| {
        let (topic, bootstrap) = (topic.clone(), kafka.bootstrap().to_owned());
        async move {
            let consumer = consumer(&bootstrap, &[]);
            let queue = RawQueue::new(&consumer);
            queue.forward(&consumer, &topic, 0);
            consumer.incremental_assign(&at(&topic, 0)).expect("assigning");
            read_to(&consumer, &queue, 99).await;
            consumer.incremental_unassign(&at(&topic, 0)).expect("unassigning");
            if keep {
                std::mem::forget(queue);
            } else {
                drop(queue);
            }
            // Of its own: one that hangs goes with the process.
            let closing = std::thread::spawn(move || drop(consumer));
            (closing, Instant::now())
        }
    };
    let (closing, _) = close(false).await;
    eventually(DEADLINE, || async { closing.is_finished().then_some(()) }).await;
    let (closing, begin) = close(true).await;
    while begin.elapsed() < Duration::from_secs(3) {
        assert!(
            !closing.is_finished(),
            "it closes with a queue left: the order of closing matters no longer"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
