//! What is logged: never a record's content, at whatever level; JSON lines when nobody looks on.

use oncesink_test_support::eventually;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::{Line, Stream};

use crate::rig::{PATIENCE, Rig};

const MARKER: &str = "TOP-SECRET-4711";

/// Runs with everything that our own crates can say until a partition stops, then to the end by a signal.
async fn lines_until_stopped(rig: &Rig) -> Vec<Line> {
    let process = rig
        .command(&["run"])
        .env("RUST_LOG", "oncesink=trace,oncesink_postgres=trace,oncesink_cli=trace,librdkafka=debug,info")
        .start();
    process.wait_for_line(|line| line.text.contains(" stopped: "), PATIENCE).await;
    eventually(PATIENCE, || async {
        let noted =
            rig.schema.count("kafka_offsets WHERE state = 'stopped' AND state_reason IS NOT NULL").await;
        (noted == 1).then_some(())
    })
    .await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    process.lines()
}

fn without_the_marker(what: &str, lines: &[Line]) {
    assert!(lines.iter().any(|line| line.text.contains("\"level\":\"DEBUG\"")), "all levels are on");
    for line in lines {
        assert!(!line.text.contains(MARKER), "{what}: {}", line.text);
    }
}

/// One partition, one record that is bad in its own way; key, value and header bear the marker.
async fn stops_without_a_word_of(what: &str, value: &str, column: &str) {
    let rig = Rig::new("marker", 1).await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" {column}", rig.topic)).await;
    let good = "{\"note\":\"TOP-SECRET-4711 good\",\"seq\":1}";
    let record = |value: &str| {
        Record::to(0).key(format!("{MARKER} key")).value(value).header("h", Some(MARKER.as_bytes()))
    };
    rig.kafka.produce(&rig.topic, [record(good), record(&value.replace('$', MARKER))]).await;
    let lines = lines_until_stopped(&rig).await;
    without_the_marker(what, &lines);
    assert_eq!(rig.schema.count(&format!("\"{}\"", rig.topic)).await, 1, "{what}: the good one is there");
    // Nor does the database keep it as the reason.
    let reason: String = rig.schema.value("SELECT state_reason FROM kafka_offsets").await;
    assert!(!reason.is_empty() && !reason.contains(MARKER), "{what}: {reason}");
    let status = rig.command(&["status"]).run(PATIENCE).await.1;
    assert!(!status.iter().any(|line| line.text.contains(MARKER)), "{what}: {status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_content_for_records_that_we_refuse() {
    let cases = [
        ("no JSON", "{\"note\": $", "ALTER seq TYPE bigint"),
        ("no object", "\"$\"", "ALTER seq TYPE bigint"),
        ("no number", "{\"seq\":\"$\"}", "ALTER seq TYPE bigint"),
        ("an unknown field", "{\"other\":\"$\"}", "ALTER seq TYPE bigint"),
        ("too long", "{\"note\":\"$ $ $ $\"}", "ALTER note TYPE varchar(40)"),
        ("no time", "{\"at\":\"$\"}", "ADD at timestamptz"),
        ("no uuid", "{\"id\":\"$\"}", "ADD id uuid"),
    ];
    for (what, value, column) in cases {
        stops_without_a_word_of(what, value, column).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_content_for_records_that_the_server_refuses() {
    let cases = [
        ("23514", "{\"note\":\"$ bad\"}", "ADD CHECK (note NOT LIKE '%bad')"),
        ("23505", "{\"note\":\"TOP-SECRET-4711 good\"}", "ADD UNIQUE (note)"),
        (
            "22012",
            "{\"note\":\"$ divides\"}",
            "ADD CHECK (note NOT LIKE '%divides' OR 1 / (length(note) - length(note)) > 0)",
        ),
    ];
    for (what, value, column) in cases {
        stops_without_a_word_of(what, value, column).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_content_for_what_a_trigger_raises() {
    let rig = Rig::new("raised", 1).await;
    let (schema, topic) = (rig.schema.name(), &rig.topic);
    rig.schema
        .execute(&format!(
            "CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'no % here', NEW.note USING DETAIL = NEW.note, HINT = NEW.note; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON \"{topic}\" FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
        ))
        .await;
    let value = format!("{{\"note\":\"{MARKER}\"}}");
    rig.kafka.produce(topic, [Record::to(0).key(MARKER).value(value)]).await;
    without_the_marker("a trigger", &lines_until_stopped(&rig).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_json_when_nobody_looks_on() {
    let mut rig = Rig::new("json", 1).await;
    rig.produce(3).await;
    let (code, lines) = rig.command(&["run", "--until-end"]).env("RUST_LOG", "debug").run(PATIENCE).await;
    assert_eq!(code, 0);
    let logged: Vec<&Line> = lines.iter().filter(|line| line.stream == Stream::Err).collect();
    assert!(logged.len() > 5, "{lines:?}");
    for line in logged {
        let object: serde_json::Value =
            serde_json::from_str(&line.text).unwrap_or_else(|e| panic!("{e}: {}", line.text));
        for key in ["timestamp", "level", "target", "message"] {
            assert!(object[key].is_string(), "{key} in {}", line.text);
        }
    }
}
