//! A partition is taken away: the others flow on, and its transaction is committed, rolled back, or waited for, never half.

use std::time::{Duration, Instant};

use oncesink_test_support::eventually_within;
use oncesink_test_support::proxy::{Action, Point, Proxy};

use crate::rebalance::flow::Flow;
use crate::rebalance::group::{PROTOCOLS, SESSION, said};
use crate::rebalance::load::Load;
use crate::rig::{PATIENCE, Rig};

/// The answer to a revoke may take a second; the rest is for the load and a busy machine.
const STALL_MAX: Duration = Duration::from_secs(3);

async fn with_protocol(stem: &str, partitions: i32, protocol: &str) -> Rig {
    let mut rig = Rig::new(stem, partitions).await;
    rig.kafka_lines = protocol.to_owned();
    rig
}

impl Rig {
    /// The epochs of all rows, by partition.
    async fn epochs(&self) -> Vec<i64> {
        self.schema.column("SELECT owner_epoch FROM kafka_offsets ORDER BY partition_id").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c133_a_partition_that_stays_is_neither_claimed_again_nor_held_up() {
    for protocol in PROTOCOLS {
        let mut rig = with_protocol("c133", 2, protocol).await;
        let load = Load::start(&rig, 20, Duration::from_millis(5));
        let first = rig.run();
        rig.flows(&[0, 1], 200).await;
        let (epochs, flow) = (rig.epochs().await, Flow::watch(&rig.schema));
        let second = rig.run();
        rig.shared_by(&[&first, &second]).await;
        rig.flows(&[0, 1], 200).await;
        let (after, longest) = (rig.epochs().await, flow.longest().await);
        let kept = rig.partitions_of(&first).await[0] as usize;
        let moved = 1 - kept;
        println!("{protocol}: stood still: kept {:?}, moved {:?}", longest[kept], longest[moved]);
        assert_eq!(after[kept], epochs[kept], "{protocol}: the partition that stayed was claimed again");
        assert!(after[moved] > epochs[moved]);
        assert!(longest[kept] < STALL_MAX, "{protocol}: {longest:?}");
        load.stop(&mut rig).await;
        rig.all_once().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c147_a_revoke_waits_for_a_commit_or_leaves_it_to_the_next_claim() {
    for delay in [Duration::from_millis(500), Duration::from_secs(2)] {
        let mut rig = with_protocol("c147", 3, PROTOCOLS[0]).await;
        // A transaction of its own for each partition.
        rig.sink_lines = "writers = 3".to_owned();
        let proxy = Proxy::start(rig.schema.url());
        let load = Load::start(&rig, 50, Duration::from_millis(20));
        let first = rig.run_through(proxy.url());
        rig.flows(&[0, 1, 2], 50).await;
        let epochs = rig.epochs().await;
        // From now on each COMMIT of rows takes so long, so that one is on its way whenever the revoke comes.
        proxy.arm_times(u32::MAX, Point::CommitOf(rig.topic.clone()), Action::Delay(delay));
        proxy.wait_for(|seen| seen.held >= 2).await;
        let second = rig.run();
        rig.shared_by(&[&first, &second]).await;
        proxy.disarm();
        let moved = rig.partitions_of(&second).await;
        let after = rig.epochs().await;
        for kept in rig.partitions_of(&first).await {
            let kept = kept as usize;
            assert_eq!(after[kept], epochs[kept], "{delay:?}: {}", first.text());
        }
        assert!(!moved.is_empty());
        rig.flows(&[0, 1, 2], 100).await;
        load.stop(&mut rig).await;
        rig.all_once().await;
        assert_eq!(said(&first, "in doubt: "), 0, "{}", first.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c129_a_long_transaction_gives_way_to_the_next_owner() {
    let mut rig = with_protocol("c129", 2, PROTOCOLS[0]).await;
    rig.sink_lines = "writers = 1".to_owned();
    rig.schema
        .execute(&format!(
            "CREATE TABLE slow (yes boolean);
             CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS
                 'BEGIN IF EXISTS (SELECT FROM slow) THEN PERFORM pg_sleep(28); END IF; RETURN NULL; END';
             CREATE TRIGGER hold_up AFTER INSERT ON \"{}\" FOR EACH STATEMENT EXECUTE FUNCTION hold_up()",
            rig.topic
        ))
        .await;
    rig.produce(100).await;
    let first = rig.run();
    rig.all_once().await;
    rig.schema.execute("INSERT INTO slow VALUES (true)").await;
    rig.produce(1_000).await;
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'oncesink {group}'";
    let sleeps = sleeps.replace("{group}", &rig.topic);
    eventually_within(PATIENCE, || rig.schema.value::<i64>(&sleeps), |sleeping| *sleeping > 0).await;
    rig.schema.execute("TRUNCATE slow").await;
    let begin = Instant::now();
    let second = rig.run();
    rig.shared_by(&[&first, &second]).await;
    let took = begin.elapsed();
    println!("the next owner waited {took:?}");
    // Far less than the transaction had still to go.
    assert!(took < Duration::from_secs(15), "the claim took {took:?}: {}", second.text());
    rig.all_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_owners_open_transaction_does_not_hold_up_the_next_one() {
    let mut rig = with_protocol("killed_open", 2, PROTOCOLS[0]).await;
    rig.kafka_lines = format!("session.timeout.ms = {}", SESSION.as_millis());
    rig.produce(2_000).await;
    let proxy = Proxy::start(rig.schema.url());
    // The server does not learn of the kill: the proxy stands between.
    proxy.arm(Point::Statement("RELEASE SAVEPOINT".into()), Action::StallBefore);
    let first = rig.run_through(proxy.url());
    proxy.wait_for(|seen| seen.stalls == 1).await;
    first.kill9();
    let (begin, second) = (Instant::now(), rig.run());
    rig.owns(&second, |owned| owned == 2).await;
    println!("taken over after {:?}", begin.elapsed());
    rig.all_once().await;
}
