//! Who owns what, as the database tells it, and what a process has open there.

use std::time::{Duration, Instant};

use oncesink_test_support::process::{Launch, Process};
use oncesink_test_support::{eventually_within, tcp_ports};

use crate::rig::{PATIENCE, Rig};

/// The shortest session timeout that still survives a machine under load: a dead owner's partitions are given to others after it.
pub(crate) const SESSION: Duration = Duration::from_secs(3);

/// Both group protocols, as lines for `[kafka]`.
pub(crate) const PROTOCOLS: [&str; 2] = ["group.protocol = \"classic\"", "group.protocol = \"consumer\""];

/// A rig whose owners are given up soon after they die.
pub(crate) async fn rig(stem: &str, partitions: i32) -> Rig {
    let mut rig = Rig::new(stem, partitions).await;
    rig.kafka_lines = format!("session.timeout.ms = {}", SESSION.as_millis());
    rig
}

/// What a test asks about the owners of its topic.
impl Rig {
    /// A running sink that finds the database at another address, such as a proxy's.
    pub(crate) fn run_through(&self, url: &str) -> Process {
        Launch::new(env!("CARGO_BIN_EXE_oncesink"))
            .file("oncesink.toml", &self.config().replace(&self.url, url))
            .args(["--config", "oncesink.toml", "run"])
            .env("RUST_LOG", "info")
            .start()
    }

    /// Partitions whose last claim was made by this process.
    pub(crate) async fn owned_by(&self, process: &Process) -> i64 {
        self.schema
            .value(&format!("SELECT count(*) FROM kafka_offsets WHERE owner LIKE '%/{}'", process.pid()))
            .await
    }

    /// Those partitions.
    pub(crate) async fn partitions_of(&self, process: &Process) -> Vec<i32> {
        let sql = "SELECT partition_id FROM kafka_offsets WHERE owner LIKE";
        self.schema.column(&format!("{sql} '%/{}' ORDER BY 1", process.pid())).await
    }

    /// Waits until this process owns a number of partitions that is `wanted`.
    pub(crate) async fn owns(&self, process: &Process, wanted: impl Fn(i64) -> bool) {
        eventually_within(PATIENCE, || self.owned_by(process), |owned| wanted(*owned)).await;
    }

    /// Waits until each of these processes owns some partitions and together they own all.
    pub(crate) async fn shared_by(&self, processes: &[&Process]) {
        let all = i64::from(self.partitions);
        let look = async || {
            let mut owned = Vec::new();
            for process in processes {
                owned.push(self.owned_by(process).await);
            }
            owned
        };
        eventually_within(PATIENCE, look, |owned| {
            owned.iter().all(|owned| *owned > 0) && owned.iter().sum::<i64>() == all
        })
        .await;
    }

    /// The states of this process's open transactions on the server, with the statement of each.
    pub(crate) async fn open_transactions(&self, pid: u32) -> Vec<(String, String)> {
        let ports: Vec<String> = tcp_ports(pid).iter().map(u16::to_string).collect();
        let sql = format!(
            "SELECT state || '|' || query FROM pg_stat_activity
             WHERE xact_start IS NOT NULL AND client_port = ANY ('{{{}}}'::integer[])",
            ports.join(",")
        );
        let found: Vec<String> = self.schema.column(&sql).await;
        let parts = found.iter().filter_map(|text| text.split_once('|'));
        parts.map(|(state, query)| (state.to_owned(), query.to_owned())).collect()
    }

    /// The sessions of this rig's group that hold a transaction, by state and statement; also those that came by way of a proxy.
    pub(crate) async fn group_transactions(&self) -> Vec<(String, String)> {
        let sql = format!(
            "SELECT state || '|' || query FROM pg_stat_activity
             WHERE xact_start IS NOT NULL AND application_name = 'oncesink {}'",
            self.topic
        );
        let found: Vec<String> = self.schema.column(&sql).await;
        let parts = found.iter().filter_map(|text| text.split_once('|'));
        parts.map(|(state, query)| (state.to_owned(), query.to_owned())).collect()
    }

    /// Stored offsets, by partition.
    pub(crate) async fn stored_all(&self) -> Vec<i64> {
        self.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await
    }

    /// Waits until these partitions have moved on by `records` from where they stand now; gives the time that it took.
    pub(crate) async fn flows(&self, partitions: &[i32], records: i64) -> Duration {
        let begin = Instant::now();
        let before = self.stored_all().await;
        // No row before the first claim.
        let at = |offsets: &[i64], partition: i32| offsets.get(partition as usize).copied().unwrap_or(0);
        let behind = |now: &Vec<i64>| partitions.iter().all(|p| at(now, *p) - at(&before, *p) >= records);
        eventually_within(PATIENCE, || self.stored_all(), behind).await;
        begin.elapsed()
    }
}

/// Lines of a process that contain `text`.
pub(crate) fn said(process: &Process, text: &str) -> usize {
    process.lines().iter().filter(|line| line.text.contains(text)).count()
}

/// Whether a process has reported that partitions were taken from it: by an advance that did not match, or by the group.
pub(crate) fn reports_fenced(process: &Process) -> bool {
    said(process, "not ours any more") + said(process, "partitions to the group") > 0
}
