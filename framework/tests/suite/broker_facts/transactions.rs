//! Control records, open transactions, and the offsets that are asked for beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use oncesink::TopicPartition;
use oncesink::kafka::{Ends, Monitor};
use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::{Servers, eventually_within, unique};

use crate::member::{DEADLINE, Member, Seen, offsets};

pub(super) fn monitor(kafka: &Kafka) -> Monitor {
    let properties = BTreeMap::from([("bootstrap.servers".to_owned(), kafka.bootstrap().to_owned())]);
    Monitor::new(&properties).expect("making a monitor")
}

fn five(partition: i32) -> impl Iterator<Item = Record> {
    (0..5).map(move |_| Record::to(partition).value("v").timestamp(1_700_000_000_000))
}

#[tokio::test]
async fn rule_78_the_end_of_a_partition_covers_the_markers_behind_its_records() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_78", 4).await;
    // Marker of a commit last; marker of an abort last; nothing but an abort; a start on a marker.
    kafka.produce_committed(&topic, five(0)).await;
    kafka.produce(&topic, five(1)).await;
    kafka.produce_aborted(&topic, five(1)).await;
    kafka.produce_aborted(&topic, five(2)).await;
    kafka.produce_committed(&topic, five(3)).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(4).await;
    for (partition, start, end, records) in
        [(0, 0, 6, 5), (1, 0, 11, 5), (2, 0, 6, 0), (2, 3, 6, 0), (3, 5, 6, 0)]
    {
        member.begin_at(partition, start).await;
        let seen = member.read_until(|s| s.is_broken() || s.is_end(partition, end)).await;
        let marks = kafka.watermarks(&topic, partition).await;
        assert!(!seen.iter().any(Seen::is_broken), "{partition} from {start}, {marks:?}: {seen:?}");
        assert_eq!(offsets(&seen, partition).len(), records, "{partition} from {start}");
        member.unassign([partition], false).await;
    }
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_78_an_open_transaction_ends_the_partition_at_the_last_stable_offset_until_it_is_aborted() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_78_open", 1).await;
    kafka.produce(&topic, five(0)).await;
    let mut open = kafka.begin(Duration::from_secs(60)).await;
    open.produce(&topic, five(0)).await;
    kafka.produce(&topic, five(0)).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    let seen = member.read_until(|s| s.is_end(0, 5)).await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(0..5));

    // Between the last stable offset and the high watermark nothing is told at all.
    member.unassign([0], false).await;
    member.begin_at(0, 7).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(member.drain().is_empty());
    open.abort().await;
    let seen = member.read_until(|s| s.is_end(0, 16)).await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(10..15));
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_79_offsets_are_asked_for_with_a_level_of_their_own() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_79", 2).await;
    kafka.produce(&topic, five(0)).await;
    let mut open = kafka.begin(Duration::from_secs(60)).await;
    let late = Record::to(0).value("v").timestamp(1_700_000_500_000);
    open.produce(&topic, [late]).await;
    let monitor = monitor(kafka);
    let places: Vec<TopicPartition> = (0..3).map(|p| TopicPartition::new(topic.as_str(), p)).collect();

    let ends = monitor.ends(&places).await.expect("an answer");
    assert!(
        matches!(
            ends[0],
            Ok(Ends { log_start: 0, high_watermark: 6, last_stable: 5, leader_epoch: Some(_) })
        ),
        "{:?}",
        ends[0]
    );
    assert!(
        matches!(ends[1], Ok(Ends { log_start: 0, high_watermark: 0, last_stable: 0, .. })),
        "{:?}",
        ends[1]
    );
    assert!(ends[2].is_err(), "a partition that is not there: {:?}", ends[2]);

    // Read committed would not see the record of the open transaction, and a start by time would skip it.
    let at = async |time: i64| monitor.at_time(&places[..2], time).await.expect("an answer");
    assert_eq!(at(1_700_000_400_000).await, [Some(5), None]);
    assert_eq!(at(0).await, [Some(0), None]);
    assert_eq!(at(1_800_000_000_000).await, [None, None]);
    monitor.at_time(&places[2..], 0).await.expect_err("a partition that is not there");

    open.commit().await;
    let ends = || async { monitor.ends(&places[..1]).await.expect("an answer")[0].clone().expect("ends") };
    eventually_within(DEADLINE, ends, |ends| ends.last_stable == 7 && ends.high_watermark == 7).await;
}
