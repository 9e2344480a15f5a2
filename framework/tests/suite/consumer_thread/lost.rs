//! Membership lost, and clients that die.

use std::time::Duration;

use oncesink::kafka::{Event, FatalKind, GroupProtocol};
use oncesink_test_support::kafka::Record;
use oncesink_test_support::{Servers, unique};
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use crate::member::{Member, offsets};

#[tokio::test]
async fn a_lost_assignment_is_gone_at_once_and_a_start_from_before_is_refused() {
    // Only librdkafka's own mock forgets a member on demand.
    let cluster = MockCluster::new(1).expect("a mock cluster");
    let topic = unique("lost");
    cluster.create_topic(&topic, 1, 1).expect("a topic");
    let mut member = Member::join_with(&cluster.bootstrap_servers(), &topic, &unique("group"), 1, |s| {
        s.session_timeout = Duration::from_secs(3);
    });
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    let stale = member.start(0, 0);
    let unknown = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID];
    cluster.request_errors(RDKafkaApiKey::Heartbeat, &unknown);
    assert_eq!(member.next().await, Event::Lost(member.places([0])));
    member.assigned(1).await;

    let claim = stale.claim;
    member.handle.send(oncesink::kafka::Command::Assign(vec![stale]));
    match member.next().await {
        Event::Refused { claim: refused, .. } => assert_eq!(refused, claim),
        other => panic!("{other:?}"),
    }
    member.begin_at(0, 0).await;
    assert!(member.stop().await);
}

/// Two clients with one name: which of them dies depends on the protocol.
async fn twins(protocol: GroupProtocol) -> (Member, Member) {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("twins", 1).await;
    kafka.produce(&topic, (0..10).map(|_| Record::to(0).value("v"))).await;
    let group = unique("group");
    let join = || {
        Member::join_with(kafka.bootstrap(), &topic, &group, 1, |s| {
            s.protocol = protocol;
            s.instance_id = Some("twin".into());
        })
    };
    let mut first = join();
    first.assigned(1).await;
    first.begin_at(0, 0).await;
    (first, join())
}

#[tokio::test]
async fn the_older_of_two_with_one_name_dies_under_the_classic_protocol() {
    let (mut first, mut second) = twins(GroupProtocol::Cooperative).await;
    second.assigned(1).await;
    match first.next().await {
        Event::Fatal { kind, .. } => assert_eq!(kind, FatalKind::FencedInstanceId),
        other => panic!("{other:?}"),
    }
    second.begin_at(0, 0).await;
    let seen = second.read_until(|s| s.is_end(0, 10)).await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(0..10));
    assert!(first.stop().await && second.stop().await);
}

#[tokio::test]
async fn the_newer_of_two_with_one_name_dies_under_kip_848() {
    let (mut first, mut second) = twins(GroupProtocol::Consumer).await;
    match second.next().await {
        Event::Fatal { kind, .. } => assert_eq!(kind, FatalKind::UnreleasedInstanceId),
        other => panic!("{other:?}"),
    }
    let seen = first.read_until(|s| s.is_end(0, 10)).await;
    assert_eq!(offsets(&seen, 0), Vec::from_iter(0..10));
    assert!(first.stop().await && second.stop().await);
}
