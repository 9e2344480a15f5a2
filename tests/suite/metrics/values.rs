//! What is said of a partition against what the brokers and the database say of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oncesink_test_support::kafka::Record;

use super::{caught_up, running, scraped};
use crate::rig::{Rig, row};
use crate::scrape::{Http, Scrape};

fn ago(seconds: u64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(seconds);
    now.as_millis() as i64
}

/// Waits until what is scraped of a partition is what brokers and database say now.
async fn agrees(rig: &Rig, http: &Http, partition: i32) -> Scrape {
    oncesink_test_support::eventually(crate::rig::PATIENCE, || async {
        let (before, stored) =
            (rig.kafka.watermarks(&rig.topic, partition).await, rig.stored(partition).await);
        let scrape = http.scrape().await;
        let of = |name: &str| scrape.partition(name, &rig.topic, partition).map(|value| value as i64);
        let said = [
            of("oncesink_high_watermark_offset"),
            of("oncesink_last_stable_offset"),
            of("oncesink_log_start_offset"),
            of("oncesink_stored_offset"),
            of("oncesink_lag_records"),
            of("oncesink_lag_readable_records"),
        ];
        let facts = [
            before.high,
            before.last_stable,
            before.start,
            stored,
            before.high - stored,
            before.last_stable - stored,
        ];
        (said == facts.map(Some)).then_some(scrape)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_and_lags_are_those_of_the_brokers() {
    let mut rig = Rig::new("values", 2).await;
    rig.produce(300).await;
    rig.kafka.delete_records(&rig.topic, 1, 100).await;
    let (_process, http) = running(&rig).await;
    scraped(&http, |scrape| caught_up(&rig, scrape)).await;
    for (partition, start) in [(0, 0.0), (1, 100.0)] {
        let scrape = agrees(&rig, &http, partition).await;
        let of = |name| scrape.partition(name, &rig.topic, partition);
        assert_eq!(of("oncesink_log_start_offset"), Some(start));
        assert_eq!(of("oncesink_stored_offset"), Some(300.0));
        assert_eq!(of("oncesink_lag_records"), Some(0.0));
        assert_eq!(of("oncesink_lag_seconds"), Some(0.0));
        assert_eq!(of("oncesink_buffered_records"), Some(0.0));
    }

    // An open transaction: what stands behind it is there, and cannot be read.
    let mut open = rig.kafka.begin(Duration::from_secs(60)).await;
    let (inside, behind) = (rig.records(0, 3), rig.records(0, 5));
    open.produce(&rig.topic, inside).await;
    rig.kafka.produce(&rig.topic, behind).await;
    let scrape = scraped(&http, |scrape| {
        scrape.partition("oncesink_lag_records", &rig.topic, 0) == Some(8.0)
            && scrape.partition("oncesink_lag_seconds", &rig.topic, 0).is_some()
    })
    .await;
    assert_eq!(scrape.partition("oncesink_lag_readable_records", &rig.topic, 0), Some(0.0));
    assert_eq!(scrape.partition("oncesink_last_stable_offset", &rig.topic, 0), Some(300.0));
    agrees(&rig, &http, 0).await;
    open.commit().await;
    // Its marker takes an offset without a record.
    let scrape = scraped(&http, |scrape| {
        caught_up(&rig, scrape) && scrape.partition("oncesink_stored_offset", &rig.topic, 0) == Some(309.0)
    })
    .await;
    agrees(&rig, &http, 0).await;
    assert!(scrape.sum("oncesink_offset_gaps_total", &[("cause", "missing")]) >= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lag_in_seconds_is_the_age_of_the_first_record_not_stored() {
    let mut rig = Rig::new("age", 1).await;
    rig.produce(10).await;
    let (_process, http) = running(&rig).await;
    scraped(&http, |scrape| caught_up(&rig, scrape)).await;

    // Held back by a lock on the table, until the writer has met it.
    let mut holder = rig.schema.connection().await;
    let lock = format!("BEGIN; LOCK TABLE \"{}\" IN ACCESS EXCLUSIVE MODE", rig.topic);
    sqlx_execute(&mut holder, &lock).await;
    let old = ago(3600);
    let backlog = [(10, old), (11, ago(60)), (12, ago(30))];
    let backlog = backlog.map(|(seq, time)| Record::to(0).value(row(0, seq)).timestamp(time));
    rig.records(0, 3);
    rig.kafka.produce(&rig.topic, backlog).await;
    let age = |scrape: &Scrape| scrape.partition("oncesink_lag_seconds", &rig.topic, 0);
    let scrape = scraped(&http, |scrape| {
        age(scrape).is_some_and(|seconds| seconds > 0.0)
            && scrape.partition("oncesink_lag_records", &rig.topic, 0) == Some(3.0)
            && scrape.partition("oncesink_buffered_records", &rig.topic, 0) == Some(3.0)
    })
    .await;
    let (seconds, now) = (age(&scrape).unwrap(), (ago(0) - old) as f64 / 1000.0);
    assert!((now - 30.0..=now).contains(&seconds), "{seconds} of {now}");
    assert_eq!(scrape.partition("oncesink_stored_offset", &rig.topic, 0), Some(10.0));
    // The lock is met, and the age is known all the same.
    let scrape = scraped(&http, |scrape| {
        scrape.state(&rig.topic, 0).as_deref() == Some("blocked")
            && age(scrape).is_some_and(|seconds| seconds > 0.0)
    })
    .await;
    assert!(age(&scrape).unwrap() >= seconds);
    assert!(scrape.sum("oncesink_retries_total", &[("class", "sick_object")]) >= 1.0);
    sqlx_execute(&mut holder, "ROLLBACK").await;
    scraped(&http, |scrape| caught_up(&rig, scrape)).await;

    // Stopped at a bad record: its age, and a healthy process.
    let old = ago(7200);
    rig.kafka
        .produce(
            &rig.topic,
            [Record::to(0).value(row(0, 13)).timestamp(ago(1)), Record::to(0).value("{").timestamp(old)],
        )
        .await;
    let scrape = scraped(&http, |scrape| {
        scrape.state(&rig.topic, 0).as_deref() == Some("stopped")
            && age(scrape).is_some_and(|seconds| seconds > 0.0)
    })
    .await;
    let (seconds, now) = (age(&scrape).unwrap(), (ago(0) - old) as f64 / 1000.0);
    assert!((now - 30.0..=now).contains(&seconds), "{seconds} of {now}");
    assert_eq!(scrape.partition("oncesink_stored_offset", &rig.topic, 0), Some(14.0));
    assert_eq!(http.get("/healthz").await.0, 200);
    assert_eq!(http.get("/readyz").await, (200, "ok\n".to_owned()));
}

async fn sqlx_execute(connection: &mut oncesink::sqlx::PgConnection, sql: &str) {
    use oncesink::sqlx::Executor;
    connection.execute(sql).await.unwrap();
}
