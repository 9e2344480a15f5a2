//! Several sinks in one process: one that ends does not end the others, and says why at once.

use oncesink_test_support::process::{Launch, Process};

use crate::rig::{PATIENCE, Rig};

/// Two sinks over one topic, each with a group and a table of its own; the first table may be another one.
fn file(rig: &Rig, first_table: &str) -> String {
    let topic = &rig.topic;
    let sink = |name: &str, group: &str, table: &str| {
        format!(
            "[sinks.{name}]\ntopics = [\"{topic}\"]\ngroup = \"{group}\"\ntable = {{ table = \"{table}\" }}\ntarget = {{ kind = \"postgres\", url = \"{}\" }}\n",
            rig.url
        )
    };
    format!(
        "[kafka]\nbrokers = \"{}\"\n{}\n[http]\nlisten = \"127.0.0.1:0\"\n{}{}",
        rig.kafka.bootstrap(),
        rig.kafka_lines,
        sink("first", &format!("{topic}-first"), first_table),
        sink("second", topic, topic)
    )
}

fn launch(file: &str, args: &[&str]) -> Launch {
    let mut all = vec!["--config", "oncesink.toml"];
    all.extend(args);
    Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", file).args(all).env("RUST_LOG", "info")
}

pub(super) async fn says(process: &Process, parts: &[&str]) {
    let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    process.wait_for_line(move |line| parts.iter().all(|part| line.text.contains(part)), PATIENCE).await;
}

async fn end(process: Process) -> i32 {
    process.terminate();
    process.wait_exit(PATIENCE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_without_its_table_is_refused_at_once_and_the_other_flows_on() {
    let mut rig = Rig::new("several_table", 2).await;
    rig.produce(10).await;
    let list = file(&rig, "nowhere");
    let process = launch(&list, &["run"]).start();
    says(&process, &["\"level\":\"ERROR\"", "first: ", "no table nowhere", "the other sink goes on"]).await;
    rig.all_once().await;
    assert!(process.is_running());
    assert_eq!(end(process).await, 0, "the other one did its work");
    // Both refused: nothing is left to do.
    let both = list.replace(&format!("table = \"{}\"", rig.topic), "table = \"nowhere\"");
    let (code, lines) = launch(&both, &["run"]).run(PATIENCE).await;
    assert_eq!(code, 3, "{lines:?}");
    for name in ["first: ", "second: "] {
        assert!(
            lines.iter().any(|line| line.text.contains(name) && line.text.contains("no table")),
            "{lines:?}"
        );
    }
    // `check` names the bad one, and looks at the good one too.
    let (code, lines) = launch(&list, &["check"]).run(PATIENCE).await;
    assert_eq!(code, 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.text.contains("second: exactly once")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_later_does_not_end_the_other_and_4_is_for_all_of_them() {
    let mut rig = Rig::new("several_later", 2).await;
    rig.kafka_lines = format!("group.instance.id = \"{}\"\n", rig.topic);
    rig.schema.execute(&format!("CREATE TABLE copy (LIKE \"{}\")", rig.topic)).await;
    let list = file(&rig, "copy");
    let process = launch(&list, &["run"]).start();
    rig.produce(10).await;
    rig.rows_reach_in("copy", 20).await;
    rig.all_once().await;

    // Another process bears the same name in the group of the first sink only.
    let (head, second) = list.split_once("[sinks.second]").expect("two sinks");
    let usurper = launch(head, &["run"]).start();
    says(&process, &["first: ended: ", "group.instance.id", "the other sink goes on"]).await;
    rig.produce(10).await;
    rig.all_once().await;
    rig.rows_reach_in("copy", 40).await;
    let (kafka, _) = head.split_once("[sinks.first]").expect("a sink");
    let other = launch(&format!("{kafka}[sinks.second]{second}"), &["run"]).start();
    assert_eq!(process.wait_exit(PATIENCE).await, 4, "{}", process.text());
    rig.produce(10).await;
    rig.all_once().await;
    rig.rows_reach_in("copy", 60).await;
    assert_eq!(rig.schema.count("copy").await, 60);
    assert_eq!((end(usurper).await, end(other).await), (0, 0));
}
