//! The running instances of a contender, and what the database shows of each.
//!
//! Invariant: an instance is found in `pg_stat_activity` by the ports that its own descriptors hold, never by its name alone.

use std::time::{Duration, Instant};

use oncesink_test_support::process::Process;
use oncesink_test_support::tcp_ports;

use crate::contender::{Contender, Kind};

/// Far more than any step needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(5);

/// One instance.
pub(crate) struct Instance {
    /// Its `group.instance.id`; empty for a member that the group forgets when it leaves.
    name: String,
    process: Process,
}

/// All instances of a contender.
pub(crate) struct Crew<'a> {
    pub(crate) contender: &'a Contender,
    running: Vec<Instance>,
    gone: Vec<Process>,
}

impl<'a> Crew<'a> {
    pub(crate) fn new(contender: &'a Contender) -> Self {
        Self { contender, running: Vec::new(), gone: Vec::new() }
    }

    /// Starts an instance; gives its index.
    pub(crate) fn start(&mut self, name: &str, url: &str) -> usize {
        let process = self.contender.start(name, url);
        self.running.push(Instance { name: name.to_owned(), process });
        self.running.len() - 1
    }

    fn pid(&self, index: usize) -> u32 {
        self.running[index].process.pid()
    }

    /// Partitions that an instance owns.
    pub(crate) async fn owned(&self, index: usize) -> Vec<i64> {
        self.contender.owned_by(self.pid(index)).await
    }

    /// Waits until an instance owns some partition.
    pub(crate) async fn owns_some(&self, index: usize) {
        self.until("an instance has partitions", async || !self.owned(index).await.is_empty()).await;
    }

    /// Waits until each partition belongs to a running instance.
    pub(crate) async fn all_owned(&self) {
        let all = async || {
            let mut owned = 0;
            for index in 0..self.running.len() {
                owned += self.owned(index).await.len();
            }
            owned == crate::orders::PARTITIONS as usize
        };
        self.until("every partition has a running owner", all).await;
    }

    /// Waits for something, looking closely.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let begin = Instant::now();
        while !holds().await {
            if begin.elapsed() > PATIENCE {
                let picture = self.picture().await;
                panic!("{}: not seen within {PATIENCE:?}: {what}\n{picture}", self.contender.kind);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What the instances say and what the database shows, for a wait that was in vain.
    async fn picture(&self) -> String {
        let said = self.running.iter().map(|instance| {
            format!("-- {} ({})\n{}", instance.name, instance.process.pid(), instance.process.text())
        });
        let offsets = "SELECT concat_ws(' ', partition_id, last_offset, owner) FROM kafka_offsets ORDER BY partition_id";
        let sessions = "SELECT concat_ws(' ', pid, client_port, state, wait_event, clock_timestamp() - xact_start, left(query, 60))
                        FROM pg_stat_activity WHERE client_port IS NOT NULL";
        let mut lines: Vec<String> = said.collect();
        for sql in [offsets, sessions] {
            let rows = sqlx::query_scalar(sql).fetch_all(&self.contender.pool).await;
            lines.extend(rows.unwrap_or_else(|error| vec![error.to_string()]));
        }
        lines.push(format!("written: {:?}", self.contender.written().await));
        lines.join("\n")
    }

    /// The backends that are in a transaction of this instance that writes rows.
    pub(crate) async fn writing(&self, index: usize) -> Vec<i32> {
        let ports: Vec<String> = tcp_ports(self.pid(index)).iter().map(u16::to_string).collect();
        let sql = format!(
            "SELECT pid FROM pg_stat_activity
             WHERE state IN ('active', 'idle in transaction') AND xact_start IS NOT NULL AND query LIKE '%orders%'
               AND client_port = ANY ('{{{}}}'::int[])",
            ports.join(",")
        );
        sqlx::query_scalar(&sql).fetch_all(&self.contender.pool).await.expect("the sessions")
    }

    /// Kills an instance, and starts it again if it bears a name. With `in_transaction` it is stopped for the look at the database, so that the transaction
    /// seen there is still open when the kill comes; otherwise the kill comes whenever it comes.
    pub(crate) async fn kill(&mut self, index: usize, in_transaction: bool) {
        if in_transaction {
            self.hold(index).await;
        }
        self.running[index].process.kill9();
        let Instance { name, process } = self.running.swap_remove(index);
        self.gone.push(process);
        if !name.is_empty() {
            let url = self.contender.url.clone();
            self.start(&name, &url);
            let last = self.running.len() - 1;
            self.running.swap(index, last);
        }
    }

    /// Stops an instance (SIGSTOP) that is in the midst of a transaction, as the database shows while it is stopped. The statement that is to be seen writes
    /// rows: a control that is stopped behind its last one would hold its offset's row, and nobody could take over.
    async fn hold(&self, index: usize) {
        loop {
            self.until("an instance writes rows", async || !self.writing(index).await.is_empty()).await;
            self.running[index].process.freeze();
            if !self.writing(index).await.is_empty() {
                return;
            }
            self.running[index].process.thaw();
        }
    }

    /// Freezes an instance in the midst of its work until others have its partitions and have moved on with them, then wakes it up and waits until it has
    /// partitions again. The backlog behind each of its partitions has thousands of records, of which the client has fetched as many as it may.
    pub(crate) async fn freeze(&self, index: usize) {
        self.hold(index).await;
        let pid = self.pid(index);
        let places = self.owned(index).await;
        let before = self.contender.written().await;
        for place in &places {
            let rest = self.contender.orders.of(*place as i32) - before[*place as usize];
            assert!(rest > BACKLOG, "too few orders are left for a freeze: {rest}");
        }
        let taken_over = async || {
            let now = self.contender.written().await;
            let moved =
                places.iter().all(|place| now[*place as usize] >= before[*place as usize] + TAKEN_OVER);
            (moved || self.contender.wait_for_frozen_rows().await)
                && self.contender.owned_by(pid).await.is_empty()
        };
        self.until("others have a frozen instance's partitions", taken_over).await;
        self.running[index].process.thaw();
        self.until("a woken instance has partitions again", async || {
            !self.contender.owned_by(pid).await.is_empty()
        })
        .await;
    }

    /// Sends an instance away and waits until others have its partitions.
    pub(crate) async fn leave(&mut self, index: usize) {
        self.running[index].process.terminate();
        let Instance { process, .. } = self.running.remove(index);
        self.ended(&process).await;
        self.gone.push(process);
        self.all_owned().await;
    }

    async fn ended(&self, process: &Process) {
        let code = process.wait_exit(PATIENCE).await;
        // A control whose COMMIT was lost has ended with 1 before.
        assert!(code == 0 || self.contender.kind != Kind::Oncesink, "exit {code}: {}", process.text());
    }

    /// Sends all away.
    pub(crate) async fn end(&mut self) {
        for instance in &self.running {
            instance.process.terminate();
        }
        for Instance { process, .. } in std::mem::take(&mut self.running) {
            self.ended(&process).await;
            self.gone.push(process);
        }
    }

    /// Lines of all instances so far that contain `text`.
    pub(crate) fn said(&self, text: &str) -> usize {
        let running = self.running.iter().map(|instance| &instance.process);
        let lines = running.chain(&self.gone).flat_map(Process::lines);
        lines.filter(|line| line.text.contains(text)).count()
    }
}

/// Orders behind a frozen owner's place, at least.
const BACKLOG: i64 = 5_000;
/// Rows that others write of each of its partitions before it is woken up.
const TAKEN_OVER: i64 = 1_500;
