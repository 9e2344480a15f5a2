//! The README's pipeline, run as it is written.

mod session;

use oncesink_test_support::Servers;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Launch;

use crate::rig::PATIENCE;

const README: &str = include_str!("../../../README.md");

/// The first fenced block of a language, without its fence.
fn block(language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let start = README.find(&fence).expect("a block of that language") + fence.len();
    let length = README[start..].find("```").expect("its end");
    &README[start..start + length]
}

/// The JSON object that the text shows as a record.
fn record() -> &'static str {
    let start = README.find("`{\"order_id\"").expect("a record") + 1;
    let length = README[start..].find('`').expect("its end");
    &README[start..start + length]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pipeline_works_as_written() {
    let servers = Servers::shared().await;
    let schema = servers.postgres().schema("readme").await;
    let topic = servers.kafka().topic("readme", 2).await;
    servers.kafka().produce(&topic, [Record::to(0).value(record()), Record::to(1).value(record())]).await;
    let create = block("sql").replace("TABLE orders", &format!("TABLE \"{topic}\""));
    schema.execute(&create).await;
    let written = block("toml");
    for line in ["localhost:9092", "\"orders\"]", "postgres://app@localhost/shop"] {
        assert!(written.contains(line), "{line}");
    }
    let config = written
        .replace("localhost:9092", servers.kafka().bootstrap())
        .replace("\"orders\"]", &format!("\"{topic}\"]\ngroup = \"{topic}\""))
        .replace("postgres://app@localhost/shop", schema.url());

    // The verbs of the text, in its order. `check` finds what `migrate` mends; `run` gets an end.
    let verbs: Vec<&str> =
        README.lines().filter_map(|line| line.strip_prefix("$ oncesink ")?.split(' ').next()).collect();
    assert_eq!(verbs, ["check", "migrate", "run"]);
    let oncesink = |args: &[&'static str]| {
        let launch = Launch::new(env!("CARGO_BIN_EXE_oncesink"))
            .file("oncesink.toml", &config)
            .args(args.iter().copied());
        launch.env("ONCESINK_HTTP__LISTEN", "127.0.0.1:0").run(PATIENCE)
    };
    let (code, lines) = oncesink(&["check"]).await;
    assert_eq!(code, 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.text.contains("Run: oncesink migrate")), "{lines:?}");
    let (code, lines) = oncesink(&["migrate"]).await;
    assert_eq!(code, 0, "{lines:?}");
    let (code, lines) = oncesink(&["check"]).await;
    assert_eq!(code, 0, "{lines:?}");
    let (code, lines) = oncesink(&["run", "--until-end"]).await;
    assert_eq!(code, 0, "{lines:?}");
    let rows: Vec<String> = schema
        .column(&format!(
            "SELECT DISTINCT concat_ws('|', order_id, amount, placed_at AT TIME ZONE 'UTC') FROM \"{topic}\""
        ))
        .await;
    assert_eq!(rows, ["A-1|19.90|2026-11-30 12:00:00"]);
    assert_eq!(schema.count(&topic).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_configuration_in_it_is_one() {
    let folder = std::env::temp_dir().join(oncesink_test_support::unique("readme"));
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["kafka", "db", "ca.pem", "app.pem", "app.key"] {
        std::fs::write(folder.join(file), "x").expect("a file");
    }
    let here = folder.display().to_string();
    let blocks: Vec<String> = README
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .map(|block| block.replace("/run/secrets", &here).replace("/etc/oncesink", &here))
        .collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        // What is no sink yet gets the rest from the first block.
        let topics = if block.contains("topics") { "" } else { "\n[sinks.orders]\ntopics = [\"orders\"]\n" };
        let launch =
            Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &format!("{block}{topics}"));
        let (code, lines) = launch.args(["config", "--resolved"]).run(PATIENCE).await;
        assert_eq!(code, 0, "{block}: {lines:?}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}
