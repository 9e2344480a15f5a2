//! Reading the metrics of a running command over HTTP, as a scraper would.

use std::time::Duration;

use oncesink_test_support::eventually_within;
use oncesink_test_support::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::PATIENCE;

/// Where the child serves its metrics: it logs the port that it got.
pub(super) async fn address(process: &Process) -> String {
    let line =
        process.wait_for_line(|line| line.text.contains("metrics and health at http://"), PATIENCE).await;
    let (_, rest) = line.text.split_once("http://").expect("found above");
    rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ':')).collect()
}

async fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The sum of all series of a name whose labels contain every one of `labels`.
pub(super) async fn sum(address: &str, name: &str, labels: &[&str]) -> f64 {
    let text = tokio::time::timeout(Duration::from_secs(10), get(address, "/metrics"))
        .await
        .expect("the metrics in time")
        .expect("the metrics");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let series = text.lines().filter(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    });
    series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// Waits until such a sum is exactly `wanted`: a row is there before its transaction is counted.
pub(super) async fn becomes(address: &str, name: &str, labels: &[&str], wanted: f64) {
    eventually_within(PATIENCE, || sum(address, name, labels), |seen| *seen == wanted).await;
}
