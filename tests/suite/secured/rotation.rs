//! Certificates that are replaced: the server's, and the client's while the sink runs.

use oncesink_test_support::postgres::SecuredPostgres;
use oncesink_test_support::{Secured, eventually};

use super::stage::Stage;
use crate::rig::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_postgres_expires_and_is_renewed() {
    let secured = Secured::shared().await;
    let shared = std::sync::Arc::clone(&secured);
    let starting = tokio::task::spawn_blocking(move || {
        let expired = shared.authority.issue_expired("database", &["localhost"]);
        SecuredPostgres::start_blocking(&shared.authority, &expired)
    });
    let postgres = starting.await.unwrap();
    let mut stage = Stage::on(&secured, &postgres, "server_renewed", 1).await;
    stage.rig.produce(20).await;
    let (code, lines) = stage.rig.command(&["run", "--until-end"]).run(PATIENCE).await;
    assert_eq!(code, 3, "{lines:#?}");
    let says = ["connecting to Postgres at localhost:", "its certificate has expired"];
    assert!(lines.iter().any(|line| says.iter().all(|part| line.text.contains(part))), "{lines:#?}");

    postgres.set_identity(&secured.authority.issue("database", &["localhost"]));
    // The server takes a moment to read it.
    eventually(PATIENCE, || async {
        let (code, _) = stage.rig.command(&["check"]).run(PATIENCE).await;
        (code == 0).then_some(())
    })
    .await;
    stage.rig.run_until_end().await;
    stage.rig.each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_that_is_replaced_is_used_for_the_next_connection_to_postgres() {
    let mut stage = Stage::new("client_renewed", 1).await;
    stage.rig.produce(20).await;
    let process = stage.rig.run();
    stage.rig.all_once().await;

    // From now on no new session comes about; those that are open are ended.
    let authority = &stage.secured.authority;
    stage.secured.client_files(&stage.name, &authority.issue_expired(&stage.name, &[]));
    let end = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{}'",
        stage.name
    );
    let ended: i64 = stage.rig.schema.value(&end).await;
    assert!(ended > 0, "the sink had sessions");
    stage.rig.produce(20).await;
    process
        .wait_for_line(|line| line.text.contains("has expired") && line.text.contains("sslcert"), PATIENCE)
        .await;
    assert_eq!(
        stage.rig.schema.count(&stage.rig.topic).await,
        20,
        "nobody came in with the expired certificate"
    );
    assert!(process.is_running(), "a running sink waits");

    stage.secured.client_files(&stage.name, &authority.issue(&stage.name, &[]));
    stage.rig.all_once().await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
    stage.rig.each_once().await;
}
