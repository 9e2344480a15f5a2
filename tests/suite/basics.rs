//! The main job on real input: every record of several partitions is in the table once.

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn records_of_several_partitions_arrive_once() {
    let mut rig = Rig::new("basics", 3).await;
    rig.produce(5_000).await;
    rig.run_until_end().await;
    rig.each_once().await;
    for partition in 0..3 {
        assert_eq!(rig.stored(partition).await, 5_000);
    }
}
