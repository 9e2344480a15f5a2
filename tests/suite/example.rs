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

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_of_ones_own_on_sqlite_needs_no_server_and_survives_a_cut() {
    let source = std::fs::read_to_string("examples/custom_connector.rs").expect("the example");
    assert!(source.lines().count() < 100, "it should stay short: {} lines", source.lines().count());
    let (code, lines) = Launch::new(example("custom_connector")).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    let said: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let whole = "60000 movements of Some(1799970000) cents, balances of Some(1799970000)";
    assert!(said.iter().any(|line| line.starts_with("ledger: Stopped: ")), "{said:?}");
    assert!(said.contains(&&*format!("ledger: Reached: {whole}")), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connector_of_the_docs_is_the_example_and_runs_as_a_command() {
    let docs = std::fs::read_to_string("docs/writing-a-connector.md").expect("the docs");
    let source = std::fs::read_to_string("examples/ledger.rs").expect("the example");
    assert!(
        docs.contains(&format!("```rust\n{source}```")),
        "docs/writing-a-connector.md shows another examples/ledger.rs"
    );
    let file = docs
        .split("```toml\n# oncesink.toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the file");

    let rig = Rig::new("docledger", 2).await;
    rig.schema.execute("CREATE TABLE movements (account bigint, cents bigint)").await;
    rig.schema.execute("CREATE TABLE balances (account bigint PRIMARY KEY, cents bigint)").await;
    let movement = |seq: i32| format!("{{\"account\":{},\"cents\":{}}}", seq % 7, seq);
    rig.kafka.produce(&rig.topic, (0..2_000).map(|seq| Record::to(seq % 2).value(movement(seq)))).await;
    let file = file
        .replace("localhost:9092", rig.kafka.bootstrap())
        .replace("\"movements\"", &format!("{:?}", rig.topic))
        .replace("topics", &format!("group = {:?}\ntopics", rig.topic))
        .replace("postgres://app@localhost/shop", rig.schema.url());
    let run = async |args: &[&str]| {
        let launch = Launch::new(example("ledger"))
            .file("oncesink.toml", &file)
            .env("ONCESINK_HTTP__LISTEN", "127.0.0.1:0");
        let (code, lines) = launch.args(args.iter().copied()).run(PATIENCE).await;
        assert_eq!(code, 0, "{args:?}: {lines:?}");
    };
    run(&["check"]).await;
    run(&["run", "--until-end"]).await;
    run(&["run", "--until-end"]).await;
    assert_eq!(rig.schema.count("movements").await, 2_000);
    let sum: i64 = rig.schema.value("SELECT sum(cents)::bigint FROM balances").await;
    assert_eq!(sum, (0..2_000).sum::<i64>());
}
