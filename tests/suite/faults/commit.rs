//! COMMIT lost on the way there and on the way back, again and again: only the stored offset decides.

use oncesink_test_support::eventually_within;
use oncesink_test_support::proxy::{Action, Cut, Point, Proxy};

use super::metric;
use crate::rig::{PATIENCE, Rig};

const DOUBTS: i64 = 6;
const EACH: i64 = 40;

/// A rig whose sink reaches the database by way of a proxy.
pub(super) async fn behind_proxy(stem: &str, partitions: i32) -> (Rig, Proxy) {
    let mut rig = Rig::new(stem, partitions).await;
    let proxy = Proxy::start(rig.schema.url());
    rig.url = proxy.url().to_owned();
    (rig, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn c131_an_answer_to_commit_that_is_lost_is_settled_by_the_stored_offset() {
    let (mut rig, proxy) = behind_proxy("doubt", 2).await;
    rig.sink_lines = "writers = 1".into();
    rig.produce(EACH).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    for doubt in 0..DOUBTS {
        let cut = if doubt % 2 == 0 { Action::CutBefore } else { Action::CutAfter };
        proxy.arm(Point::CommitOf(rig.topic.clone()), cut);
        rig.produce(EACH).await;
        proxy.wait_for(move |seen| seen.cuts == doubt as u64 + 1).await;
        rig.all_once().await;
    }
    for verdict in ["applied", "not_applied"] {
        let label = format!("settled=\"{verdict}\"");
        metric::becomes(&address, "oncesink_in_doubt_total", &[&label], DOUBTS as f64 / 2.0).await;
    }
    metric::becomes(&address, "oncesink_in_doubt_total", &[], DOUBTS as f64).await;
    let in_doubt = metric::sum(&address, "oncesink_transactions_total", &["outcome=\"in_doubt\""]).await;
    assert_eq!(in_doubt, DOUBTS as f64);
    for books in ["oncesink_records_read_total", "oncesink_records_written_total"] {
        metric::becomes(&address, books, &[], rig.expected() as f64).await;
    }
    assert_eq!(metric::sum(&address, "oncesink_rewound_total", &[]).await, 0.0);
    assert_eq!(metric::sum(&address, "oncesink_fenced_total", &[]).await, 0.0, "{}", process.text());
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

/// A layer that connects again and repeats COMMIT there reports success for an empty transaction.
#[tokio::test(flavor = "multi_thread")]
async fn c031_commit_is_never_sent_again_and_the_whole_batch_runs_again() {
    let (mut rig, proxy) = behind_proxy("resent", 1).await;
    rig.produce(EACH).await;
    let process = rig.run();
    rig.all_once().await;
    let before = proxy.seen();
    proxy.arm_times(2, Point::CommitOf(rig.topic.clone()), Action::CutBefore);
    rig.produce(EACH).await;
    rig.all_once().await;
    let after = proxy.seen();
    assert_eq!(after.cuts - before.cuts, 2, "the faults took place");
    // Two never arrived. What did arrive, on other connections, were settles and transactions of their own.
    let lost = (after.commits - before.commits) - (after.commits_forwarded - before.commits_forwarded);
    assert_eq!(lost, 2, "{}", process.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_found_not_applied_three_times_is_tried_apart() {
    let (mut rig, proxy) = behind_proxy("apart", 2).await;
    rig.sink_lines = "writers = 1\nbatch = { linger = \"1 s\" }".into();
    let process = rig.run();
    let address = metric::address(&process).await;
    process.wait_for_line(|line| line.text.contains("2 partitions claimed"), PATIENCE).await;
    proxy.arm_times(3, Point::CommitOf(rig.topic.clone()), Action::CutBefore);
    rig.produce(EACH).await;
    rig.all_once().await;
    for (outcome, count) in [("in_doubt", 3.0), ("committed", 2.0)] {
        let label = format!("outcome=\"{outcome}\"");
        metric::becomes(&address, "oncesink_transactions_total", &[&label], count).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_lost_commits_neither_loses_nor_doubles() {
    let (mut rig, proxy) = behind_proxy("storm", 3).await;
    rig.sink_lines = "batch = { rows = 100 }".into();
    rig.produce(1_000).await;
    for round in 0..6 {
        let cut = if round % 3 == 0 { Cut::Before } else { Cut::AfterApplied };
        // Any COMMIT: those of claims and settles as well.
        proxy.cut_next_commit(cut);
        proxy.arm(
            Point::CommitOf(rig.topic.clone()),
            if round % 2 == 0 { Action::CutAfter } else { Action::CutBefore },
        );
    }
    let process = rig.run();
    rig.all_once().await;
    assert_eq!(proxy.seen().cuts, 12, "{}", process.text());
}

/// The session that a COMMIT was sent on holds its rows until it hears it, or until it is ended: the settle waits it out.
#[tokio::test(flavor = "multi_thread")]
async fn c131_an_old_backend_that_still_runs_is_waited_out_and_its_commit_comes_too_late() {
    let (mut rig, proxy) = behind_proxy("late", 2).await;
    rig.sink_lines = "writers = 1\ntimeout = \"1 s\"".into();
    rig.produce(EACH).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    proxy.arm(Point::CommitOf(rig.topic.clone()), Action::Hold);
    rig.produce(EACH).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    let (commits, rows) = (proxy.seen().commits_applied, rig.schema.count(&rig.topic).await);
    rig.all_once().await;
    assert!(rows < rig.expected() && proxy.seen().commits_applied > commits, "by another COMMIT");
    let settled = metric::sum(&address, "oncesink_in_doubt_total", &["settled=\"not_applied\""]).await;
    assert_eq!(settled, 1.0, "{}", process.text());
    proxy.release();
    proxy.wait_for(|seen| seen.held == 0).await;
    rig.produce(EACH).await;
    rig.all_once().await;
}

/// A process is killed with its COMMIT on the way; the next one claims before it arrives, and reads after it.
#[tokio::test(flavor = "multi_thread")]
async fn c131_a_commit_that_outlives_its_sender_is_seen_by_the_next_claim() {
    let (mut rig, proxy) = behind_proxy("outlives", 1).await;
    // The group lets the dead member go before the server ends its session, which is idle in a transaction.
    rig.kafka_lines = "\"session.timeout.ms\" = 6000".into();
    rig.produce(EACH).await;
    let process = rig.run();
    rig.all_once().await;
    proxy.arm(Point::CommitOf(rig.topic.clone()), Action::Hold);
    rig.produce(EACH).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    process.kill9();
    assert_eq!(rig.schema.count(&rig.topic).await, EACH);
    let process = rig.run();
    process.wait_for_line(|line| line.text.contains("exactly once into"), PATIENCE).await;
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncesink {}' AND wait_event_type = 'Lock'",
        rig.topic
    );
    // On a machine too busy for that order there is nothing left to wait for.
    let look =
        async || rig.schema.value::<i64>(&waiting).await > 0 || rig.schema.count(&rig.topic).await > EACH;
    eventually_within(PATIENCE, look, |met| *met).await;
    proxy.release();
    rig.all_once().await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

/// The settle raises the epoch. Whoever looks at the row while the batch runs again must know that it was us.
#[tokio::test(flavor = "multi_thread")]
async fn a_settle_of_ours_is_no_word_from_outside() {
    let (mut rig, proxy) = behind_proxy("ours", 1).await;
    rig.schema
        .execute(&format!(
            "CREATE SEQUENCE tries;
             CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN IF nextval('tries') = 2 THEN PERFORM pg_sleep(4); END IF; RETURN NULL; END $$;
             CREATE TRIGGER dawdle AFTER INSERT ON \"{}\" FOR EACH ROW WHEN (NEW.seq = 50) EXECUTE FUNCTION dawdle()",
            rig.topic
        ))
        .await;
    rig.produce(EACH).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    proxy.arm(Point::CommitOf(rig.topic.clone()), Action::CutBefore);
    rig.produce(EACH).await;
    rig.all_once().await;
    let settled = metric::sum(&address, "oncesink_in_doubt_total", &["settled=\"not_applied\""]).await;
    let tries: i64 = rig.schema.value("SELECT last_value FROM tries").await;
    assert_eq!((settled, tries), (1.0, 2), "{}", process.text());
    assert!(!process.text().contains("changed from outside"), "{}", process.text());
}

/// While a transaction is in doubt somebody else has the last word on its row; the settle is held until they had it.
async fn meanwhile(stem: &str, order: &str, verdict: &str) {
    let (mut rig, proxy) = behind_proxy(stem, 1).await;
    rig.produce(EACH).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    proxy.arm(Point::Statement("FOR UPDATE OF o".into()), Action::Hold);
    proxy.arm(Point::CommitOf(rig.topic.clone()), Action::CutBefore);
    rig.produce(EACH).await;
    proxy.wait_for(|seen| seen.held == 1).await;
    rig.schema.execute_unguarded(&order.replace("@topic@", &rig.topic)).await;
    proxy.release();
    rig.all_once().await;
    let settled =
        metric::sum(&address, "oncesink_in_doubt_total", &[&format!("settled=\"{verdict}\"")]).await;
    assert_eq!(settled, 1.0, "{}", process.text());
    assert_eq!(metric::sum(&address, "oncesink_in_doubt_total", &[]).await, 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_in_doubt_whose_row_went_to_another_owner_is_left_to_the_next_claim() {
    let order = "UPDATE kafka_offsets SET owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid()";
    meanwhile("taken", order, "fenced").await;
}

/// A failover that lost the last commits: rows and offset went together, and come again together.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_in_doubt_whose_row_went_back_is_read_again_from_there() {
    let order = "UPDATE kafka_offsets SET last_offset = 10; DELETE FROM \"@topic@\" WHERE seq >= 10";
    meanwhile("went_back", order, "rewound").await;
}
