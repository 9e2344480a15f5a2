//! Secrets: in no log at whatever level, no metric, no answer about health, no state in the database, no verb's output, no error and no `Debug`.

use std::error::Error;
use std::fmt::Write as _;

use oncesink::config::{Config, Environment, Known, Librdkafka, Resolved, Secret};
use oncesink::postgres::{Postgres, PostgresConfig};
use oncesink::store::Store;
use oncesink::{SinkSettings, kafka};
use oncesink_test_support::eventually;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Launch;

use crate::rig::{PATIENCE, Rig};
use crate::scrape::Http;

/// Every secret of these tests bears it.
const MARKER: &str = "S3cr3t";

/// Nothing is filtered: whoever asks for everything gets everything.
const EVERYTHING: &str =
    "trace,librdkafka=trace,rdkafka=trace,sqlx=trace,hyper=trace,hyper_util=trace,axum=trace";

/// Properties of Kafka that hold secrets; on a plain listener they are not used, but they are there.
const KAFKA: &str = "sasl.username = \"app\"\nsasl.password = \"S3cr3t-k\"\nssl.key.password = \"S3cr3t-kk\"\ndebug = \"all\"\n";

fn launch(file: &str, args: &[&str]) -> Launch {
    let mut all = vec!["--config", "oncesink.toml"];
    all.extend(args);
    Launch::new(env!("CARGO_BIN_EXE_oncesink"))
        .file("oncesink.toml", file)
        .args(all)
        .env("RUST_LOG", EVERYTHING)
        .env("RUST_BACKTRACE", "full")
        .env("A_SECRET", "S3cr3t-e")
}

fn without_secrets(what: &str, text: &str) {
    let told: Vec<&str> = text.lines().filter(|line| line.contains(MARKER)).collect();
    assert!(told.is_empty(), "{what} tells a secret:\n{}", told.join("\n"));
}

/// A role with a password, and the rig's file with its URL and what follows the URL.
async fn with_role(rig: &Rig, password: &str) -> String {
    let (schema, role) = (rig.schema.name(), format!("s_{}", rig.schema.name()));
    rig.schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD '{password}' IN ROLE oncesink_with_password;
             GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    role
}

#[tokio::test(flavor = "multi_thread")]
async fn c141_no_secret_is_told_by_a_sink_that_runs_and_the_verbs_beside_it_on_postgres() {
    let mut rig = Rig::new("c141", 2).await;
    let role = with_role(&rig, "S3cr3t-x").await;
    rig.kafka_lines = KAFKA.to_owned();
    let file = rig.config().replace("postgres@", &format!("{role}:S3cr3t-x@"));
    assert!(file.contains(MARKER));
    let process = launch(&file, &["run"]).start();
    rig.produce(10).await;
    rig.all_once().await;
    // A bad record stops its partition: its reason stands in the database.
    rig.kafka.produce(&rig.topic, [Record::to(1).value("no JSON")]).await;
    eventually(PATIENCE, || async {
        (rig.schema.count("kafka_offsets WHERE state = 'stopped'").await == 1).then_some(())
    })
    .await;
    let http = Http::of(&process).await;
    for (path, says) in [("/metrics", "oncesink_stored_offset"), ("/healthz", "ok"), ("/readyz", "ok")] {
        let (_, text) = http.get(path).await;
        assert!(text.contains(says), "{text}");
        without_secrets(path, &text);
    }
    for verb in [
        ["status", "--json"].as_slice(),
        &["check", "--json"],
        &["config", "--resolved"],
        &["config", "--resolved", "--json"],
        &["migrate", "--print"],
        &["resume", &rig.topic],
    ] {
        let (code, lines) = launch(&file, verb).run(PATIENCE).await;
        let text: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        assert_eq!(code, 0, "{verb:?}: {text:?}");
        without_secrets(&format!("{verb:?}"), &text.join("\n"));
    }
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    let log = process.text();
    for level in ["DEBUG", "INFO"] {
        assert!(log.contains(&format!("\"level\":\"{level}\"")), "all levels are on");
    }
    assert!(log.contains("\"target\":\"librdkafka\""), "librdkafka tells all that it does");
    without_secrets("run", &log);
    for table in ["kafka_offsets", "oncesink_topics", "oncesink_events"] {
        let sql = format!("SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%{MARKER}%'");
        assert_eq!(rig.schema.value::<i64>(&sql).await, 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c141_no_secret_is_told_by_what_goes_wrong_on_postgres() {
    let rig = Rig::new("c141_wrong", 1).await;
    let role = with_role(&rig, "right").await;
    let plain = rig.config();
    let user = format!("postgres://{role}");
    let with = |url: &str, more: &str| {
        plain.replace(&format!("url = \"{}\"", rig.url), &format!("url = \"{url}\"{more}"))
    };
    let address = rig.url.split_once('@').expect("a user").1.split('/').next().expect("an address");
    let file = std::env::temp_dir().join(&role);
    std::fs::write(&file, "S3cr3t-f").expect("writing the secret");
    let from_file = format!(", password = \"${{file:{}}}\"", file.display());
    let cases = [
        ("a wrong driver", with(&format!("mysql://app:S3cr3t-x@{address}/d"), ""), 2),
        ("no driver", with("S3cr3t-x:S3cr3t-y@h/d", ""), 2),
        ("a wrong kind", with("postgres://app:S3cr3t-x@h/d", "").replace("\"postgres\"", "\"postgress\""), 2),
        ("a bad option", with(&format!("{user}:S3cr3t-x@{address}/d?sslpassword=S3cr3t-y"), ""), 2),
        ("a bad port", with("postgres://app:S3cr3t-x@h:S3cr3t/d", ""), 2),
        ("two passwords", with("postgres://app:S3cr3t-x@h/d", ", password = \"S3cr3t-z\""), 2),
        ("nobody listens", with("postgres://app:S3cr3t-x@127.0.0.1:1/d?password=S3cr3t-y", ""), 3),
        ("no such host", with("postgres://app:S3cr3t-x@nowhere.invalid/d", ""), 3),
        ("a wrong password", with(&format!("{user}:S3cr3t-x@{address}/postgres"), ""), 3),
        ("a wrong key", with(&format!("{user}@{address}/postgres"), ", password = \"S3cr3t-x\""), 3),
        ("a wrong variable", with(&format!("{user}@{address}/postgres"), ", password = \"${env:A_SECRET}\""), 3),
        ("a wrong file", with(&format!("{user}@{address}/postgres"), &from_file), 3),
        ("no TLS", with(&format!("{user}:S3cr3t-x@{address}/postgres?sslmode=require"), ""), 3),
        (
            "a Kafka that is not there",
            plain.replace(rig.kafka.bootstrap(), "127.0.0.1:1").replace(
                "[kafka]\n",
                "[kafka]\nsecurity.protocol = \"SASL_PLAINTEXT\"\nsasl.mechanism = \"PLAIN\"\nsasl.username = \"u\"\nsasl.password = \"S3cr3t-k\"\n",
            ),
            3,
        ),
        (
            "a key that cannot be read",
            plain.replace("[kafka]\n", "[kafka]\nsecurity.protocol = \"SSL\"\nssl.key.pem = \"S3cr3t-pem\"\nssl.key.password = \"S3cr3t-k\"\n"),
            3,
        ),
        ("an unknown property", plain.replace("[kafka]\n", "[kafka]\nsasl.pasword = \"S3cr3t-k\"\n"), 2),
        ("a property of the wrong kind", plain.replace("[kafka]\n", "[kafka]\nsocket.timeout.ms = \"${env:A_SECRET}\"\n"), 2),
    ];
    for (what, file, expected) in cases {
        assert!(file.contains(MARKER) || file.contains("A_SECRET") || file.contains("${file:"), "{what}");
        let (code, lines) = launch(&file, &["check", "--json"]).run(PATIENCE).await;
        let text: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        let text = text.join("\n");
        without_secrets(what, &text);
        assert_eq!(code, expected, "{what}: {}", text.lines().last().unwrap_or_default());
    }
    std::fs::remove_file(&file).expect("removing the secret");
}

/// All that an embedding program may print, a panic's message among it.
#[tokio::test(flavor = "multi_thread")]
async fn c141_no_debug_and_no_chain_of_errors_tells_a_secret_on_postgres() {
    let text = "[kafka]\nbrokers = \"127.0.0.1:1\"\nsasl.password = \"S3cr3t-k\"\nssl.key.password = \"S3cr3t-kk\"\n[sinks.o]\ntopics = [\"t\"]\n\
                target = { kind = \"postgres\", url = \"postgres://app:S3cr3t-x@127.0.0.1:1/d?password=S3cr3t-y\" }\n";
    let kinds = [oncesink::config::Kind {
        name: "postgres",
        schemes: &["postgres"],
        example: "postgres://app@localhost/shop",
        check_url: |_| Ok(()),
        one_writer: false,
    }];
    let known = Known { kafka: &Librdkafka, kinds: &kinds };
    let environment = Environment::default();
    let config = Config::parse(text, "oncesink.toml", &environment, &known).expect("a configuration");
    let resolved = Resolved::parse(text, "oncesink.toml", &environment, &known).expect("a configuration");
    let sink = &config.sinks[0];
    let settings = SinkSettings::new(&config.kafka, sink);
    let mut postgres = PostgresConfig::new(sink.target.url.clone());
    postgres.password = Some(Secret::literal("S3cr3t-p"));
    let mut consumer = kafka::ConsumerSettings::new("127.0.0.1:1", "g", vec!["t".into()]);
    consumer.properties.insert("sasl.password".into(), "S3cr3t-k".into());
    let store = Postgres::new(postgres.clone(), "g").expect("a store");
    let failure = store.connect().await.err().expect("nobody listens");
    let mut said = format!("{failure} {failure:?} {failure:#?}");
    let mut cause: Option<&dyn Error> = failure.source();
    while let Some(error) = cause {
        let _ = write!(said, " {error} {error:?}");
        cause = error.source();
    }
    without_secrets("a failure", &said);
    let shown = format!(
        "{config:?} {config:#?} {sink:?} {:?} {:?} {settings:?} {settings:#?} {postgres:?} {consumer:?} {consumer:#?} {resolved:?} {} {:?}",
        config.kafka,
        sink.target,
        resolved.toml(),
        sink.target.url,
    );
    without_secrets("Debug", &shown);
    let panicked = std::panic::catch_unwind(|| std::panic::panic_any(format!("{settings:?} {postgres:?}")));
    let message = *panicked.expect_err("a panic").downcast::<String>().expect("its message");
    without_secrets("a panic", &message);
}
