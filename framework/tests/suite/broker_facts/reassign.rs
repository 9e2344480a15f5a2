//! The same partition, again from elsewhere: nothing old comes, nothing new is missed.

use std::time::Duration;

use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::{Servers, eventually, unique};

use crate::member::{DEADLINE, Member, offsets};

const RECORDS: i64 = 3000;

async fn full_queue(kafka: &Kafka, writers: usize, start: i64) -> Member {
    let topic = kafka.topic("reassign", 1).await;
    kafka.produce(&topic, (0..RECORDS).map(|_| Record::to(0).value("v"))).await;
    let mut member = Member::join_with(kafka.bootstrap(), &topic, &unique("group"), writers, |_| {});
    member.assigned(1).await;
    member.begin_at(0, start).await;
    fill(&member, 0, RECORDS - start).await;
    member
}

/// Waits until so many records are queued for a writer, undrained.
async fn fill(member: &Member, writer: usize, records: i64) {
    let enough = usize::try_from(records).expect("a count");
    eventually(DEADLINE, || async { (member.queues[writer].waiting() >= enough).then_some(()) }).await;
}

#[tokio::test]
async fn rule_86_stale_records_are_not_delivered_wherever_the_new_start_is() {
    let kafka = Servers::shared().await.kafka();
    for (old, new) in [(1000, 200), (1000, 1000), (200, 2500)] {
        let mut member = full_queue(kafka, 1, old).await;
        member.unassign([0], false).await;
        member.begin_at(0, new).await;
        // The old ones still count against the queue's limit, but come to nobody.
        let seen = member.read_until(|s| s.is_end(0, RECORDS)).await;
        assert_eq!(offsets(&seen, 0), Vec::from_iter(new..RECORDS), "from {old} to {new}");
        assert!(member.stop().await);
    }
}

#[tokio::test]
async fn rule_87_stale_control_records_do_not_move_the_position_of_a_kept_partition() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("rule_87", 2).await;
    for _ in 0..3 {
        kafka.produce_committed(&topic, (0..200).map(|n| Record::to(n % 2).value("v"))).await;
    }
    // Three times a hundred records and a marker.
    let (end, group) = (303, unique("group"));
    let mut first = Member::join(kafka, &topic, &group);
    first.assigned(2).await;
    let starts = vec![first.start(0, 0), first.start(1, 0)];
    first.begin(starts).await;
    fill(&first, 0, 600).await;
    // Repositioned with all of it queued, and before any of it is read a rebalance pauses and resumes what is kept.
    first.unassign([0, 1], false).await;
    let starts = vec![first.start(0, 0), first.start(1, 0)];
    first.begin(starts).await;
    let mut second = Member::join(kafka, &topic, &group);
    let revoked = first.revoked().await;
    let mut early = first.drain();
    first.answer(revoked.clone(), true).await;
    let kept = 1 - revoked[0].partition;
    if !early.iter().any(|s| s.is_end(kept, end)) {
        early.extend(first.read_until(|s| s.is_end(kept, end)).await);
    }
    let expected: Vec<i64> = (0..end).filter(|offset| offset % 101 != 100).collect();
    assert_eq!(offsets(&early, kept), expected);
    second.assigned(1).await;
    assert!(second.stop().await && first.stop().await);
}

#[tokio::test]
async fn rule_88_and_89_after_a_hand_over_every_assignment_begins_at_its_start() {
    let kafka = Servers::shared().await.kafka();
    let mut member = full_queue(kafka, 1, 0).await;
    for round in 0..40 {
        let start = (round * 977) % (RECORDS - 500);
        member.unassign([0], false).await;
        // The writer has left its drain and drops what it holds of the partition, then learns the start; only then is it assigned.
        if round % 2 == 0 {
            member.drain();
        }
        member.begin_at(0, start).await;
        let seen = member.read_until(|s| !s.is_broken()).await;
        let read = offsets(&seen, 0);
        assert_eq!(read.first(), Some(&start), "round {round}");
        assert!(read.windows(2).all(|pair| pair[1] == pair[0] + 1), "round {round}");
    }
    assert!(member.errors().is_empty(), "something came outside of the writers' queues");
    assert!(member.stop().await);
}

#[tokio::test]
async fn rule_91_a_partition_changes_writers_by_being_assigned_again() {
    let kafka = Servers::shared().await.kafka();
    let mut member = full_queue(kafka, 2, 0).await;
    member.unassign([0], false).await;
    let mut start = member.start(0, 50);
    start.writer = 1;
    member.begin(vec![start]).await;
    let mut seen = Vec::new();
    eventually(DEADLINE, || {
        assert!(offsets(&member.drain_writer(0), 0).is_empty(), "the old writer got records");
        seen.extend(member.drain_writer(1));
        let done = seen.iter().any(|s| s.is_end(0, RECORDS));
        async move { done.then_some(()) }
    })
    .await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(50..RECORDS));
    assert!(member.drain_writer(0).is_empty());
    assert!(member.handle.last_tick() < Duration::from_secs(5));
    assert!(member.stop().await);
}
