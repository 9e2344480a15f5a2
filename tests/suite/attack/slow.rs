//! Rows that take longer than a statement may.

use crate::rig::Rig;

/// A whole batch takes longer than the limit of a statement, its parts do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_too_slow_for_one_statement_goes_in_parts() {
    let mut rig = Rig::new("slow", 1).await;
    rig.sink_lines = "timeout = \"1 s\"".into();
    rig.schema
        .execute(&format!(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END $$;
             CREATE TRIGGER slow BEFORE INSERT ON \"{}\" FOR EACH ROW EXECUTE FUNCTION slow()",
            rig.topic
        ))
        .await;
    rig.produce(100).await;
    let process = rig.run();
    rig.all_once().await;
    assert!(process.text().contains("57014"), "the limit was met: {}", process.text());
}
