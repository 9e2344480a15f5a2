//! Brokers: what does not answer is waited for by `run`, and named by `check`.

use super::stage::{Row, Run};

const fn silent(
    what: &'static str,
    file: &'static [(&'static str, &'static str)],
    says: &'static [&'static str],
) -> Row {
    Row { what, sql: "", file, exit: 3, says, run: Run::Waits }
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers() {
    let rows = vec![
        silent(
            "nobody listens",
            &[("\"@kafka\"", "\"127.0.0.1:1\"")],
            &["127.0.0.1:1", "Kafka does not answer", "Check brokers = ", "security.protocol in [kafka]"],
        ),
        silent(
            "the database's port",
            &[("\"@kafka\"", "\"@postgres\"")],
            &["@postgres", "Kafka does not answer", "Check brokers = ", "security.protocol in [kafka]"],
        ),
        silent(
            "no such host",
            &[("\"@kafka\"", "\"broker.invalid:9092\"")],
            &["broker.invalid", "Kafka does not answer", "Check brokers = ", "security.protocol in [kafka]"],
        ),
    ];
    super::all("kafka", rows).await;
}
