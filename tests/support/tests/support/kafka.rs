//! Clusters, topics, records, transactions; a broker that is killed, frozen, stopped and started again.

use std::time::Duration;

use oncesink_test_support::kafka::{KafkaCluster, KafkaOptions, Record};
use oncesink_test_support::{Servers, eventually};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Message, Offset, TopicPartitionList};

const DEADLINE: Duration = Duration::from_secs(60);

/// Reads `count` records of partition 0 from its start, without a group.
async fn read(bootstrap: &str, topic: &str, count: usize) -> Vec<Option<Vec<u8>>> {
    let (bootstrap, topic) = (bootstrap.to_owned(), topic.to_owned());
    tokio::task::spawn_blocking(move || {
        let mut config = rdkafka::ClientConfig::new();
        config.set("bootstrap.servers", bootstrap).set("group.id", "unused").set("log_level", "0");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&topic, 0, Offset::Beginning).unwrap();
        consumer.assign(&list).unwrap();
        let begin = std::time::Instant::now();
        let mut values = Vec::new();
        while values.len() < count {
            assert!(begin.elapsed() < DEADLINE, "{} of {count} records", values.len());
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
                values.push(message.payload().map(Into::into));
            }
        }
        values
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn offsets_come_in_the_order_of_the_records() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("orders", 2).await;
    let records =
        (0..2_000).map(|i| Record::to(i % 2).key(format!("{i}")).value(vec![b'x'; 300]).timestamp(1_000));
    let offsets = kafka.produce(&topic, records).await;
    assert_eq!(offsets, (0..2_000).map(|i| i / 2).collect::<Vec<i64>>());
    assert_eq!(kafka.high_watermark(&topic, 1).await, 1_000);
}

#[tokio::test]
async fn a_record_without_a_value_stays_without_one() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("tombstones", 1).await;
    kafka.produce(&topic, [Record::to(0).key("k"), Record::to(0).value("")]).await;
    assert_eq!(read(kafka.bootstrap(), &topic, 2).await, [None, Some(Vec::new())]);
}

#[tokio::test]
async fn watermarks_tell_an_open_transaction() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("transactions", 1).await;
    assert_eq!(kafka.produce_committed(&topic, [Record::to(0).value("a")]).await, [0]);
    assert_eq!(kafka.produce_aborted(&topic, [Record::to(0).value("b")]).await, [2]);
    let mut open = kafka.begin(DEADLINE).await;
    assert_eq!(open.produce(&topic, [Record::to(0).value("c")]).await, [4]);
    let ends = kafka.watermarks(&topic, 0).await;
    assert_eq!((ends.start, ends.high, ends.last_stable), (0, 5, 4));
    open.abort().await;
    let ends = kafka.watermarks(&topic, 0).await;
    assert_eq!((ends.high, ends.last_stable), (6, 6));
}

#[tokio::test]
async fn a_transaction_left_open_hangs() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("hanging", 1).await;
    let mut open = kafka.begin(DEADLINE).await;
    open.produce(&topic, [Record::to(0).value("a")]).await;
    open.hang();
    kafka.produce(&topic, [Record::to(0).value("b")]).await;
    let ends = kafka.watermarks(&topic, 0).await;
    assert_eq!((ends.high, ends.last_stable), (2, 0));
}

#[tokio::test]
async fn a_topic_grows_shrinks_and_gets_a_new_id() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("life", 1).await;
    kafka.grow(&topic, 3).await;
    kafka.produce(&topic, (0..10).map(|_| Record::to(2).value("x"))).await;
    kafka.delete_records(&topic, 2, 4).await;
    let ends = kafka.watermarks(&topic, 2).await;
    assert_eq!((ends.start, ends.high), (4, 10));
    let before = kafka.topic_id(&topic).await;
    kafka.delete_topic(&topic).await;
    kafka.create_topic(&topic, 1, &[("retention.ms", "600000")]).await;
    assert_ne!(kafka.topic_id(&topic).await, before);
    assert!(!kafka.cluster_id().await.is_empty());
}

#[tokio::test]
async fn a_killed_broker_comes_back_with_its_records() {
    let cluster = KafkaCluster::start(KafkaOptions::one().set("num.partitions", "2")).await;
    let topic = cluster.topic("restart", 1).await;
    cluster.produce(&topic, (0..100).map(|i| Record::to(0).value(format!("{i}")))).await;
    let broker = cluster.broker(1);
    let pid = broker.pid();
    broker.kill9();
    assert!(!broker.is_running());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    broker.restart().await;
    assert_ne!(broker.pid(), pid);
    assert_eq!(cluster.high_watermark(&topic, 0).await, 100);
    broker.stop().await;
    broker.restart().await;
    assert_eq!(cluster.produce(&topic, [Record::to(0).value("next")]).await, [100]);
    assert!(std::fs::metadata(broker.segment(&topic, 0)).unwrap().len() > 0);
}

#[tokio::test]
async fn a_flipped_byte_reaches_consumers() {
    let cluster = KafkaCluster::start(KafkaOptions::one()).await;
    let topic = cluster.topic("flipped", 1).await;
    cluster.produce(&topic, [Record::to(0).value("0123456789")]).await;
    cluster.broker(1).flip_byte(&topic, 0, 1);
    // Without a check of the checksum, which is librdkafka's default, the damage is delivered.
    let damaged = read(cluster.bootstrap(), &topic, 1).await;
    assert_eq!(damaged, [Some([b"012345678".as_slice(), &[!b'9']].concat())]);
}

#[tokio::test]
async fn three_brokers_outlive_the_loss_of_one() {
    let cluster = KafkaCluster::start(KafkaOptions::three()).await;
    let topic = cluster.topic("replicated", 3).await;
    cluster.produce(&topic, (0..30).map(|i| Record::to(i % 3).value("x"))).await;
    let leader = cluster.leader(&topic, 0).await;
    cluster.broker(leader).kill9();
    let next = eventually(DEADLINE, || async {
        let now = cluster.leader(&topic, 0).await;
        (now != leader).then_some(now)
    })
    .await;
    assert_eq!(cluster.produce(&topic, [Record::to(0).value("y")]).await, [10]);
    cluster.broker(next).freeze();
    cluster.broker(next).thaw();
    cluster.broker(leader).restart().await;
    assert_eq!(cluster.brokers().iter().filter(|broker| broker.is_running()).count(), 3);
}
