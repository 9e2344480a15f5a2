//! The README's quickstart, line by line: each command is run, and what it says is compared with what is written, but for figures and names of the test's own.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use oncesink_test_support::Servers;
use oncesink_test_support::kafka::{Kafka, Record};
use oncesink_test_support::postgres::Schema;
use oncesink_test_support::process::{Launch, Process};

use super::README;
use crate::rig::PATIENCE;

/// A command and the lines behind it.
struct Step {
    command: &'static str,
    expected: Vec<&'static str>,
}

/// The block in which `oncesink check` is typed.
fn session() -> Vec<Step> {
    let blocks =
        README.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let block = blocks.into_iter().find(|block| block.contains("$ oncesink check")).expect("the session");
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step { command, expected: Vec::new() }),
            (None, Some(step)) => step.expected.push(line),
            (None, None) => panic!("a session begins with a command: {line}"),
        }
    }
    steps
}

/// What stands in the README for what the test has.
struct World {
    schema: Schema,
    topic: String,
    brokers: String,
    listen: String,
    file: String,
}

impl World {
    async fn new(kafka: &Kafka) -> Self {
        let schema = Servers::shared().await.postgres().schema("quickstart").await;
        let topic = kafka.topic("quickstart", 6).await;
        let create = super::block("sql").replace("TABLE orders", &format!("TABLE \"{topic}\""));
        schema.execute(&create).await;
        let order = |n: i64| {
            format!(r#"{{"order_id":"A-{n}","amount":"{}.90","placed_at":"2026-11-30T12:00:00Z"}}"#, n % 100)
        };
        kafka.produce(&topic, (0..10_000).map(|n| Record::to((n % 6) as i32).value(order(n)))).await;
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        let brokers = kafka.bootstrap().to_owned();
        let file = super::block("toml")
            .replace("localhost:9092", &brokers)
            .replace("\"orders\"]", &format!("\"{topic}\"]\ngroup = \"oncesink-{topic}\""))
            .replace("postgres://app@localhost/shop", schema.url());
        Self { schema, topic, brokers, listen: port.to_string(), file }
    }

    fn launch(&self, program: impl AsRef<Path>) -> Launch {
        let folder = Path::new(env!("CARGO_BIN_EXE_oncesink")).parent().expect("the folder of the command");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let launch = Launch::new(program).file("oncesink.toml", &self.file).env("PATH", &path);
        // The table is named by the topic; and psql is not to ask whoever has a terminal.
        launch.env("URL", self.schema.url()).env("ONCESINK_HTTP__LISTEN", &self.listen).env("PAGER", "")
    }

    /// The test's own names by the README's.
    fn told(&self, line: &str) -> String {
        let host =
            self.schema.url().split_once("://").and_then(|(_, rest)| rest.split('?').next()).expect("a URL");
        let shown = host.rsplit_once('@').map_or(host, |(_, place)| place);
        let told = line.replace(host, "app@localhost/shop").replace(shown, "localhost/shop");
        let told = told.replace(&self.topic, "orders").replace(self.schema.name(), "public");
        let told = told.replace(&self.brokers, "localhost:9092").replace(&self.listen, "127.0.0.1:9719");
        told.replace("role postgres", "role app").replace("postgres <- ", "app <- ")
    }

    /// The README's names by the test's, in a command.
    fn command(&self, command: &str) -> String {
        let command = command.replace("localhost:9719", &self.listen);
        // In SQL the table needs quotes: its name has digits and lower-case letters only, so a plain word does.
        command
            .replace(" orders", &format!(" {}", self.topic))
            .replace("\"orders\"", &format!("\"{}\"", self.topic))
    }
}

/// Figures as signs, blanks as one.
fn masked(line: &str) -> String {
    let mut masked = String::new();
    for c in line.trim().chars() {
        match c {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            ',' | '.' if masked.ends_with('#') => {}
            ' ' | '-' if masked.ends_with(c) => {}
            c => masked.push(c),
        }
    }
    masked
}

/// The log's message; a line that is no JSON as it is.
fn message(line: &str) -> String {
    let json: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let told = json.as_ref().and_then(|json| json.get("message")).and_then(|text| text.as_str());
    told.unwrap_or(line).to_owned()
}

/// A look is taken again for a while, as whoever types it would: metrics follow within a second or two.
async fn finished(world: &World, step: &Step) {
    let command = world.command(step.command);
    let expected: Vec<String> = step.expected.iter().map(|line| masked(line)).collect();
    let looks = ["psql ", "curl "].iter().any(|verb| step.command.starts_with(verb));
    let began = Instant::now();
    loop {
        let (_, lines) = world.launch("/bin/bash").args(["-c", &command]).run(PATIENCE).await;
        let told = lines.iter().map(|line| world.told(&line.text)).filter(|line| !line.is_empty());
        let told: Vec<String> = told.collect();
        let found: Vec<String> = told.iter().map(|line| masked(line)).collect();
        if expected == found {
            return;
        }
        assert!(looks && began.elapsed() < PATIENCE / 3, "{}\n{}", step.command, told.join("\n"));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The lines come in this order, with others between.
async fn running(world: &World, process: &Process, step: &Step) {
    let wanted: Vec<String> = step.expected.iter().map(|line| masked(line)).collect();
    let told = || process.lines().iter().map(|line| world.told(&message(&line.text))).collect::<Vec<_>>();
    let began = Instant::now();
    loop {
        let told = told();
        let mut left = wanted.iter().peekable();
        for line in &told {
            let _ = left.next_if(|next| **next == masked(line));
        }
        let Some(next) = left.next() else { return };
        assert!(began.elapsed() < PATIENCE / 2, "{}: never came: {next}\n{}", step.command, told.join("\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstart_says_what_is_written() {
    let found = std::process::Command::new("psql").arg("--version").stdout(Stdio::null()).status();
    assert!(found.is_ok(), "psql comes with the server's package");
    let world = World::new(Servers::shared().await.kafka()).await;
    let mut run: Option<Process> = None;
    for step in session() {
        if step.command.starts_with("kill -9 ") {
            run.take().expect("a sink to kill").kill9();
        }
        if step.command.ends_with("oncesink run") {
            let process = world.launch(env!("CARGO_BIN_EXE_oncesink")).args(["run"]).start();
            running(&world, &process, &step).await;
            run = Some(process);
        } else {
            finished(&world, &step).await;
        }
    }
    assert!(run.is_some(), "the session runs a sink");
}
