//! Two topics, two tables, one of them sick: the other one's rows flow on, and the sick one goes on by itself when it is mended.

use std::time::Instant;

use oncesink_test_support::kafka::Record;
use oncesink_test_support::{eventually_within, unique};

use super::metric;
use crate::rig::{PATIENCE, Rig, row};

const EACH: i64 = 200;

/// A second topic with a table like the first one's, through one writer.
struct Two {
    rig: Rig,
    second: String,
    produced: i64,
}

impl Two {
    async fn new(stem: &str) -> Self {
        let mut rig = Rig::new(stem, 2).await;
        let second = unique(&format!("{stem}_second"));
        rig.kafka.create_topic(&second, 1, &[]).await;
        rig.schema
            .execute(&format!("CREATE TABLE \"{second}\" (LIKE \"{}\" INCLUDING ALL)", rig.topic))
            .await;
        rig.more_topics = format!(", \"{second}\"");
        rig.sink_lines = "writers = 1".into();
        Self { rig, second, produced: 0 }
    }

    /// More records for both topics.
    async fn produce(&mut self) {
        let records = (self.produced..self.produced + EACH).map(|seq| Record::to(0).value(row(0, seq)));
        self.rig.kafka.produce(&self.second, records).await;
        self.produced += EACH;
        self.rig.produce(EACH).await;
    }

    async fn second_is_whole(&self) {
        eventually_within(PATIENCE, || self.rig.schema.count(&self.second), |rows| *rows >= self.produced)
            .await;
        let sql = format!(
            "SELECT format('%s %s %s %s', count(*), count(DISTINCT seq), min(seq), max(seq)) FROM \"{}\"",
            self.second
        );
        let (rows, last) = (self.produced, self.produced - 1);
        assert_eq!(self.rig.schema.value::<String>(&sql).await, format!("{rows} {rows} 0 {last}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_table_holds_up_its_own_topic_alone() {
    let mut two = Two::new("locked").await;
    two.produce().await;
    let process = two.rig.run();
    let address = metric::address(&process).await;
    two.rig.all_once().await;
    two.second_is_whole().await;
    let began = Instant::now();
    let mut foreign = two.rig.schema.connection().await;
    let lock = format!("BEGIN; LOCK TABLE \"{}\" IN ACCESS EXCLUSIVE MODE", two.second);
    oncesink::sqlx::Executor::execute(&mut foreign, &*lock).await.expect("the lock");
    let sick = async || metric::sum(&address, "oncesink_retries_total", &["class=\"sick_object\""]).await;
    while sick().await < 5.0 {
        assert!(began.elapsed() < PATIENCE, "{}", process.text());
        two.produce().await;
        two.rig.all_once().await;
    }
    oncesink::sqlx::Executor::execute(&mut foreign, "COMMIT").await.expect("the end of the lock");
    two.second_is_whole().await;
    // However many attempts: one line at the begin, one at the end.
    let said = |text: &str| process.lines().iter().filter(|line| line.text.contains(text)).count();
    assert_eq!(said("trying again"), 1, "{}", process.text());
    assert_eq!((said("flows again after"), said("partitions claimed")), (1, 1), "{}", process.text());
    two.rig.each_once().await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_table_holds_up_its_own_topic_alone() {
    let mut two = Two::new("dropped").await;
    two.produce().await;
    let process = two.rig.run();
    two.rig.all_once().await;
    two.second_is_whole().await;
    two.rig.schema.execute(&format!("ALTER TABLE \"{}\" RENAME TO elsewhere", two.second)).await;
    for _ in 0..2 {
        two.produce().await;
        two.rig.all_once().await;
    }
    assert!(process.text().contains("trying again, the others flow on"), "{}", process.text());
    two.rig.schema.execute(&format!("ALTER TABLE elsewhere RENAME TO \"{}\"", two.second)).await;
    two.second_is_whole().await;
    two.rig.each_once().await;
    assert!(process.is_running() && !process.text().contains("stopped"), "{}", process.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_grant_holds_up_its_own_topic_alone() {
    let mut two = Two::new("revoked").await;
    let (schema, role) = (two.rig.schema.name().to_owned(), unique("writer"));
    two.rig
        .schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    two.rig.url = two.rig.url.replace("//postgres@", &format!("//{role}@"));
    assert!(two.rig.url.contains(&role), "{}", two.rig.url);
    two.produce().await;
    let process = two.rig.run();
    two.rig.all_once().await;
    two.second_is_whole().await;
    two.rig.schema.execute(&format!("REVOKE INSERT ON \"{}\" FROM {role}", two.second)).await;
    for _ in 0..2 {
        two.produce().await;
        two.rig.all_once().await;
    }
    assert!(process.text().contains("trying again, the others flow on"), "{}", process.text());
    two.rig.schema.execute(&format!("GRANT INSERT ON \"{}\" TO {role}", two.second)).await;
    two.second_is_whole().await;
    two.rig.each_once().await;
    assert!(process.is_running() && !process.text().contains("stopped"), "{}", process.text());
}

/// Somebody looks at one row of the offsets table and goes to lunch.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_offset_row_holds_up_its_own_partition_alone() {
    let mut rig = Rig::new("lunch", 3).await;
    rig.sink_lines = "writers = 1".into();
    rig.produce(EACH).await;
    let process = rig.run();
    rig.all_once().await;
    let mut foreign = rig.schema.connection().await;
    let lock = "BEGIN; SELECT FROM kafka_offsets WHERE partition_id = 1 FOR UPDATE";
    oncesink::sqlx::Executor::execute(&mut foreign, lock).await.expect("the lock");
    rig.produce(EACH).await;
    let others = format!("SELECT count(*) FROM \"{}\" WHERE partition_id <> 1", rig.topic);
    eventually_within(PATIENCE, || rig.schema.value::<i64>(&others), |rows| *rows == 4 * EACH).await;
    assert_eq!((rig.stored(1).await, rig.schema.count(&rig.topic).await), (EACH, 5 * EACH));
    let line = "is held by another transaction";
    process.wait_for_line(move |text| text.text.contains(line), PATIENCE).await;
    // A foreign session is never ended, however long it takes.
    let said = "has been held by another transaction for";
    process.wait_for_line(move |line| line.text.contains(said), PATIENCE).await;
    oncesink::sqlx::Executor::execute(&mut foreign, "COMMIT").await.expect("still there");
    rig.all_once().await;
}
