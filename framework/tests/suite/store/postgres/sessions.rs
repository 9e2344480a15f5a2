//! Sessions: only writable ones, none left open, none waited for longer than said.

use std::time::{Duration, Instant};

use oncesink::Class;
use oncesink::postgres::{Postgres, PostgresConfig, Timeouts};
use oncesink::store::{Claim, Store};
use oncesink_test_support::eventually;
use oncesink_test_support::proxy::{Action, Point, Proxy};
use sqlx::Executor;

use super::{Bench, step, wanted};

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_dropped_transaction_leaves_nothing_and_frees_its_rows() {
    let bench = Bench::with_rows("session_dropped", 1).await;
    let store = bench.store();
    let fence = bench.claim(&store, 0).await.fence;
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    store.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap();
    tx.sql().execute("INSERT INTO rows VALUES (10), (11)").await.unwrap();
    drop(tx);
    let begin = Instant::now();
    let claim = store.claim_waiting(&bench.identity("next"), &wanted("t", 0), false).await.unwrap();
    assert_eq!(super::claimed(&claim).offset, 10);
    assert!(begin.elapsed() < Duration::from_secs(1), "the lock was held for {:?}", begin.elapsed());
    assert_eq!(bench.schema.count("rows").await, 0);
}

#[tokio::test]
async fn a_failed_statement_leaves_no_session_in_an_aborted_transaction() {
    let bench = Bench::with_rows("session_aborted", 1).await;
    let store = bench.store();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("INSERT INTO rows VALUES (1), (1)").await.unwrap_err();
    let session = store.rollback(tx).await.unwrap();
    let aborted = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}' AND state LIKE 'idle in transaction%'",
        bench.group
    );
    assert_eq!(bench.schema.value::<i64>(&aborted).await, 0);
    assert!(store.begin(session, oncesink::Statements::Foreign).await.is_ok());
}

#[tokio::test]
async fn c025_a_cancelled_begin_never_leaves_an_open_transaction() {
    let bench = Bench::registered("session_cancelled", 1).await;
    let proxy = Proxy::start(bench.schema.url());
    let store = bench.store_at(proxy.url());
    let mut cancelled = 0;
    for round in 0..100_u64 {
        proxy.arm(Point::Statement("BEGIN".into()), Action::Delay(Duration::from_millis(20)));
        let session = store.connect().await.unwrap();
        let patience = Duration::from_micros(round * 300);
        match tokio::time::timeout(patience, store.begin(session, oncesink::Statements::Foreign)).await {
            Ok(begun) => drop(begun.unwrap()),
            Err(_) => cancelled += 1,
        }
        proxy.disarm();
    }
    assert!(cancelled > 20, "only {cancelled} were cancelled");
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}' AND state <> 'idle'",
        bench.group
    );
    eventually(DEADLINE, || async { (bench.schema.value::<i64>(&open).await == 0).then_some(()) }).await;
    // Looks, which keep a session, are not inside anybody's transaction either.
    let places = [wanted("t", 0).place];
    for _ in 0..100 {
        let look = store.rows(&places);
        let _ = tokio::time::timeout(Duration::from_micros(400), look).await;
    }
    eventually(DEADLINE, || async { (bench.schema.value::<i64>(&open).await == 0).then_some(()) }).await;
    assert_eq!(store.rows(&places).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_read_only_database_is_the_wrong_server() {
    let bench = Bench::registered("session_read_only", 1).await;
    let separator = if bench.schema.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}options=-c%20default_transaction_read_only%3Don", bench.schema.url());
    let failure = bench.store_at(&url).connect().await.err().expect("refused");
    assert_eq!(failure.class, Class::WrongServer, "{failure}");
}

#[tokio::test]
async fn what_does_not_answer_is_given_up_in_time_and_what_refuses_is_fatal() {
    let bench = Bench::registered("session_connect", 1).await;
    let proxy = Proxy::start(bench.schema.url());
    proxy.black_hole();
    let mut config = PostgresConfig::new(proxy.url());
    config.timeouts = Timeouts { connect: Duration::from_millis(200), ..Timeouts::default() };
    let store = Postgres::new(config, "g").unwrap();
    let begin = Instant::now();
    let failure = store.connect().await.err().expect("no answer");
    assert_eq!(failure.class, Class::Transient, "{failure}");
    assert!(begin.elapsed() < Duration::from_secs(5));

    let (server, _) = bench.schema.url().rsplit_once('/').unwrap();
    let absent = bench.store_at(&format!("{server}/no_such_database"));
    assert_eq!(absent.connect().await.err().expect("refused").class, Class::Fatal);
    let separator = if bench.schema.url().contains('?') { '&' } else { '?' };
    let no_tls = bench.store_at(&format!("{}{separator}sslmode=require", bench.schema.url()));
    assert_eq!(no_tls.connect().await.err().expect("refused").class, Class::Fatal);
    let closed = bench.store_at("postgres://postgres@127.0.0.1:1/x");
    assert_eq!(closed.connect().await.err().expect("refused").class, Class::Transient);
}

#[tokio::test]
async fn a_spare_session_that_died_is_replaced_without_an_error() {
    let bench = Bench::registered("session_spare", 1).await;
    let store = bench.store();
    let places = [wanted("t", 0).place];
    let of_group = format!("FROM pg_stat_activity WHERE application_name = 'oncesink {}'", bench.group);
    for _ in 0..3 {
        assert_eq!(store.rows(&places).await.unwrap().len(), 1);
        // A look keeps exactly one session.
        let count = format!("SELECT count(*) {of_group}");
        eventually(DEADLINE, || async { (bench.schema.value::<i64>(&count).await == 1).then_some(()) }).await;
        bench.schema.execute(&format!("SELECT pg_terminate_backend(pid) {of_group}")).await;
    }
}

#[tokio::test]
async fn configuration_that_cannot_be_is_refused_without_telling_secrets() {
    for (url, offsets, group) in [
        ("not a url, hunter2", None, "g"),
        ("postgres://u:hunter2@h:port/d", None, "g"),
        ("postgres://u:hunter2@h/d", Some("a.b.c"), "g"),
        ("postgres://u:hunter2@h/d", None, ""),
    ] {
        let config = PostgresConfig { offsets: offsets.map(str::to_owned), ..PostgresConfig::new(url) };
        assert!(!format!("{config:?}").contains("hunter2"));
        let failure = Postgres::new(config, group).err().expect("refused");
        assert_eq!(failure.class, Class::Fatal);
        assert!(!format!("{failure} {failure:?}").contains("hunter2"), "{failure:?}");
    }
    let long = "g".repeat(256);
    assert!(Postgres::new(PostgresConfig::new("postgres://h/d"), &long).is_err());
    assert!(Postgres::new(PostgresConfig::new("postgres://h/d"), &long[1..]).is_ok());
}

#[tokio::test]
async fn which_rows_are_held_is_seen_and_the_look_holds_none() {
    let bench = Bench::registered("session_locked", 3).await;
    let store = bench.store();
    let mut steps = Vec::new();
    for partition in 0..3 {
        steps.push(step(partition, bench.claim(&store, partition).await.fence, 10, 11));
    }
    assert_eq!(store.locked(&steps).await.unwrap(), []);
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    store.advance(&mut tx, &steps[1..2]).await.unwrap();
    assert_eq!(store.locked(&steps).await.unwrap(), [steps[1].place.clone()]);
    let claims =
        store.claim(&bench.identity("b"), &[wanted("t", 0), wanted("t", 1), wanted("t", 2)]).await.unwrap();
    let busy: Vec<bool> = claims.iter().map(|claim| *claim == Claim::Busy).collect();
    assert_eq!(busy, [false, true, false]);
}
