//! Dead letters and offsets commit together or not at all, and no fault of a server or a network becomes one.

use std::time::Duration;

use oncesink_test_support::eventually_within;
use oncesink_test_support::process::Line;
use oncesink_test_support::proxy::{Action, Point, Proxy};

use super::{each_once_with, read, rig, with_spoilt};
use crate::rig::{PATIENCE, Rig};
use crate::scrape::Http;

/// A part of the records is refused by the encoder, another by the server.
const SPOILT: i64 = 41;
const REFUSED: i64 = 83;

/// Three partitions of `count` records; answers which of them are bad.
async fn produced(rig: &mut Rig, count: i64) -> Vec<(i32, i64)> {
    rig.schema
        .execute(&format!(
            "ALTER TABLE \"{}\" ADD CONSTRAINT refused CHECK (seq % {REFUSED} <> 7)",
            rig.topic
        ))
        .await;
    let mut bad = Vec::new();
    for partition in 0..rig.partitions {
        let places: Vec<i64> = (0..count).filter(|seq| seq % SPOILT == 3).collect();
        let records = with_spoilt(rig, partition, count, &places);
        rig.kafka.produce(&rig.topic, records).await;
        let is_bad = |seq: &i64| seq % SPOILT == 3 || seq % REFUSED == 7;
        bad.extend((0..count).filter(is_bad).map(|seq| (partition, seq)));
    }
    bad
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_again_and_again_neither_loses_nor_doubles_a_dead_letter() {
    let mut rig = rig("killed", 3, "batch = { rows = 100 }").await;
    // A bearer of the same name has its partitions back at once, so that there is time for many kills.
    rig.kafka_lines = "group.instance.id = \"one\"".to_owned();
    let bad = produced(&mut rig, 1_500).await;
    // Every statement that keeps dead letters takes a while, and is found open by the kills.
    rig.schema
        .execute(
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
                 'BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END';
             CREATE TRIGGER dawdle AFTER INSERT ON oncesink_dead_letters FOR EACH STATEMENT EXECUTE FUNCTION dawdle()",
        )
        .await;
    let count = async || rig.schema.count("oncesink_dead_letters").await;
    let keeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO%oncesink_dead_letters%' AND state = 'active'
                   AND application_name = 'oncesink ";
    let keeping = format!("{keeping}{}'", rig.topic);
    let mut kills = 0;
    for _ in 0..5 {
        let (process, before) = (rig.run(), count().await);
        let look = async || (count().await, rig.schema.value::<i64>(&keeping).await);
        eventually_within(PATIENCE, look, |(now, open)| *now > before && *open > 0).await;
        process.kill9();
        kills += 1;
    }
    assert!((count().await as usize) < bad.len(), "the kills came too late");
    let _last = rig.run();
    each_once_with(&rig, &bad).await;
    assert_eq!(kills, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_neither_loses_nor_doubles_a_dead_letter_and_the_books_balance() {
    for cut in [Action::CutBefore, Action::CutAfter] {
        let mut rig = rig("doubt", 3, "writers = 1\nbatch = { rows = 100 }").await;
        let bad = produced(&mut rig, 300).await;
        let proxy = Proxy::start(rig.schema.url());
        rig.url = proxy.url().to_owned();
        proxy.arm_times(6, Point::CommitOf("oncesink_dead_letters".into()), cut);
        let process = rig.run();
        each_once_with(&rig, &bad).await;
        assert_eq!(proxy.seen().cuts, 6, "{}", process.text());
        let http = Http::of(&process).await;
        let scrape = read(&http, &rig, 900).await;
        assert_eq!(scrape.sum("oncesink_in_doubt_total", &[]), 6.0);
        assert_eq!(scrape.sum("oncesink_records_dead_lettered_total", &[]), bad.len() as f64);
    }
}

/// The rows of the fenced transaction, its dead letters and its offset go together.
#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_transaction_leaves_no_dead_letter() {
    let mut rig = rig("fenced", 1, "writers = 1\nbatch = { rows = 100 }").await;
    let bad = produced(&mut rig, 300).await;
    let proxy = Proxy::start(rig.schema.url());
    rig.url = proxy.url().to_owned();
    // Before the advance of a transaction that has dead letters: somebody else claims the row meanwhile.
    proxy.arm(Point::Statement("SET last_offset = w.to_offset".into()), Action::Hold);
    let process = rig.run();
    proxy.wait_for(|seen| seen.held == 1).await;
    rig.schema
        .execute("UPDATE kafka_offsets SET owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid()")
        .await;
    assert_eq!(rig.schema.count("oncesink_dead_letters").await, 0);
    proxy.release();
    each_once_with(&rig, &bad).await;
    let http = Http::of(&process).await;
    let scrape = read(&http, &rig, 300).await;
    assert!(scrape.sum("oncesink_fenced_total", &[]) >= 1.0, "{}", process.text());
}

/// The server goes away in the middle of the search, several times; its sessions are ended, its connections cut, its statements time out.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_during_the_search_buries_nothing() {
    let mut rig = rig("outage", 2, "writers = 1\ntimeout = \"1 s\"").await;
    let bad = produced(&mut rig, 200).await;
    // Slow enough that the faults find the search under way.
    let dawdle = "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NULL; END';
                  CREATE TRIGGER dawdle BEFORE INSERT ON @t FOR EACH STATEMENT EXECUTE FUNCTION dawdle()";
    rig.schema.execute(&dawdle.replace("@t", &format!("\"{}\"", rig.topic))).await;
    let proxy = Proxy::start(rig.schema.url());
    rig.url = proxy.url().to_owned();
    let process = rig.run();
    let http = Http::of(&process).await;
    let kept = async || rig.schema.count("oncesink_dead_letters").await;
    for (round, action) in
        [Action::CutBefore, Action::CutAfter, Action::StallBefore, Action::CutBefore, Action::CutAfter]
            .into_iter()
            .enumerate()
    {
        proxy.arm(Point::Statement("RELEASE SAVEPOINT".into()), action);
        let hit = round as u64 + 1;
        proxy.wait_for(move |seen| seen.cuts + seen.stalls >= hit).await;
        if round == 1 {
            proxy.refuse();
            tokio::time::sleep(Duration::from_millis(300)).await;
            proxy.pass();
        }
    }
    each_once_with(&rig, &bad).await;
    assert_eq!(kept().await, bad.len() as i64, "{}", process.text());
    let scrape = read(&http, &rig, 400).await;
    let others =
        ["transient", "timeout"].map(|class| scrape.sum("oncesink_retries_total", &[("class", class)]));
    assert!(others.iter().sum::<f64>() >= 3.0, "{others:?}");
    assert_eq!(scrape.sum("oncesink_records_dead_lettered_total", &[]), bad.len() as f64);
}

/// A lock that somebody holds, a table that is gone for a while: sick objects, and no record is at fault.
#[tokio::test(flavor = "multi_thread")]
async fn a_sick_table_buries_nothing() {
    let mut rig = rig("sick", 2, "").await;
    rig.produce(50).await;
    let process = rig.run();
    each_once_with(&rig, &[]).await;
    let topic = rig.topic.clone();
    rig.schema.execute(&format!("ALTER TABLE \"{topic}\" RENAME TO elsewhere")).await;
    let records = with_spoilt(&mut rig, 0, 100, &[75]);
    rig.kafka.produce(&topic, records).await;
    let name = topic.clone();
    let warned = move |line: &Line| line.text.contains("WARN") && line.text.contains(&name);
    process.wait_for_line(warned, PATIENCE).await;
    assert_eq!(rig.schema.count("oncesink_dead_letters").await, 0, "{}", process.text());
    rig.schema.execute(&format!("ALTER TABLE elsewhere RENAME TO \"{topic}\"")).await;
    each_once_with(&rig, &[(0, 75)]).await;
    let mut lock = rig.schema.connection().await;
    oncesink::sqlx::Executor::execute(&mut lock, &*format!("BEGIN; LOCK TABLE \"{topic}\" IN SHARE MODE"))
        .await
        .unwrap();
    let records = with_spoilt(&mut rig, 1, 100, &[75]);
    rig.kafka.produce(&topic, records).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(rig.schema.count("oncesink_dead_letters").await, 1);
    oncesink::sqlx::Executor::execute(&mut lock, "COMMIT").await.unwrap();
    each_once_with(&rig, &[(0, 75), (1, 75)]).await;
}
