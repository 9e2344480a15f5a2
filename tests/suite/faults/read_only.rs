//! A server that may only be read: waited for, and left by those who are connected.

use oncesink_test_support::eventually_within;
use oncesink_test_support::postgres::PostgresServer;

use super::metric;
use crate::rig::{PATIENCE, Rig};

/// Lifted for our own session, whatever the default is.
const WRITABLE: &str = "SET default_transaction_read_only = off";

async fn order(server: &PostgresServer, statements: &[&str]) {
    let mut connection = server.connection().await;
    for statement in std::iter::once(&WRITABLE).chain(statements) {
        oncesink::sqlx::Executor::execute(&mut connection, *statement).await.expect("an order to the server");
    }
}

/// Both ways to make a server read-only: the first one is seen by sessions that are open, the second one by new ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_is_waited_for_and_work_goes_on() {
    let server = PostgresServer::start().await;
    let mut rig = Rig::on(&server, "readonly", 1).await;
    rig.produce(100).await;
    let process = rig.run();
    let address = metric::address(&process).await;
    rig.all_once().await;
    let wrong = async || metric::sum(&address, "oncesink_retries_total", &["class=\"wrong_server\""]).await;
    let mut before = 0.0;
    let ways = [
        (
            &["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"][..],
            &["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"][..],
        ),
        (
            &[
                "ALTER DATABASE postgres SET default_transaction_read_only = on",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'oncesink%'",
            ][..],
            &["ALTER DATABASE postgres RESET default_transaction_read_only"][..],
        ),
    ];
    for (close, open) in ways {
        order(&server, close).await;
        let rows = rig.schema.count(&rig.topic).await;
        rig.produce(100).await;
        // Several times: it does not come back to a session that may not write.
        eventually_within(PATIENCE, wrong, |count| *count >= before + 3.0).await;
        assert_eq!(rig.schema.count(&rig.topic).await, rows, "{}", process.text());
        order(&server, open).await;
        rig.all_once().await;
        before = wrong().await;
    }
    assert!(!process.text().contains("stopped"), "{}", process.text());
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0);
}
