//! A topic that is not there yet is no mistake: it is told, and waited for.

use oncesink_test_support::kafka::Record;

use crate::rig::{PATIENCE, Rig, row};

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_there_is_a_warning_and_is_read_when_it_comes() {
    let rig = Rig::new("later", 1).await;
    rig.kafka.delete_topic(&rig.topic).await;
    let (code, lines) = rig.command(&["check"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    let says = format!("topic {}: does not exist yet, it will be read from its beginning", rig.topic);
    assert!(lines.iter().any(|line| line.text.contains(&says)), "{lines:?}");

    let process = rig.run();
    let warned =
        process.wait_for_line(|line| line.text.contains("does not exist; it is waited for"), PATIENCE).await;
    assert!(warned.text.contains("\"level\":\"WARN\"") && warned.text.contains(&rig.topic), "{warned:?}");
    rig.kafka.create_topic(&rig.topic, 1, &[]).await;
    rig.kafka.produce(&rig.topic, [Record::to(0).value(row(0, 0))]).await;
    rig.rows_reach(1).await;
    // Positive control for the rows that say that no group was made: this one is seen.
    assert!(rig.kafka.has_group(&rig.topic).await);
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}
