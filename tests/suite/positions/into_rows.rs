//! A first claim into a table that has rows needs a word: after a group was renamed it would write everything twice.

use super::{command_with, numbered, with_topic};
use crate::rig::{PATIENCE, Rig};

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_group_is_refused_until_the_file_says_accept() {
    let mut rig = Rig::new("renamed", 1).await;
    rig.produce(10).await;
    rig.run_until_end().await;

    let group = format!("group = \"{}\"", rig.topic);
    let renamed = rig.config().replace(&group, &format!("group = \"{}_new\"", rig.topic));
    let (code, lines) = command_with(&renamed, &["run", "--until-end"]).run(PATIENCE).await;
    let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    // The log is in JSON.
    let text = text.join("\n").replace("\\\"", "\"");
    assert_eq!(code, 3, "{text}");
    let table = format!("{}.{}", rig.schema.name(), rig.topic);
    for part in [&*table, "sinks.ledger.into_rows = \"accept\"", &format!("{}_new", rig.topic)] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (code, lines) = command_with(&renamed, &["check"]).run(PATIENCE).await;
    assert_eq!(code, 3, "check agrees with run: {lines:#?}");
    assert!(
        lines.iter().any(|line| line.text.contains("FIX") && line.text.contains("holds rows already")),
        "{lines:#?}"
    );
    assert_eq!(rig.schema.count(&rig.topic).await, 10);
    let rows: i64 = rig.schema.count("kafka_offsets").await;
    assert_eq!(rows, 1, "nothing of the new group is recorded");

    // At the end nothing is written twice, and with the word the person decides.
    let latest = renamed.replace("[sinks.ledger]", "[sinks.ledger]\nstart = \"latest\"");
    let other = latest.replace("_new\"", "_end\"");
    assert_eq!(command_with(&other, &["run", "--until-end"]).run(PATIENCE).await.0, 0);
    assert_eq!(rig.schema.count(&rig.topic).await, 10);
    let accepted = renamed.replace("[sinks.ledger]", "[sinks.ledger]\ninto_rows = \"accept\"");
    assert_eq!(command_with(&accepted, &["run", "--until-end"]).run(PATIENCE).await.0, 0);
    assert_eq!(rig.schema.count(&rig.topic).await, 20);
    // From now on the group has its offsets, and the word is not asked for again.
    assert_eq!(command_with(&renamed, &["run", "--until-end"]).run(PATIENCE).await.0, 0);
    assert_eq!(rig.schema.count(&rig.topic).await, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_topic_may_join_a_table_that_this_group_fills() {
    let mut rig = Rig::new("shared_table", 1).await;
    rig.produce(10).await;
    let table = format!("table = {{ table = \"{}\" }}", rig.topic);
    rig.sink_lines = table;
    rig.run_until_end().await;
    let joined = rig.kafka.topic("joined", 1).await;
    rig.kafka.produce(&joined, numbered(0, 100..105)).await;
    let (code, lines) = command_with(&with_topic(&rig, &joined), &["run", "--until-end"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:#?}");
    assert_eq!(rig.schema.count(&rig.topic).await, 15);
}
