//! Sessions ended by an operator, again and again, and triggers that count what reaches the table.

use oncesink_test_support::eventually_within;

use crate::rig::{PATIENCE, Rig};

/// Ends one backend of the sink that holds a transaction now; answers how many were ended.
async fn terminate(rig: &Rig) -> i64 {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE application_name = 'oncesink {}' AND xact_start IS NOT NULL",
        rig.topic
    );
    rig.schema.value(&sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_ended_again_and_again_cost_no_row() {
    let mut rig = Rig::new("ended", 3).await;
    rig.sink_lines = "batch = { rows = 100 }".into();
    rig.produce(2_000).await;
    let process = rig.run();
    rig.rows_reach(1).await;
    let mut ended = 0;
    while ended < 15 && rig.schema.count(&rig.topic).await < rig.expected() - 500 {
        ended += terminate(&rig).await;
    }
    assert!(ended > 0, "a transaction was ended");
    rig.all_once().await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

/// Idempotent upserts alone do not pass this: the trigger would fire for a replay.
#[tokio::test(flavor = "multi_thread")]
async fn c003_a_trigger_fires_once_for_each_record_through_crashes() {
    let mut rig = Rig::new("audit", 2).await;
    let topic = rig.topic.clone();
    rig.sink_lines = "batch = { rows = 50 }".into();
    rig.schema
        .execute(&format!(
            "CREATE TABLE audit (partition_id integer, seq bigint);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO audit VALUES (NEW.partition_id, NEW.seq); RETURN NULL; END $$;
             CREATE TRIGGER note AFTER INSERT ON \"{topic}\" FOR EACH ROW EXECUTE FUNCTION note()"
        ))
        .await;
    rig.produce(3_000).await;
    for crash in 1..=3 {
        let process = rig.run();
        let enough = crash * 500;
        eventually_within(PATIENCE, || rig.schema.count("audit"), |count| *count >= enough).await;
        process.kill9();
    }
    assert!(rig.schema.count("audit").await < rig.expected(), "the crashes came in the middle");
    rig.run_until_end().await;
    rig.each_once().await;
    let audited: i64 = rig.schema.count("audit").await;
    let distinct: i64 = rig.schema.value("SELECT count(DISTINCT (partition_id, seq)) FROM audit").await;
    assert_eq!((audited, distinct), (rig.expected(), rig.expected()));
}
