//! Bad records that only the server finds, by a statement, at the guard or at COMMIT: looked for, set aside, and nothing beside them.

use std::time::Instant;

use super::{each_once_with, read, rig};
use crate::rig::Rig;
use crate::scrape::Http;

const MANY: i64 = 300;
/// The records that are refused: neighbours, the first of all, the last of all.
const BAD: [(i32, i64); 4] = [(0, 0), (1, 137), (1, 138), (2, MANY - 1)];

/// A condition on a row that holds for these records.
fn refused(bad: &[(i32, i64)], row: &str) -> String {
    let places: Vec<String> = bad.iter().map(|(partition, seq)| format!("({partition}, {seq})")).collect();
    format!("({row}partition_id, {row}seq) IN ({})", places.join(", "))
}

/// Three partitions through one writer; each dead letter bears `class reason state table? column`.
async fn set_aside(stem: &str, sabotage: &str, expected: &str) {
    let mut rig = rig(stem, 3, "writers = 1").await;
    rig.schema.execute(&sabotage.replace("@t", &format!("\"{}\"", rig.topic))).await;
    rig.produce(MANY).await;
    let process = rig.run();
    each_once_with(&rig, &BAD).await;
    told(&rig, expected).await;
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 3 * MANY).await;
    assert_eq!(scrape.sum("oncesink_records_dead_lettered_total", &[]), BAD.len() as f64);
    // Class 22 and 23 are no illness of the server.
    let retries = |class: &str| scrape.sum("oncesink_retries_total", &[("class", class)]);
    assert_eq!(retries("bad_record"), scrape.sum("oncesink_retries_total", &[]), "{}", process.text());
    assert!(retries("bad_record") < 60.0, "{}", retries("bad_record"));
    assert!(!process.text().contains("stopped: "), "{}", process.text());
}

async fn told(rig: &Rig, expected: &str) {
    let sql = "SELECT DISTINCT concat_ws(' ', class, reason, sql_state, split_part(target_table, '.', 2), target_column) FROM oncesink_dead_letters";
    let told: Vec<String> = rig.schema.column(sql).await;
    assert_eq!(told, [expected.replace("@t", &rig.topic)]);
}

/// A trigger of this kind that raises this state for the bad rows.
fn raising(kind: &str, state: &str) -> String {
    format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE EXCEPTION 'not with me' USING ERRCODE = '{state}'; END $$;
         CREATE {kind} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION refuse()",
        refused(&BAD, "NEW.")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_constraint() {
    let check = format!("ALTER TABLE @t ADD CONSTRAINT no_such CHECK (NOT ({}))", refused(&BAD, ""));
    set_aside("checked", &check, "constraint check 23514 @t").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_raises() {
    let trigger = raising("TRIGGER refuse AFTER INSERT ON @t", "P0001");
    set_aside("raised", &trigger, "constraint trigger P0001").await;
}

/// The encoder sees a value: a trigger takes it away.
#[tokio::test(flavor = "multi_thread")]
async fn a_null_in_a_column_that_takes_none() {
    let trigger = format!(
        "ALTER TABLE @t ALTER note SET NOT NULL;
         CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.note := NULL; RETURN NEW; END';
         CREATE TRIGGER take BEFORE INSERT ON @t FOR EACH ROW WHEN ({}) EXECUTE FUNCTION take()",
        refused(&BAD, "NEW.")
    );
    set_aside("null", &trigger, "constraint null_in_not_null 23502 @t note").await;
}

/// The rows that are in the way were there before. The index is partial, so that the rest of the ledger has no key.
#[tokio::test(flavor = "multi_thread")]
async fn a_unique_index() {
    let taken = "CREATE TABLE taken (partition_id integer, seq bigint, PRIMARY KEY (partition_id, seq));";
    let values: Vec<String> = BAD.iter().map(|(partition, seq)| format!("({partition}, {seq})")).collect();
    let trigger = format!(
        "{taken} INSERT INTO taken VALUES {};
         CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN INSERT INTO taken VALUES (NEW.partition_id, NEW.seq); RETURN NULL; END';
         CREATE TRIGGER take AFTER INSERT ON @t FOR EACH ROW EXECUTE FUNCTION take()",
        values.join(", ")
    );
    set_aside("unique", &trigger, "constraint unique 23505 taken").await;
}

/// Found by the guard, with the whole transaction already written.
#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_constraint() {
    let kind = "CONSTRAINT TRIGGER refuse AFTER INSERT ON @t DEFERRABLE INITIALLY DEFERRED";
    set_aside("deferred", &raising(kind, "23514"), "constraint check 23514").await;
}

/// A deferred trigger, which the guard makes fire, leaves another one behind: refused at COMMIT alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_at_commit() {
    let sabotage = format!(
        "CREATE TABLE late (n int);
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE EXCEPTION 'too late' USING ERRCODE = '23505'; END $$;
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
         CREATE FUNCTION hand_on() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN SET CONSTRAINTS at_commit DEFERRED; INSERT INTO late VALUES (1); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER at_guard AFTER INSERT ON @t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
             WHEN ({}) EXECUTE FUNCTION hand_on()",
        refused(&BAD, "NEW.")
    );
    set_aside("at_commit", &sabotage, "constraint unique 23505").await;
}

/// A record that duplicates an earlier one of its own batch is the bad one; which of the two it is depends on the order.
#[tokio::test(flavor = "multi_thread")]
async fn the_later_of_two_that_exclude_each_other() {
    let mut rig = rig("twice", 1, "").await;
    rig.schema
        .execute(&format!("CREATE UNIQUE INDEX just_one ON \"{}\" ((1)) WHERE seq IN (47, 137)", rig.topic))
        .await;
    rig.produce(MANY).await;
    let _process = rig.run();
    each_once_with(&rig, &[(0, 137)]).await;
}

/// Refused by the encoder and by the server in one batch.
#[tokio::test(flavor = "multi_thread")]
async fn some_that_we_find_and_some_that_the_server_finds() {
    let mut rig = rig("mixed", 1, "").await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD CHECK (seq NOT IN (50, 52, 99))", rig.topic)).await;
    let records = super::with_spoilt(&mut rig, 0, 100, &[0, 49, 51, 53, 98]);
    rig.kafka.produce(&rig.topic, records).await;
    let _process = rig.run();
    each_once_with(&rig, &[0, 49, 50, 51, 52, 53, 98, 99].map(|seq| (0, seq))).await;
}

/// A hundred among ten thousand, found by the server alone: the cost of the search, told for whoever looks on.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_among_ten_thousand_cost_no_storm() {
    let mut rig = rig("hundred", 1, "writers = 1\nbatch = { linger = \"1 s\" }").await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD CHECK (seq % 97 <> 5)", rig.topic)).await;
    rig.produce(10_000).await;
    let bad: Vec<(i32, i64)> = (0..10_000).filter(|seq| seq % 97 == 5).map(|seq| (0, seq)).collect();
    let proxy = oncesink_test_support::proxy::Proxy::start(rig.schema.url());
    rig.url = proxy.url().to_owned();
    let process = rig.run();
    process.wait_for_line(|line| line.text.contains("1 partitions claimed"), crate::rig::PATIENCE).await;
    let began = Instant::now();
    each_once_with(&rig, &bad).await;
    let took = began.elapsed();
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 10_000).await;
    let of = |outcome| scrape.sum("oncesink_transactions_total", &[("outcome", outcome)]);
    let (committed, refused, sessions) = (of("committed"), of("rolled_back"), proxy.seen().sessions);
    println!(
        "{} bad: {committed} committed, {refused} rolled back, {sessions} sessions, {took:?}",
        bad.len()
    );
    assert!(committed + refused < 2_000.0, "{committed} {refused}");
    assert!(sessions < 20, "{sessions} sessions");
}
