//! Joining, sharing out and giving back.

use std::time::{Duration, Instant};

use oncesink::kafka::{Command, Event, GroupProtocol};
use oncesink_test_support::kafka::Record;
use oncesink_test_support::{Servers, unique};

use crate::member::{Member, offsets};

async fn share_out_and_give_back(protocol: GroupProtocol) {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("share", 4).await;
    kafka.produce(&topic, (0..40).map(|n| Record::to(n % 4).value("v"))).await;
    let group = unique("group");
    let join = || Member::join_with(kafka.bootstrap(), &topic, &group, 1, |s| s.protocol = protocol);
    let mut first = join();
    assert_eq!(first.assigned(4).await, first.places(0..4));
    // Two of four: the revoke will name partitions that were never started.
    let starts = vec![first.start(0, 0), first.start(2, 0)];
    first.begin(starts).await;

    let mut second = join();
    let revoked = first.revoked().await;
    assert_eq!(revoked.len(), 2, "{revoked:?}");
    first.answer(revoked.clone(), true).await;
    let mut given = second.assigned(2).await;
    given.sort();
    let mut expected = revoked.clone();
    expected.sort();
    assert_eq!(given, expected);
    for place in &given {
        second.begin_at(place.partition, 3).await;
        let seen = second.read_until(|s| s.is_end(place.partition, 10)).await;
        assert_eq!(offsets(&seen, place.partition), Vec::from_iter(3..10));
    }
    assert!(second.stop().await);
    first.assigned(2).await;
    for place in &given {
        first.begin_at(place.partition, 9).await;
        let seen = first.read_until(|s| s.is_end(place.partition, 10)).await;
        assert_eq!(offsets(&seen, place.partition).last(), Some(&9));
    }
    assert!(first.stop().await);
}

#[tokio::test]
async fn partitions_are_shared_out_and_given_back() {
    share_out_and_give_back(GroupProtocol::Cooperative).await;
}

#[tokio::test]
async fn partitions_are_shared_out_and_given_back_under_kip_848() {
    share_out_and_give_back(GroupProtocol::Consumer).await;
}

#[tokio::test]
async fn a_start_is_held_back_while_a_revoke_waits_and_refused_for_what_was_revoked() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("held", 2).await;
    kafka.produce(&topic, (0..20).map(|n| Record::to(n % 2).value("v"))).await;
    let group = unique("group");
    let mut first = Member::join(kafka, &topic, &group);
    first.assigned(2).await;
    let mut second = Member::join(kafka, &topic, &group);
    let revoked = first.revoked().await;
    let (gone, kept) = (revoked[0].partition, 1 - revoked[0].partition);
    let (gone_start, kept_start) = (first.start(gone, 0), first.start(kept, 0));
    let (gone_claim, kept_claim) = (gone_start.claim, kept_start.claim);
    first.handle.send(Command::Assign(vec![gone_start, kept_start]));
    first.handle.send(Command::Unassign { places: revoked.clone(), revoke: true });

    assert_eq!(first.next().await, Event::Unassigned { places: revoked });
    match first.next().await {
        Event::Refused { place, claim, .. } => assert_eq!((place.partition, claim), (gone, gone_claim)),
        other => panic!("{other:?}"),
    }
    assert_eq!(first.next().await, Event::Positioned { place: first.place(kept), claim: kept_claim });
    let seen = first.read_until(|s| s.is_end(kept, 10)).await;
    assert_eq!(offsets(&seen, kept), Vec::from_iter(0..10));
    second.assigned(1).await;
    assert!(second.stop().await && first.stop().await);
}

#[tokio::test]
async fn a_revoke_that_nobody_answers_is_answered_by_the_thread() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("silent", 2).await;
    let group = unique("group");
    let patience = Duration::from_millis(400);
    let mut first = Member::join_with(kafka.bootstrap(), &topic, &group, 1, |s| s.revoke_deadline = patience);
    first.assigned(2).await;
    let mut second = Member::join(kafka, &topic, &group);
    let revoked = first.revoked().await;
    let begin = Instant::now();
    assert_eq!(first.next().await, Event::Lost(revoked.clone()));
    assert!(begin.elapsed() >= patience / 2, "not at once: {:?}", begin.elapsed());
    assert_eq!(second.assigned(1).await, revoked);
    // The late answer changes nothing.
    first.answer(revoked, true).await;
    assert!(second.stop().await && first.stop().await);
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_and_the_rest_goes_on() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("refused", 3).await;
    kafka.produce(&topic, (0..30).map(|n| Record::to(n % 3).value("v"))).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(3).await;
    member.begin_at(0, 0).await;
    let (again, negative, mut nowhere) = (member.start(0, 5), member.start(1, -1), member.start(1, 0));
    nowhere.writer = 7;
    let good = member.start(2, 8);
    let (good_claim, good_place) = (good.claim, good.place.clone());
    let bad = [again.claim, negative.claim, nowhere.claim];
    member.handle.send(Command::Assign(vec![again, negative, nowhere, good]));
    for expected in bad {
        match member.next().await {
            Event::Refused { claim, .. } => assert_eq!(claim, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(member.next().await, Event::Positioned { place: good_place, claim: good_claim });
    let seen = member.read_until(|s| s.is_end(2, 10)).await;
    assert_eq!(offsets(&seen, 2), [8, 9]);
    assert!(offsets(&seen, 1).is_empty());
    assert!(member.stop().await);
}

#[tokio::test]
async fn commands_are_carried_out_within_milliseconds_and_without_spinning() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("latency", 1).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    let mut taken = Vec::new();
    for _ in 0..30 {
        let begin = Instant::now();
        member.begin_at(0, 0).await;
        member.unassign([0], false).await;
        taken.push(begin.elapsed());
    }
    taken.sort();
    // Seen: 2 to 4 ms for both; a thread that did not wake would take its turn of 100 ms.
    assert!(taken[15] < Duration::from_millis(50), "median of an assign and an unassign: {:?}", taken[15]);
    assert!(member.handle.last_tick() < Duration::from_secs(5));
    assert!(member.stop().await);
}
