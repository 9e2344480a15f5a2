//! What is kept of a bad record, with what it commits, and what is told of it.

use std::time::Instant;

use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Process;
use oncesink_test_support::proxy::{Action, Point, Proxy};
use oncesink_test_support::{eventually_within, unique};

use super::{books, dead, each_once_with, read, rig, with_spoilt};
use crate::rig::{PATIENCE, Rig, row};
use crate::scrape::Http;

const LETTER: &str = "SELECT concat_ws(' ', consumer_group = topic, partition_id, record_offset,
    convert_from(record_key, 'UTF8'), convert_from(record_value, 'UTF8'), encode(record_headers, 'hex'),
    (EXTRACT(EPOCH FROM record_timestamp) * 1000)::bigint, class, reason, COALESCE(sql_state, '-'), target_table, COALESCE(target_column, '-'),
    attempts, status, first_seen = last_seen)
    FROM oncesink_dead_letters ORDER BY topic, partition_id, record_offset";

async fn letters(rig: &Rig) -> Vec<String> {
    rig.schema.column(LETTER).await
}

#[tokio::test(flavor = "multi_thread")]
async fn c065_a_field_that_does_not_fit_is_kept_with_its_reason_and_told_without_its_value() {
    let mut rig = rig("misfit", 2, "writers = 1").await;
    let mut records = rig.records(1, 1_000);
    let _ = rig.records(1, 1);
    let value = "{\"partition_id\":1,\"seq\":\"TOP-SECRET-4711\",\"note\":\"n\",\"amount\":1}";
    let misfit = Record::to(1).key("k-1").value(value).header("trace", Some(b"t")).header("none", None);
    records.insert(500, misfit.timestamp(1_700_000_000_123));
    rig.kafka.produce(&rig.topic, records).await;
    let process = rig.run();
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 1_001).await;

    assert_eq!(rig.schema.count(&rig.topic).await, 1_000);
    let place = format!("{}.{}", rig.schema.name(), rig.topic);
    // Two headers: trace with t, none without a value.
    let headers = "040a7472616365027408".to_owned() + "6e6f6e6501";
    assert_eq!(
        letters(&rig).await,
        [format!("t 1 500 k-1 {value} {headers} 1700000000123 value not_a_number 22P02 {place} seq 1 new t")]
    );
    let reason = [("topic", rig.topic.as_str()), ("reason", "not_a_number")];
    assert_eq!(scrape.value("oncesink_records_dead_lettered_total", &reason), Some(1.0));
    assert_eq!(scrape.sum("oncesink_records_dead_lettered_total", &[]), 1.0);
    assert_eq!(scrape.sum("oncesink_records_written_total", &[]), 1_000.0);
    let line = process.wait_for_line(|line| line.text.contains("dead-lettered: "), PATIENCE).await.text;
    for told in
        [&format!("{}/1@500 ", rig.topic), "WARN", "field \\\"seq\\\"", "column", "not_a_number", &place]
    {
        assert!(line.contains(told), "{told}: {line}");
    }
    assert!(!process.text().contains("TOP-SECRET-4711"), "{}", process.text());
    assert!(process.text().contains("a bad record is kept in oncesink_dead_letters"), "{}", process.text());

    let (code, lines) = rig.command(&["status"]).run(PATIENCE).await;
    let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    assert!(
        code == 0 && text.contains(&format!("{}: 1 new dead letter in oncesink_dead_letters", rig.topic)),
        "{text}"
    );
}

/// The lines of bad records so far, and how many records the summing lines speak of.
fn told(process: &Process) -> (usize, usize) {
    let text = process.text();
    let lines = text.lines().filter(|line| line.contains(" dead-lettered: ")).count();
    let more = text.lines().filter_map(|line| {
        let (before, _) = line.split_once(" more bad records were set aside")?;
        before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
    });
    (lines, more.sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn c065_many_bad_records_are_told_by_a_few_lines_a_second_and_a_count() {
    let mut rig = rig("sampled", 3, "writers = 3").await;
    let bad: Vec<(i32, i64)> = (0..3).flat_map(|p| (0..400).map(move |seq| (p, seq))).collect();
    for partition in 0..3 {
        let places: Vec<i64> = (0..400).collect();
        let records = with_spoilt(&mut rig, partition, 410, &places);
        rig.kafka.produce(&rig.topic, records).await;
    }
    let began = Instant::now();
    let process = rig.run();
    each_once_with(&rig, &bad).await;
    let all =
        eventually_within(PATIENCE, async || told(&process), |(lines, more)| lines + more == 1_200).await;
    let seconds = began.elapsed().as_secs() as usize + 1;
    assert!(all.0 >= 5 && all.0 <= 5 * seconds, "{all:?} within {seconds} s");
}

/// Rows, dead letter and offset bear the number of the transaction that wrote them.
#[tokio::test(flavor = "multi_thread")]
async fn c119_a_null_character_is_a_dead_letter_in_the_transaction_of_the_records_around_it() {
    for note in ["ab\\u0000cd", "\\u0000"] {
        let rig = rig("nul", 1, "batch = { linger = \"300 ms\" }").await;
        rig.schema
            .execute(&format!(
                "DROP TABLE \"{topic}\"; CREATE TABLE \"{topic}\" (id int PRIMARY KEY, note text)",
                topic = rig.topic
            ))
            .await;
        let record = |id: i32, note: &str| {
            Record::to(0)
                .key(format!("{{\"id\":{id}}}"))
                .value(format!("{{\"id\":{id},\"note\":\"{note}\"}}"))
        };
        rig.kafka.produce(&rig.topic, [record(0, "clean"), record(1, note), record(2, "clean too")]).await;
        rig.run_until_end().await;
        assert_eq!(rig.stored(0).await, 3);
        let notes: Vec<String> =
            rig.schema.column(&format!("SELECT id || ' ' || note FROM \"{}\" ORDER BY id", rig.topic)).await;
        assert_eq!(notes, ["0 clean", "2 clean too"]);
        let letter: String = rig
            .schema
            .value("SELECT concat_ws(' ', record_offset, convert_from(record_value, 'UTF8'), class, reason, target_column) FROM oncesink_dead_letters")
            .await;
        assert_eq!(letter, format!("1 {{\"id\":1,\"note\":\"{note}\"}} value null_character note"));
        let transactions: i64 = rig
            .schema
            .value(&format!(
                "SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM \"{}\" UNION ALL SELECT xmin FROM oncesink_dead_letters
                 UNION ALL SELECT xmin FROM kafka_offsets) AS written",
                rig.topic
            ))
            .await;
        assert_eq!(transactions, 1, "two rows, the dead letter and the offset");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c077_bytes_that_are_no_utf_8_are_kept_as_they_are() {
    let mut rig = rig("bytes", 1, "").await;
    let mut records = rig.records(0, 99);
    let _ = rig.records(0, 1);
    records.insert(50, Record::to(0).value(b"{\"n\":\"\xC3\x28\"}".to_vec()));
    rig.kafka.produce(&rig.topic, records).await;
    rig.run_until_end().await;
    assert_eq!(rig.schema.count(&rig.topic).await, 99);
    let kept: String =
        rig.schema.value("SELECT class || encode(record_value, 'hex') FROM oncesink_dead_letters").await;
    assert_eq!(kept, "decode7b226e223a22c328227d");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_two_good_records_around_a_bad_one_arrive() {
    let mut rig = rig("around", 1, "").await;
    let records = with_spoilt(&mut rig, 0, 23, &[11]);
    rig.kafka.produce(&rig.topic, records).await;
    rig.run_until_end().await;
    each_once_with(&rig, &[(0, 11)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_records_of_several_partitions_in_one_batch_are_kept_and_the_rest_is_written() {
    let mut rig = rig("several", 4, "writers = 1\nbatch = { linger = \"200 ms\" }").await;
    let places: [&[i64]; 4] = [&[0, 1, 2], &[199], &[], &[50, 51, 150]];
    let mut bad = Vec::new();
    for (partition, places) in (0..4).zip(places) {
        let records = with_spoilt(&mut rig, partition, 200, places);
        rig.kafka.produce(&rig.topic, records).await;
        bad.extend(places.iter().map(|place| (partition, *place)));
    }
    let process = rig.run();
    each_once_with(&rig, &bad).await;
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 800).await;
    assert_eq!(scrape.sum("oncesink_records_dead_lettered_total", &[]), 7.0);
    assert_eq!(scrape.sum("oncesink_batch_rows_sum", &[]), 800.0);
    assert_eq!(scrape.sum("oncesink_partition_state", &[("state", "stopped")]), 0.0);
}

/// Nothing to be written at all: the offset moves with the dead letters.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_bad_records_only_moves_the_offset() {
    let mut rig = rig("only", 1, "").await;
    let places: Vec<i64> = (0..50).collect();
    let records = with_spoilt(&mut rig, 0, 50, &places);
    rig.kafka.produce(&rig.topic, records).await;
    rig.run_until_end().await;
    each_once_with(&rig, &places.iter().map(|place| (0, *place)).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_policy_skip_a_bad_record_is_passed_over_counted_and_told() {
    let mut rig = Rig::new("skipped", 2).await;
    rig.sink_lines = "on_bad_record = \"skip\"".to_owned();
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD CHECK (seq <> 70)", rig.topic)).await;
    for partition in 0..2 {
        let records = with_spoilt(&mut rig, partition, 100, &[30]);
        rig.kafka.produce(&rig.topic, records).await;
    }
    let process = rig.run();
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 200).await;
    let of = |what: &str| scrape.sum(&format!("oncesink_records_{what}_total"), &[]);
    assert_eq!((of("written"), of("skipped"), of("dead_lettered")), (196.0, 4.0, 0.0));
    assert_eq!(rig.schema.count(&rig.topic).await, 196);
    assert_eq!(dead(&rig).await.len(), 0);
    assert_eq!((rig.stored(0).await, rig.stored(1).await), (100, 100));
    let lines = process.text().lines().filter(|line| line.contains(" skipped: ")).count();
    assert_eq!(lines, 4, "{}", process.text());
    assert!(process.text().contains("a bad record is LEFT OUT"), "{}", process.text());
}

/// A second pass over the same records, which a person ordered.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_bad_again_after_a_reset_raises_the_attempts_of_its_dead_letter() {
    let mut rig = rig("again", 1, "into_rows = \"accept\"").await;
    let records = with_spoilt(&mut rig, 0, 20, &[5, 6]);
    rig.kafka.produce(&rig.topic, records).await;
    rig.run_until_end().await;
    each_once_with(&rig, &[(0, 5), (0, 6)]).await;
    rig.schema
        .execute(
            "UPDATE oncesink_dead_letters SET status = 'discarded', last_seen = last_seen - INTERVAL '1 hour',
                    first_seen = first_seen - INTERVAL '2 hours' WHERE record_offset = 5",
        )
        .await;
    let place = format!("{}/0", rig.topic);
    let args = ["reset", "ledger", &place, "--to", "earliest", "--expect", "20", "--reason", "a test"];
    let (code, lines) = rig.command(&args).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    rig.run_until_end().await;
    let sql = "SELECT concat_ws(' ', record_offset, attempts, status, last_seen > now() - INTERVAL '10 min',
               first_seen < now() - INTERVAL '10 min') FROM oncesink_dead_letters ORDER BY record_offset";
    assert_eq!(rig.schema.column::<String>(sql).await, ["5 2 new t t", "6 2 new t f"]);
}

/// The old picture of the catalog is no verdict: the field has its column by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_added_while_running_is_found_before_anything_is_dead_lettered() {
    let mut rig = rig("column", 2, "").await;
    rig.produce(100).await;
    let _process = rig.run();
    rig.all_once().await;
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD COLUMN colour text", rig.topic)).await;
    for partition in 0..2 {
        let _ = rig.records(partition, 1);
        let value = row(partition, 100).replace("{\"partition_id\"", "{\"colour\":\"red\",\"partition_id\"");
        rig.kafka.produce(&rig.topic, [Record::to(partition).value(value)]).await;
    }
    rig.produce(50).await;
    each_once_with(&rig, &[]).await;
}

/// More bytes than one statement takes.
#[tokio::test(flavor = "multi_thread")]
async fn large_records_are_kept() {
    let mut rig = rig("large", 1, "").await;
    let filler = "x".repeat(700_000);
    let bad = |seq: i64| {
        let value = format!("{{\"partition_id\":0,\"seq\":{seq},\"note\":\"{filler}\",\"amount\":\"much\"}}");
        Record::to(0).value(value)
    };
    let _ = rig.records(0, 4);
    rig.kafka.produce(&rig.topic, (0..4).map(bad)).await;
    let records = rig.records(0, 5);
    rig.kafka.produce(&rig.topic, records).await;
    rig.run_until_end().await;
    each_once_with(&rig, &[(0, 0), (0, 1), (0, 2), (0, 3)]).await;
    let kept = "SELECT count(*) FROM oncesink_dead_letters WHERE length(record_value) > 700000 AND record_key IS NULL
                AND record_headers IS NULL";
    assert_eq!(rig.schema.value::<i64>(kept).await, 4);
}

/// The key and the value of the record of a tombstone, in insert mode.
#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_that_is_no_row_is_kept_without_a_value() {
    let mut rig = rig("tombstone", 1, "").await;
    rig.produce(3).await;
    let _ = rig.records(0, 1);
    rig.kafka.produce(&rig.topic, [Record::to(0).key("gone")]).await;
    rig.run_until_end().await;
    let kept: String = rig
        .schema
        .value("SELECT concat_ws(' ', convert_from(record_key, 'UTF8'), record_value IS NULL, class, reason) FROM oncesink_dead_letters")
        .await;
    assert_eq!(kept, "gone t decode tombstone");
}

/// A role of its own for the sink, which may do everything in the rig's schema.
async fn role(rig: &mut Rig) -> String {
    let (schema, role) = (rig.schema.name().to_owned(), unique("letters"));
    rig.schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    rig.url = rig.url.replace("//postgres@", &format!("//{role}@"));
    role
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grants_for_the_dead_letters_are_asked_for_at_the_start() {
    let mut rig = rig("grants", 1, "").await;
    let role = role(&mut rig).await;
    rig.schema.execute(&format!("REVOKE INSERT, UPDATE ON oncesink_dead_letters FROM {role}")).await;
    let (code, lines) = rig.command(&["check"]).run(PATIENCE).await;
    let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    let schema = rig.schema.name();
    let grant = format!("GRANT INSERT, UPDATE ON \"{schema}\".\"oncesink_dead_letters\" TO \"{role}\"");
    assert!(code == 3 && text.contains(&grant), "{code}: {text}");
}

/// Our own table refuses: its partition waits and says why, the other one flows on, and no record is lost.
async fn refused(rig: &mut Rig, order: &str, remedy: &str) {
    rig.sink_lines.push_str("\nwriters = 1");
    let process = rig.run();
    process.wait_for_line(|line| line.text.contains("2 partitions claimed"), PATIENCE).await;
    rig.schema.execute(order).await;
    rig.produce(10).await;
    let records = with_spoilt(rig, 1, 30, &[20]);
    rig.kafka.produce(&rig.topic, records).await;
    let records = rig.records(0, 30);
    rig.kafka.produce(&rig.topic, records).await;
    let waits = process.wait_for_line(|line| line.text.contains("dead letters: "), PATIENCE).await.text;
    let place = format!("{}/1", rig.topic);
    assert!(waits.contains(".oncesink_dead_letters") && waits.contains(&place), "{waits}");
    eventually_within(PATIENCE, || rig.stored(0), |stored| *stored == 40).await;
    assert!(rig.stored(1).await <= 20);
    assert_eq!(dead(rig).await.len(), 0);
    rig.schema.execute(remedy).await;
    each_once_with(rig, &[(1, 20)]).await;
    assert!(!process.text().contains("stopped: "), "{}", process.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_on_the_dead_letters_that_is_revoked_holds_up_the_partition_and_loses_nothing() {
    let mut rig = rig("revoked", 2, "").await;
    let role = role(&mut rig).await;
    let order = format!("REVOKE INSERT ON oncesink_dead_letters FROM {role}");
    refused(&mut rig, &order, &format!("GRANT INSERT ON oncesink_dead_letters TO {role}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_on_the_dead_letters_is_no_fault_of_a_record() {
    let mut rig = rig("refuses", 2, "").await;
    let order = "ALTER TABLE oncesink_dead_letters ADD CONSTRAINT none CHECK (false)";
    refused(&mut rig, order, "ALTER TABLE oncesink_dead_letters DROP CONSTRAINT none").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_dead_letters_that_drops_rows_in_silence_loses_none() {
    let mut rig = rig("swallows", 2, "").await;
    let order = "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
                 CREATE TRIGGER swallow BEFORE INSERT ON oncesink_dead_letters FOR EACH ROW EXECUTE FUNCTION swallow()";
    refused(&mut rig, order, "DROP TRIGGER swallow ON oncesink_dead_letters").await;
}

/// A first batch fails by the loss of its connection while the second one waits: last in the log is last in the table.
#[tokio::test(flavor = "multi_thread")]
async fn c089_after_a_failed_flush_the_order_holds() {
    let mut rig = rig("flush", 1, "batch = { rows = 50 }").await;
    rig.schema
        .execute(&format!(
            "CREATE TABLE latest (k int PRIMARY KEY, v bigint);
             ALTER TABLE \"{topic}\" ADD COLUMN arrived bigserial;
             CREATE FUNCTION upsert() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 INSERT INTO latest VALUES (5, NEW.seq) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v;
                 RETURN NULL;
             END $$;
             CREATE TRIGGER upsert AFTER INSERT ON \"{topic}\" FOR EACH ROW EXECUTE FUNCTION upsert()",
            topic = rig.topic
        ))
        .await;
    let proxy = Proxy::start(rig.schema.url());
    rig.url = proxy.url().to_owned();
    for point in [Point::CommitOf(rig.topic.clone()), Point::Statement("oncesink_dead_letters".into())] {
        proxy.arm_times(2, point, Action::CutBefore);
    }
    let places: Vec<i64> = (0..500).step_by(49).collect();
    let records = with_spoilt(&mut rig, 0, 500, &places);
    rig.kafka.produce(&rig.topic, records).await;
    let process = rig.run();
    let bad: Vec<(i32, i64)> = places.iter().map(|place| (0, *place)).collect();
    each_once_with(&rig, &bad).await;
    assert_eq!(proxy.seen().cuts, 4, "the flushes failed: {}", process.text());
    assert_eq!(rig.schema.value::<i64>("SELECT v FROM latest").await, 499);
    let order = format!(
        "SELECT count(*) FROM (SELECT seq - lag(seq) OVER (ORDER BY arrived) AS step FROM \"{}\") AS s WHERE step <= 0",
        rig.topic
    );
    assert_eq!(rig.schema.value::<i64>(&order).await, 0, "rows were written in the order of their offsets");
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 500).await;
    assert_eq!(books(&scrape, &rig.topic), (500.0, 500.0));
}
