//! A restore or a failover that lost the last commits: rows and offsets went back together, and what is missing is read again.

use super::{end, events, metric, rows_reach, stands_at};
use crate::rig::Rig;

/// What a restore leaves behind: the rows and the offset of an earlier moment, and with `older` also the fence of an earlier owner.
async fn restore(rig: &Rig, offset: i64, older: bool) {
    let fence = if older { ", owner_epoch = owner_epoch - 1, owner_token = gen_random_uuid()" } else { "" };
    rig.schema
        .execute_unguarded(&format!(
            "UPDATE kafka_offsets SET last_offset = {offset}{fence} WHERE partition_id = 0;
             DELETE FROM \"{}\" WHERE partition_id = 0 AND seq >= {offset}",
            rig.topic
        ))
        .await;
}

async fn is_noticed(stem: &str, older: bool) {
    let mut rig = Rig::new(stem, 2).await;
    rig.produce(100).await;
    let process = rig.run();
    rig.all_once().await;
    restore(&rig, 60, older).await;
    assert_eq!(rig.schema.count(&rig.topic).await, 160, "the restore has taken rows away");
    // Nothing is produced: the owner notices by itself.
    rig.all_once().await;
    stands_at(&rig, &rig.topic, 0, 100).await;
    oncesink_test_support::eventually_within(
        crate::rig::PATIENCE,
        || events(&rig),
        |events| *events == ["rewound T/0 100->60"],
    )
    .await;
    assert_eq!(metric(&process, &["oncesink_rewound_total{", &rig.topic]).await, Some(1.0));
    rig.produce(10).await;
    rig.all_once().await;
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_with_the_fence_of_an_earlier_owner_is_noticed_by_an_idle_owner() {
    is_noticed("restored", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_commits_under_the_same_fence_are_noticed_by_an_idle_owner() {
    is_noticed("lost_commits", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_owner_reads_again_what_a_restore_took() {
    let mut rig = Rig::new("busy_restore", 1).await;
    rig.sink_lines = "batch = { rows = 100 }".to_owned();
    let process = rig.run();
    stands_at(&rig, &rig.topic, 0, 0).await;
    let records = rig.records(0, 20_000);
    let (bootstrap, topic) = (rig.kafka.bootstrap().to_owned(), rig.topic.clone());
    let producing = tokio::spawn(async move {
        let kafka = oncesink_test_support::kafka::Kafka::connect(&bootstrap);
        for some in records.chunks(500) {
            kafka.produce(&topic, some.to_vec()).await;
        }
    });
    rows_reach(&rig, &rig.topic, 2_000).await;
    restore(&rig, 700, false).await;
    assert!(rig.stored(0).await < 20_000, "the restore came while the owner was busy");
    producing.await.expect("producing");
    stands_at(&rig, &rig.topic, 0, 20_000).await;
    rig.all_once().await;
    let rewound: i64 = rig
        .schema
        .value("SELECT count(*) FROM oncesink_events WHERE kind = 'rewound' AND new_offset = 700")
        .await;
    assert_eq!(rewound, 1);
    end(process).await;
}
