//! A partition without a leader holds back nobody but itself.

use oncesink_test_support::Servers;
use oncesink_test_support::kafka::{Kafka, KafkaCluster, KafkaOptions};

use super::{end, stands_at};
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn the_others_are_claimed_and_flow_while_one_has_no_leader() {
    let options =
        KafkaOptions::three().set("default.replication.factor", "1").set("min.insync.replicas", "1");
    let cluster = KafkaCluster::start(options).await;
    let kafka: &'static Kafka = Box::leak(Box::new(Kafka::connect(cluster.bootstrap())));
    let mut rig = Rig::between(kafka, Servers::shared().await.postgres(), "leaderless", 3).await;
    rig.produce(10).await;
    rig.run_until_end().await;
    let more = [rig.records(1, 5), rig.records(2, 5)].concat();

    let dead = cluster.broker(rig.kafka.leader(&rig.topic, 0).await);
    let others = [rig.kafka.leader(&rig.topic, 1).await, rig.kafka.leader(&rig.topic, 2).await];
    assert!(!others.contains(&dead.id()), "each broker leads one partition");
    dead.kill9();
    let process = rig.run();
    rig.kafka.produce(&rig.topic, more).await;
    for partition in [1, 2] {
        stands_at(&rig, &rig.topic, partition, 15).await;
    }
    dead.restart().await;
    let more = rig.records(0, 5);
    rig.kafka.produce(&rig.topic, more).await;
    rig.all_once().await;
    end(process).await;
}
