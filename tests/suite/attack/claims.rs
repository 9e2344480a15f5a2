//! A claim whose answer never comes, and books that somebody empties while the sink runs.

use oncesink_test_support::proxy::{Action, Point, Proxy};

use crate::rig::{PATIENCE, Rig};

/// One call of a claim falls silent, as when a firewall forgets a connection, and everything else goes on: its answer must not be waited for for ever.
async fn silent(stem: &str, point: Point, action: Action) {
    let mut rig = Rig::new(stem, 1).await;
    rig.sink_lines = "timeout = \"1 s\"".into();
    let proxy = Proxy::start(rig.schema.url());
    rig.url = proxy.url().to_owned();
    rig.produce(10).await;
    let _process = rig.run();
    rig.all_once().await;
    proxy.arm(point, action);
    let word = "UPDATE kafka_offsets SET owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid()";
    rig.schema.execute_unguarded(word).await;
    proxy.wait_for(|seen| seen.stalls == 1).await;
    rig.produce(10).await;
    rig.all_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_for_recorded_topics_that_is_never_answered_is_asked_again() {
    silent("recorded", Point::Statement("t.partition_count".into()), Action::StallBefore).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_never_answered_is_made_again() {
    silent("locking", Point::Statement("SKIP LOCKED".into()), Action::StallBefore).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_done_and_never_answered_is_made_again() {
    silent("done", Point::CommitOf("SET owner_epoch".into()), Action::StallAfter).await;
}

/// Offsets and records of topics emptied together look like a group that never was: the rows are there, and would come again.
#[tokio::test(flavor = "multi_thread")]
async fn books_that_are_emptied_while_the_sink_runs_do_not_begin_anew() {
    let mut rig = Rig::new("emptied", 1).await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    rig.schema.execute_unguarded("TRUNCATE kafka_offsets, oncesink_topics").await;
    rig.produce(10).await;
    process.wait_for_line(|line| line.text.contains("stopped: its row is missing"), PATIENCE).await;
    assert_eq!(rig.schema.count(&rig.topic).await, 10, "{}", process.text());
}

/// A partition without traffic must not go on to be called running above a row that somebody deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_partition_whose_row_is_deleted_says_so_before_the_next_record() {
    let mut rig = Rig::new("deleted", 1).await;
    rig.produce(10).await;
    let process = rig.run();
    rig.all_once().await;
    rig.schema.execute_unguarded("DELETE FROM kafka_offsets").await;
    process.wait_for_line(|line| line.text.contains("stopped: its row is missing"), PATIENCE).await;
}
