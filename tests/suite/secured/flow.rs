//! Rows flow once through TLS on both sides, also when the sink is killed.

use oncesink_test_support::eventually;

use super::stage::Stage;
use crate::rig::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn rows_flow_once_from_sasl_ssl_into_tls_postgres() {
    let mut stage = Stage::new("secured", 3).await;
    stage.rig.produce(200).await;
    let (code, lines) = stage.rig.command(&["check"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:#?}");
    let encrypted = |what: &str, says: &str| {
        lines.iter().any(|line| line.text.starts_with(what) && line.text.contains(says))
    };
    assert!(encrypted("kafka ", "; TLS") && encrypted("target ", "; TLSv1."), "{lines:#?}");
    stage.rig.run_until_end().await;
    stage.rig.each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_flow_once_through_kill_9_with_tls_on_both_sides() {
    let mut stage = Stage::new("secured_kill", 3).await;
    // So that a kill falls between the rows.
    stage.rig.sink_lines = "batch = { rows = 50 }\n".to_owned();
    for _ in 0..3 {
        stage.rig.produce(500).await;
        let before = stage.rig.schema.count(&stage.rig.topic).await;
        let process = stage.rig.run();
        // Our own sessions are encrypted, which is what this test is about.
        eventually(PATIENCE, || async {
            let encrypted: i64 = stage
                .rig
                .schema
                .count(&format!(
                    "pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND usename = '{}'",
                    stage.name
                ))
                .await;
            let more = stage.rig.schema.count(&stage.rig.topic).await > before;
            (encrypted > 0 && more).then_some(())
        })
        .await;
        process.kill9();
    }
    let process = stage.rig.run();
    stage.rig.all_once().await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    stage.rig.each_once().await;
}
