//! The offsets table itself, or the role, out of order for a while: no record is blamed, and work goes on by itself.

use oncesink_test_support::{eventually_within, unique};

use super::metric;
use crate::rig::{PATIENCE, Rig};

/// Does `harm` while the sink runs, waits until it has been met several times, and mends it.
async fn survives(rig: &mut Rig, harm: &str, mend: &str) {
    rig.produce(100).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    rig.schema.execute(harm).await;
    rig.produce(100).await;
    let retries = async || metric::sum(&address, "oncesink_retries_total", &[]).await;
    eventually_within(PATIENCE, retries, |count| *count >= 2.0).await;
    assert!(rig.schema.count(&rig.topic).await < rig.expected());
    rig.schema.execute(mend).await;
    rig.all_once().await;
    let blamed = metric::sum(&address, "oncesink_retries_total", &["class=\"bad_record\""]).await;
    assert!(blamed == 0.0 && !process.text().contains("stopped"), "{}", process.text());
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offsets_table_that_is_away_for_a_while_is_waited_for() {
    let mut rig = Rig::new("nowhere", 2).await;
    survives(
        &mut rig,
        "ALTER TABLE kafka_offsets RENAME TO elsewhere",
        "ALTER TABLE elsewhere RENAME TO kafka_offsets",
    )
    .await;
}

/// Class 23 and P0001 mean a bad record only where records are written.
#[tokio::test(flavor = "multi_thread")]
async fn an_offsets_table_that_refuses_blames_no_record() {
    let mut rig = Rig::new("refusing", 2).await;
    let harm = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE EXCEPTION 'hands off'; END $$;
                CREATE TRIGGER refuse BEFORE UPDATE ON kafka_offsets FOR EACH ROW EXECUTE FUNCTION refuse()";
    survives(&mut rig, harm, "DROP TRIGGER refuse ON kafka_offsets").await;
}

/// A server that refuses us at the start ends the start; one that refuses us later is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_log_in_for_a_while_is_waited_for() {
    let mut rig = Rig::new("nologin", 2).await;
    let (schema, role) = (rig.schema.name().to_owned(), unique("nologin"));
    rig.schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    rig.url = rig.url.replace("//postgres@", &format!("//{role}@"));
    let harm = format!(
        "ALTER ROLE {role} NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
    );
    survives(&mut rig, &harm, &format!("ALTER ROLE {role} LOGIN")).await;
}
