//! The real command as a child, watched while it runs: threads, memory, its own metrics.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oncesink_test_support::process::{Launch, Process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cost::{self, Sample};

const PATIENCE: Duration = Duration::from_secs(300);
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// In samples: a scrape costs the process something.
const SCRAPE_EVERY: usize = 25;

/// What was seen of a run.
pub(crate) struct Watched {
    pub(crate) samples: Vec<Sample>,
    /// The last scrape before the end: name with labels, and value.
    pub(crate) metrics: BTreeMap<String, f64>,
}

/// The command that was built beside this program.
pub(crate) fn built() -> PathBuf {
    let ours = std::env::current_exe().expect("the path of this program");
    let binary = ours.with_file_name("oncesink");
    assert!(binary.exists(), "{}: not built; run scripts/bench", binary.display());
    binary
}

fn command(binary: &Path, config: &str, args: &[&str]) -> Launch {
    let mut all = vec!["--config", "oncesink.toml"];
    all.extend(args);
    Launch::new(binary).file("oncesink.toml", config).args(all)
}

/// Runs the command to its end, which must be a good one.
pub(crate) async fn run(binary: &Path, config: &str, args: &[&str]) -> Watched {
    let process = command(binary, config, args).start();
    let (mut samples, mut metrics) = (Vec::new(), BTreeMap::new());
    let began = std::time::Instant::now();
    while process.is_running() {
        assert!(began.elapsed() < PATIENCE, "still running; all lines:\n{}", process.text());
        samples.extend(cost::sample(process.pid()));
        if samples.len() % SCRAPE_EVERY == SCRAPE_EVERY - 1
            && let Some(found) = scrape(&process).await
        {
            metrics = found;
        }
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    let code = process.wait_exit(PATIENCE).await;
    assert_eq!(code, 0, "{args:?}:\n{}", process.text());
    Watched { samples, metrics }
}

async fn scrape(process: &Process) -> Option<BTreeMap<String, f64>> {
    let lines = process.lines();
    let address = lines.iter().find_map(|line| {
        let (_, rest) = line.text.split_once("metrics and health at http://")?;
        rest.split('"').next()
    })?;
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let values = answer.lines().filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Some(values.collect())
}
