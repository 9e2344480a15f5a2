//! Errors of the server that are nobody's fault, at a statement and at COMMIT, and errors without any code.

use std::time::Duration;

use oncesink_test_support::eventually_within;
use oncesink_test_support::postgres::with_address;
use oncesink_test_support::proxy::{Action, Point};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::commit::behind_proxy;
use super::metric;
use crate::rig::{PATIENCE, Rig};

/// A trigger on the ledger that fails with `state` for its first `times` rows whose note is `note`. A sequence counts, since it is not rolled back.
///
/// With `at_commit` it fails at COMMIT alone: a deferred trigger, which the guard makes fire, leaves another deferred one behind.
async fn fail(rig: &Rig, name: &str, note: &str, state: &str, times: i64, at_commit: bool) {
    let topic = &rig.topic;
    let raise = format!(
        "CREATE SEQUENCE {name}_tries;
         CREATE FUNCTION {name}_raise() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('{name}_tries') <= {times} THEN RAISE EXCEPTION 'by order' USING ERRCODE = '{state}'; END IF;
             RETURN NULL;
         END $$;"
    );
    let place = if at_commit {
        format!(
            "CREATE TABLE {name}_late (note text);
             CREATE CONSTRAINT TRIGGER {name}_at_commit AFTER INSERT ON {name}_late
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {name}_raise();
             CREATE FUNCTION {name}_hand_on() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 SET CONSTRAINTS {name}_at_commit DEFERRED;
                 INSERT INTO {name}_late VALUES (NEW.note);
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER {name}_at_guard AFTER INSERT ON \"{topic}\"
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.note = '{note}') EXECUTE FUNCTION {name}_hand_on()"
        )
    } else {
        format!(
            "CREATE TRIGGER {name} AFTER INSERT ON \"{topic}\"
                 FOR EACH ROW WHEN (NEW.note = '{note}') EXECUTE FUNCTION {name}_raise()"
        )
    };
    rig.schema.execute(&format!("{raise} {place}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c175_a_serialization_failure_runs_the_whole_transaction_again() {
    let mut rig = Rig::new("serial", 2).await;
    fail(&rig, "at_statement", "n-7", "40001", 2, false).await;
    fail(&rig, "at_commit", "n-11", "40001", 2, true).await;
    rig.produce(500).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    let retries = async |class: &str| {
        metric::sum(&address, "oncesink_retries_total", &[&format!("class=\"{class}\"")]).await
    };
    assert_eq!(retries("transient").await, 4.0, "{}", process.text());
    assert_eq!(retries("bad_record").await, 0.0);
    assert_eq!(
        metric::sum(&address, "oncesink_in_doubt_total", &[]).await,
        0.0,
        "the server's word is no doubt"
    );
    assert!(process.text().contains("40001"), "counted and told by its state: {}", process.text());
}

/// Rolled back, will fail again, unknown: three answers to COMMIT.
#[tokio::test(flavor = "multi_thread")]
async fn c069_the_three_failures_of_commit_are_told_apart_and_a_retry_is_identical() {
    let (mut rig, proxy) = behind_proxy("three", 1).await;
    rig.sink_lines = "writers = 1".into();
    fail(&rig, "serial", "n-100", "40001", 2, true).await;
    fail(&rig, "twice", "n-700", "23505", 1_000, true).await;
    rig.produce(500).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    let retries = async |class: &str| {
        metric::sum(&address, "oncesink_retries_total", &[&format!("class=\"{class}\"")]).await
    };
    assert_eq!((retries("transient").await, retries("bad_record").await), (2.0, 0.0), "40001: rolled back");

    proxy.arm(Point::CommitOf(rig.topic.clone()), Action::CutBefore);
    rig.produce(100).await;
    rig.all_once().await;
    let settled = metric::sum(&address, "oncesink_in_doubt_total", &["settled=\"not_applied\""]).await;
    assert_eq!(settled, 1.0, "a reset: unknown, and settled");

    rig.produce(200).await;
    let stopped = process.wait_for_line(|line| line.text.contains("stopped: "), PATIENCE).await;
    assert!(
        stopped.text.contains("@700 stopped: ") && stopped.text.contains("unique key that exists"),
        "{}",
        stopped.text
    );
    assert!(retries("bad_record").await > 0.0, "23505: will fail again");
    assert_eq!((rig.schema.count(&rig.topic).await, rig.stored(0).await), (700, 700));
    let distinct = format!("SELECT count(DISTINCT seq) FROM \"{}\"", rig.topic);
    assert_eq!(rig.schema.value::<i64>(&distinct).await, 700);
    assert_eq!(metric::sum(&address, "oncesink_in_doubt_total", &[]).await, 1.0);
}

/// Whatever ends badly is rolled back or closed: nothing waits inside an aborted transaction and holds its locks.
#[tokio::test(flavor = "multi_thread")]
async fn c101_no_session_stays_in_an_aborted_transaction() {
    let mut rig = Rig::new("aborted", 2).await;
    fail(&rig, "ill", "n-7", "40001", 12, false).await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD CHECK (seq <> 60)", rig.topic)).await;
    rig.produce(100).await;
    let process = rig.run();
    let stuck = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}'
         AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > INTERVAL '1 s'",
        rig.topic
    );
    let look = async || {
        assert_eq!(rig.schema.value::<i64>(&stuck).await, 0, "{}", process.text());
        rig.schema.count(&rig.topic).await
    };
    eventually_within(PATIENCE, look, |rows| *rows == 120).await;
    process.wait_for_line(|line| line.text.contains("@60 stopped: "), PATIENCE).await;
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}' AND xact_start IS NOT NULL",
        rig.topic
    );
    eventually_within(Duration::from_secs(10), || rig.schema.value::<i64>(&open), |open| *open == 0).await;
}

/// The cause is told, not what went wrong while cleaning up after it.
#[tokio::test(flavor = "multi_thread")]
async fn c055_the_first_cause_survives_a_failing_rollback() {
    let (mut rig, proxy) = behind_proxy("cause", 1).await;
    rig.schema
        .execute(&format!("ALTER TABLE \"{}\" ADD CONSTRAINT not_six CHECK (seq <> 6)", rig.topic))
        .await;
    rig.produce(10).await;
    proxy.arm_times(50, Point::RollbackOf(rig.topic.clone()), Action::CutBefore);
    let process = rig.run();
    let line = process.wait_for_line(|line| line.text.contains("stopped: "), PATIENCE).await;
    assert!(line.text.contains("@6 stopped: ") && line.text.contains("not_six"), "{}", line.text);
    assert!(proxy.seen().cuts > 2, "rollbacks failed");
    assert_eq!((rig.schema.count(&rig.topic).await, rig.stored(0).await), (6, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_long_is_ended_and_tried_again() {
    let mut rig = Rig::new("slow", 1).await;
    rig.sink_lines = "timeout = \"1 s\"".into();
    rig.schema
        .execute(&format!(
            "CREATE SEQUENCE tries;
             CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN IF nextval('tries') <= 2 THEN PERFORM pg_sleep(30); END IF; RETURN NULL; END $$;
             CREATE TRIGGER dawdle AFTER INSERT ON \"{}\" FOR EACH ROW WHEN (NEW.note = 'n-5') EXECUTE FUNCTION dawdle()",
            rig.topic
        ))
        .await;
    rig.produce(50).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    let retries = metric::sum(&address, "oncesink_retries_total", &["class=\"timeout\""]).await;
    assert_eq!(retries, 2.0, "{}", process.text());
    assert!(process.text().contains("57014"), "{}", process.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_with_a_foreign_transaction_costs_no_row() {
    let mut rig = Rig::new("deadlock", 1).await;
    // Ours finds the deadlock first, and before its lock timeout.
    rig.url = rig.url.replace("options=", "options=-c%20deadlock_timeout%3D100ms%20");
    rig.schema
        .execute(&format!(
            "CREATE TABLE hot (id integer PRIMARY KEY, n integer DEFAULT 0); INSERT INTO hot VALUES (1);
             CREATE FUNCTION heat() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN UPDATE hot SET n = n + 1 WHERE id = 1; RETURN NULL; END $$;
             CREATE TRIGGER heat AFTER INSERT ON \"{}\" FOR EACH ROW WHEN (NEW.seq >= 10) EXECUTE FUNCTION heat()",
            rig.topic
        ))
        .await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    let mut foreign = rig.schema.connection().await;
    let mut run = async |sql: &str| {
        oncesink::sqlx::Executor::execute(&mut foreign, sql)
            .await
            .expect("a statement of the foreign transaction")
    };
    run("BEGIN; SET LOCAL deadlock_timeout = '30 s'; UPDATE hot SET n = n + 1 WHERE id = 1").await;
    rig.produce(10).await;
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}' AND wait_event_type = 'Lock'",
        rig.topic
    );
    eventually_within(PATIENCE, || rig.schema.value::<i64>(&waiting), |waiting| *waiting > 0).await;
    // The sink holds its offset row and waits for ours.
    run("UPDATE kafka_offsets SET updated_at = updated_at").await;
    run("COMMIT").await;
    rig.all_once().await;
    assert!(process.text().contains("rolled back, trying again"), "{}", process.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn c151_errors_without_a_code_keep_their_message_and_are_waited_out() {
    let mut rig = Rig::new("codeless", 1).await;
    rig.produce(10).await;

    // A name that does not resolve.
    let real = rig.url.clone();
    rig.url = with_address(&real, "no-such-host.invalid:5432");
    let process = rig.run();
    let line = process.wait_for_line(|line| line.text.contains("waiting for the database"), PATIENCE).await;
    assert!(line.text.contains("no-such-host.invalid") && line.text.contains("lookup"), "{}", line.text);
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);

    // A server that speaks something else.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    rig.url = with_address(&real, &listener.local_addr().expect("its address").to_string());
    let answering = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let process = rig.run();
    let line = process.wait_for_line(|line| line.text.contains("waiting for the database"), PATIENCE).await;
    assert!(line.text.contains("connecting to Postgres at 127.0.0.1"), "{}", line.text);
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    answering.abort();

    // TLS demanded of a server that has none answers, and refuses.
    rig.url = format!("{real}&sslmode=require");
    let (code, lines) = rig.command(&["run"]).run(PATIENCE).await;
    assert_eq!(code, 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.text.contains("TLS")), "{lines:?}");

    rig.url = real;
    rig.run_until_end().await;
    rig.each_once().await;
}

/// A reset while rows are written: the class and the driver's own words.
#[tokio::test(flavor = "multi_thread")]
async fn c151_a_reset_in_mid_copy_is_told_once_and_tried_again() {
    let (mut rig, proxy) = behind_proxy("reset", 1).await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    proxy.arm_times(2, Point::CopyBytes(1), Action::CutBefore);
    rig.produce(5_000).await;
    rig.all_once().await;
    let told: Vec<_> =
        process.lines().into_iter().filter(|line| line.text.contains("rolled back, trying again")).collect();
    assert_eq!(told.len(), 1, "{}", process.text());
    assert!(
        told[0].text.contains("\"class\":\"transient\"") && told[0].text.contains("write: COPY"),
        "{}",
        told[0].text
    );
    assert!(process.text().contains("committing again after"));
}
