//! Everything at once, in an order that a seed decides: what must hold is what must hold after each fault alone.

use std::collections::BTreeSet;
use std::time::Duration;

use oncesink::TopicPartition;
use oncesink::postgres::{Postgres, PostgresConfig};
use oncesink::sqlx::Row;
use oncesink_test_support::process::Process;
use oncesink_test_support::proxy::{Action, Point, Proxy};

use super::commit::behind_proxy;
use crate::rig::{PATIENCE, Rig};

const PARTITIONS: i32 = 3;
const ROUNDS: u64 = 12;
/// Records that the table refuses, in every partition.
const BAD: [i64; 4] = [0, 37, 38, 411];
const SEED_VARIABLE: &str = "ONCESINK_TEST_SEED";

/// A small generator: the same faults for the same seed on every machine.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn of<T: Clone>(&mut self, choice: &[T]) -> T {
        choice[self.throw(choice.len() as u64) as usize].clone()
    }
}

/// The operator, who leaves out what stands in the way of a stopped partition.
async fn leave_out(rig: &Rig, store: &Postgres) -> Vec<(i32, i64)> {
    let stopped = "SELECT partition_id, last_offset FROM kafka_offsets WHERE state = 'stopped'";
    let mut left_out = Vec::new();
    for row in rig.schema.rows(stopped).await {
        let (partition, offset): (i32, i64) = (row.get(0), row.get(1));
        let place = TopicPartition::new(rig.topic.as_str(), partition);
        if store.skip(&place, offset, "chaos").await.is_ok() {
            left_out.push((partition, offset));
        }
    }
    left_out
}

async fn fault(dice: &mut Dice, rig: &Rig, proxy: &Proxy, process: &mut Process) {
    let cut = dice.of(&[Action::CutBefore, Action::CutAfter]);
    let statement = dice.of(&[
        "BEGIN",
        "SET last_offset",
        "RELEASE SAVEPOINT",
        "pg_catalog.pg_attribute",
        "FOR UPDATE OF o",
    ]);
    match dice.throw(9) {
        0 | 1 => proxy.arm(Point::CommitOf(rig.topic.clone()), cut),
        2 => proxy.arm(Point::Commit, cut),
        3 => proxy.arm(Point::Statement(statement.into()), cut),
        4 => proxy.cut_sessions(),
        5 => {
            let ours = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'oncesink {}'",
                rig.topic
            );
            let _: i64 = rig.schema.value(&ours).await;
        }
        6 => {
            proxy.refuse();
            tokio::time::sleep(Duration::from_millis(50 + dice.throw(200))).await;
            proxy.pass();
        }
        7 => {
            process.freeze();
            tokio::time::sleep(Duration::from_millis(50 + dice.throw(200))).await;
            process.thaw();
        }
        _ => {
            process.kill9();
            *process = rig.run();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_in_whatever_order_each_record_is_there_once_or_left_out_by_a_person() {
    let seed = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_130);
    let mut dice = Dice(seed);
    let (mut rig, proxy) = behind_proxy("chaos", PARTITIONS).await;
    rig.kafka_lines = "\"session.timeout.ms\" = 6000".into();
    rig.sink_lines = "batch = { rows = 50 }".into();
    let list = BAD.map(|seq| seq.to_string()).join(", ");
    rig.schema.execute(&format!("ALTER TABLE \"{}\" ADD CHECK (seq NOT IN ({list}))", rig.topic)).await;
    let store = Postgres::new(PostgresConfig::new(rig.schema.url()), &rig.topic).expect("a store");
    let mut left_out = BTreeSet::new();
    let mut process = rig.run();
    for _ in 0..ROUNDS {
        rig.produce(40).await;
        fault(&mut dice, &rig, &proxy, &mut process).await;
        left_out.extend(leave_out(&rig, &store).await);
        tokio::time::sleep(Duration::from_millis(dice.throw(150))).await;
    }
    proxy.disarm();
    let expected: BTreeSet<(i32, i64)> =
        (0..PARTITIONS).flat_map(|partition| BAD.map(|offset| (partition, offset))).collect();
    let sum = "SELECT sum(last_offset)::bigint FROM kafka_offsets";
    let began = std::time::Instant::now();
    while rig.schema.value::<Option<i64>>(sum).await.unwrap_or(0) < rig.expected() {
        left_out.extend(leave_out(&rig, &store).await);
        assert!(began.elapsed() < PATIENCE, "seed {seed}, left out {left_out:?}: {}", process.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(left_out, expected, "seed {seed}: {}", process.text());
    let rows = format!("SELECT count(*), count(DISTINCT (partition_id, seq)) FROM \"{}\"", rig.topic);
    let rows = &rig.schema.rows(&rows).await[0];
    let wanted = rig.expected() - expected.len() as i64;
    assert_eq!((rows.get::<i64, _>(0), rows.get::<i64, _>(1)), (wanted, wanted), "seed {seed}");
}
