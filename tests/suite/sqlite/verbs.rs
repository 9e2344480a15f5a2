//! `migrate`, `check`, `status`, `skip`, `resume`, `reset` on a file.

use oncesink_test_support::kafka::Record;

use super::rig::{Rig, says};
use crate::rig::row;

#[tokio::test(flavor = "multi_thread")]
async fn check_names_what_is_missing_and_migrate_makes_it_on_sqlite() {
    let mut rig = Rig::bare("check", 2).await;
    rig.verb("check").await.failed(3, "Run: oncesink migrate");
    let printed = rig.verb("migrate --print").await.done();
    assert!(printed.contains("CREATE TABLE") && printed.contains("COMMIT"), "{printed}");
    rig.verb("migrate").await.done();
    assert!(rig.verb("migrate").await.done().contains("nothing to do"));
    rig.produce(5).await;
    let well = rig.verb("check").await.done();
    assert!(well.contains(&format!("{0} -> {0}", rig.topic)), "{well}");
    assert!(well.contains("ledger: exactly once into "), "{well}");
    rig.file.execute(&format!("DROP TABLE \"{}\"", rig.topic)).await;
    rig.verb("check").await.failed(3, &format!("no table {}", rig.topic));
    rig.verb("run").await.failed(3, &format!("no table {}", rig.topic));
}

/// A partition stops before a bad record, is told about, passed over, goes on, and is read again from an earlier place.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_stops_is_skipped_resumed_and_reset_on_sqlite() {
    let rig = Rig::new("verbs", 1).await;
    let good = |seq| Record::to(0).value(row(0, seq));
    let bad = || Record::to(0).value("{\"seq\":\"abc\"}");
    rig.kafka.produce(&rig.topic, [good(0), good(1), good(2), bad(), good(4), bad(), good(6)]).await;
    let process = rig.run();
    let skip = format!("oncesink skip ledger {}/0 --expect 3 --reason", rig.topic);
    says(&process, &skip).await;
    assert_eq!(rig.stored(0).await, "3 stopped");
    let status = rig.verb("status").await.done();
    assert!(status.contains("stopped") && status.contains(&skip), "{status}");
    let shown = rig.verb("status --json").await.done();
    assert!(shown.contains("\"stored_offset\":3"), "{shown}");
    rig.verb("skip @/0 --expect 2 --reason no").await.failed(1, "stands at offset 3, not at 2");

    // The running process hears of it, goes on, and stops before the next.
    rig.verb("skip @/0 --expect 3 --reason known").await.done();
    says(&process, &format!("oncesink skip ledger {}/0 --expect 5 --reason", rig.topic)).await;
    assert_eq!((rig.count().await, rig.stored(0).await), (4, "5 stopped".into()));
    process.terminate();
    assert_eq!(process.wait_exit(crate::rig::PATIENCE).await, 0, "{}", process.text());

    rig.verb("resume @/0 --reason again").await.done();
    assert_eq!(rig.stored(0).await, "5 running");
    rig.verb("run --until-end").await.failed(4, &format!("{}/0", rig.topic));
    rig.verb("skip @/0 --expect 5 --reason known").await.done();
    rig.verb("run --until-end").await.done();
    assert_eq!((rig.count().await, rig.stored(0).await), (5, "7 running".into()));

    rig.verb("reset @/0 --to 6 --expect 7 --reason back").await.done();
    assert_eq!(rig.stored(0).await, "6 running");
    rig.verb("run --until-end").await.done();
    assert_eq!(
        (rig.count().await, rig.stored(0).await),
        (6, "7 running".into()),
        "the last one again, as ordered"
    );
    let kinds: Vec<String> = rig.file.column("SELECT kind FROM oncesink_events ORDER BY id").await;
    let count = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    assert_eq!((count("skipped"), count("resumed"), count("reset")), (2, 1, 1), "{kinds:?}");
}
