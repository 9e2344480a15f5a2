//! `migrate`, `check`, `status`, `skip`, `resume`, `reset`: what they change and what they refuse.

use super::bench::{Bench, PARTITIONS, RECORDS};

#[tokio::test]
async fn check_names_the_missing_table_and_migrate_makes_it() {
    let bench = Bench::new("check").await;
    let schema = bench.schema.name().to_owned();
    bench.run("check").await.failed(3, "no such table. Run: oncesink migrate");
    let printed = bench.run("migrate --print").await.done();
    assert!(printed.contains("CREATE TABLE") && printed.contains("COMMIT;"), "{printed}");
    bench.run("check").await.failed(3, "no such table");

    let made = bench.run("migrate").await.done();
    assert_eq!(made, format!("created {schema}.kafka_offsets (version 1)"));
    assert!(bench.run("migrate").await.done().ends_with(": nothing to do"));

    let well = bench.run("check").await.done();
    let records = RECORDS * i64::from(PARTITIONS);
    assert!(
        well.contains(&format!("topic {}: {PARTITIONS} partitions, up to {records} records", bench.topic)),
        "{well}"
    );
    assert!(well.contains("o: exactly once into "), "{well}");
    assert!(!well.contains("FIX"), "{well}");
    assert_eq!(bench.run("status").await.done(), "no offset is stored yet");
}

#[tokio::test]
async fn check_names_a_missing_target_table() {
    let bench = Bench::migrated("target").await;
    bench.schema.execute(&format!("DROP TABLE {}", bench.topic)).await;
    bench.run("check").await.failed(3, &bench.topic.clone());
    bench.run("run").await.failed(3, &bench.topic.clone());
}

#[tokio::test]
async fn status_tells_offsets_and_lag() {
    let bench = Bench::migrated("status").await;
    bench.stopped_at(1, 3).await;
    let text = bench.run("status").await.done();
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    let place = format!("{}/1", bench.topic);
    let (before, after) = row.split_at(5);
    assert_eq!(before, ["o", place.as_str(), "3", "2", "stopped"]);
    let [age, "s", "ago", "-", "a", "bad", "record"] = after else { panic!("{row:?}") };
    assert!(age.parse::<u32>().unwrap() < 120, "{age}");
    let remedy = format!("oncesink skip o {place} --expect 3 --reason");
    assert!(text.contains(&remedy), "{remedy} in {text}");
    let machine = bench.run("status --json").await.done();
    for part in ["\"stored_offset\":3", "\"lag_records\":2", "\"state\":\"stopped\"", "\"owner_epoch\":4"] {
        assert!(machine.contains(part), "{part} in {machine}");
    }
}

#[tokio::test]
async fn skip_wants_the_present_offset() {
    let bench = Bench::migrated("skip").await;
    bench.stopped_at(0, 3).await;
    bench.run("skip @/0 --expect 2 --reason no").await.failed(1, "stands at offset 3, not at 2");
    bench.run("skip @/1 --expect 2 --reason no").await.failed(1, "has no stored offset");
    bench.run("skip x @/0 --expect 3 --reason no").await.failed(1, "there is no sink \"x\"; there is o");
    bench.run("skip @ --expect 3 --reason no").await.failed(2, "name one partition");
    assert_eq!(bench.row(0).await, "3 4 stopped");
    assert!(bench.events().await.is_empty());

    let said = bench.run("skip o @/0 --expect 3 --reason known").await.done();
    assert!(said.starts_with(&format!("o: left out {}/0@3", bench.topic)), "{said}");
    assert_eq!(bench.row(0).await, "4 5 running");
    assert_eq!(bench.events().await, ["skipped 0 3 4 known"]);
    bench.run("skip @/0 --expect 3 --reason again").await.failed(1, "stands at offset 4, not at 3");
}

#[tokio::test]
async fn resume_ends_a_stop_once() {
    let bench = Bench::migrated("resume").await;
    bench.stopped_at(0, 3).await;
    bench.stopped_at(1, 2).await;
    bench.run("resume @/0").await.done();
    assert_eq!(bench.row(0).await, "3 5 running");
    bench.run("resume @/0").await.failed(1, "neither stopped nor paused");
    bench.run("resume @ --reason fixed").await.done();
    assert_eq!(bench.row(1).await, "2 5 running");
    assert_eq!(bench.row(0).await, "3 5 running");
    bench.run("resume @").await.failed(1, "is stopped");
    assert_eq!(bench.events().await, ["resumed 0 3 3 resumed", "resumed 1 2 2 fixed"]);
}

#[tokio::test]
async fn reset_moves_one_or_all_and_takes_over_the_identity() {
    let bench = Bench::migrated("reset").await;
    bench.stopped_at(0, 3).await;
    bench.stopped_at(1, 2).await;
    for (line, code, said) in [
        ("reset @/0 --to 1 --expect 2 --reason x", 1, "stands at offset 3, not at 2"),
        ("reset @/0 --to 6 --reason x", 1, "offset 6 is not there, 0 to 5 is possible"),
        ("reset @/2 --to 1 --reason x", 1, "the topic has 2 partitions"),
        ("reset nowhere/0 --to 1 --reason x", 1, "does not read topic \"nowhere\""),
        ("reset @ --expect 3 --reason x", 2, "--expect needs one partition"),
    ] {
        bench.run(line).await.failed(code, said);
    }
    assert_eq!((bench.row(0).await, bench.row(1).await), ("3 4 stopped".into(), "2 4 stopped".into()));

    bench.run("reset @/0 --to 1 --expect 3 --reason back").await.done();
    assert_eq!((bench.row(0).await, bench.row(1).await), ("1 5 running".into(), "2 4 stopped".into()));
    bench.run("reset @ --to latest --reason on").await.done();
    assert_eq!((bench.row(0).await, bench.row(1).await), ("5 6 running".into(), "5 5 running".into()));
    bench.run("reset @ --to 1970-01-01T00:16:42Z --reason time").await.done();
    assert_eq!((bench.row(0).await, bench.row(1).await), ("2 7 running".into(), "2 6 running".into()));
    bench.run("reset o @ --reason policy").await.done();
    assert_eq!(bench.row(0).await, "0 8 running");

    let identity: String = bench
        .schema
        .value("SELECT DISTINCT cluster_id || '|' || topic_id || '|' || sink FROM kafka_offsets")
        .await;
    let expected = format!(
        "{}|{}|o: {}.{}",
        bench.kafka.cluster_id().await,
        bench.kafka.topic_id(&bench.topic).await,
        bench.schema.name(),
        bench.topic
    );
    assert_eq!(identity, expected);
    assert_eq!(bench.events().await.len(), 1 + 3 * 2);
}
