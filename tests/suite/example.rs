//! The examples, built by `cargo test` and run on real servers.

use std::path::{Path, PathBuf};

use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Launch;

use crate::rig::{PATIENCE, Rig};

/// The example of this name, beside the command.
fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_oncesink")).parent().expect("the folder of the command");
    let path = folder.join("examples").join(name);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_moves_each_balance_once_through_kills() {
    let rig = Rig::new("embedded", 2).await;
    rig.schema.execute("CREATE TABLE movements (account bigint, cents bigint)").await;
    rig.schema.execute("CREATE TABLE balances (account bigint PRIMARY KEY, cents bigint)").await;
    let movement = |seq: i32| format!("{{\"account\":{},\"cents\":{}}}", seq % 7, seq);
    rig.kafka.produce(&rig.topic, (0..4_000).map(|seq| Record::to(seq % 2).value(movement(seq)))).await;
    let launch = || {
        Launch::new(example("embedded"))
            .env("KAFKA", rig.kafka.bootstrap())
            .env("DATABASE_URL", rig.schema.url())
            .env("TOPIC", &rig.topic)
            .env("GROUP", &rig.topic)
            .env("UNTIL_END", "1")
    };
    let first = launch().start();
    rig.rows_reach_in("movements", 1).await;
    first.kill9();
    let (code, lines) = launch().run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    assert!(lines.iter().any(|line| line.text == "ledger: Reached"), "{lines:?}");
    assert_eq!(rig.schema.count("movements").await, 4_000);
    let apart: i64 = rig
        .schema
        .value(
            "SELECT count(*) FROM balances b FULL JOIN (SELECT account, sum(cents) cents FROM movements GROUP BY account) m USING (account)
             WHERE b.cents IS DISTINCT FROM m.cents",
        )
        .await;
    assert_eq!(apart, 0, "balances and movements differ");
}
