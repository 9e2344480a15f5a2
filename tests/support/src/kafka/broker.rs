//! One broker, which is also a controller: its process, its data folder, and what can befall it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rdkafka::consumer::Consumer;

use super::client;
use super::install::Installed;
use crate::child::Guarded;

/// Long beyond need: an idle broker starts in 2 to 3 s, a machine under load may take ten times that.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(90);

/// What of a broker stays the same over its restarts.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: i32,
    pub(super) port: u16,
    pub(super) properties: Vec<(String, String)>,
    pub(super) folder: PathBuf,
    pub(super) cluster_id: String,
    pub(super) heap_mb: u32,
    pub(super) java_options: Vec<String>,
}

/// One broker of a cluster.
#[derive(Debug)]
pub struct Broker {
    plan: Plan,
    java: Vec<String>,
    process: Mutex<Option<Guarded>>,
}

impl Broker {
    /// Lays out the data folder and starts the process, without waiting until it answers.
    pub(super) fn spawn(plan: Plan, installed: &Installed) -> Self {
        let data = plan.folder.join("data");
        copy_folder(&installed.formatted, &data);
        let meta = format!(
            "version=1\ncluster.id={}\nnode.id={}\ndirectory.id={}\n",
            plan.cluster_id,
            plan.id,
            client::random_kafka_id()
        );
        fs::write(data.join("meta.properties"), meta).expect("writing meta.properties");
        let mut text = format!("log.dirs={}\n", data.display());
        for (key, value) in &plan.properties {
            text.push_str(&format!("{key}={value}\n"));
        }
        fs::write(plan.folder.join("server.properties"), text).expect("writing server.properties");
        let java = java_arguments(&plan, installed);
        let broker = Self { plan, java, process: Mutex::new(None) };
        broker.spawn_process();
        broker
    }

    fn spawn_process(&self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.plan.folder.join("broker.log"))
            .expect("opening the broker's log");
        let mut command = Command::new("java");
        command.args(&self.java).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("sharing the broker's log")).stderr(log);
        let process = Guarded::spawn(command, Signal::SIGKILL).expect("starting java");
        *self.slot() = Some(process);
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Guarded>> {
        self.process.lock().expect("the broker's lock")
    }

    /// Starts the ended broker again, on its port and data folder, and waits until it serves.
    pub async fn restart(self: &std::sync::Arc<Self>) {
        let broker = std::sync::Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            broker.stop_now();
            broker.spawn_process();
            broker.wait_ready();
        })
        .await
        .expect("restarting the broker");
    }

    /// Waits until the broker itself tells that it is a live member of the cluster.
    pub(super) fn wait_ready(&self) {
        let begin = Instant::now();
        let consumer = client::plain_consumer(&self.address(), &[]);
        loop {
            self.assert_running();
            let metadata = consumer.client().fetch_metadata(None, Duration::from_millis(500));
            if metadata.is_ok_and(|metadata| metadata.brokers().iter().any(|b| b.id() == self.plan.id)) {
                return;
            }
            assert!(
                begin.elapsed() < START_DEADLINE,
                "broker {} does not answer:\n{}",
                self.plan.id,
                self.log_tail()
            );
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    fn assert_running(&self) {
        if let Some(status) = self.slot().as_ref().and_then(Guarded::ended) {
            panic!("broker {} ended with {status}:\n{}", self.plan.id, self.log_tail());
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.plan.folder.join("broker.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// The broker's id, from 1.
    pub fn id(&self) -> i32 {
        self.plan.id
    }

    /// `127.0.0.1:port` of the listener for clients.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.plan.port)
    }

    /// The process id.
    ///
    /// # Panics
    /// When the broker has been stopped.
    pub fn pid(&self) -> u32 {
        self.slot().as_ref().expect("the broker was stopped").pid()
    }

    /// Whether the process runs (a frozen one runs).
    pub fn is_running(&self) -> bool {
        self.slot().as_ref().is_some_and(|process| process.ended().is_none())
    }

    /// `kill -9`; the process is gone when this returns.
    pub fn kill9(&self) {
        self.stop_now();
    }

    fn stop_now(&self) {
        *self.slot() = None;
    }

    /// SIGTERM, and waits for the end; a broker that takes more than 60 s is killed.
    pub async fn stop(self: &std::sync::Arc<Self>) {
        let broker = std::sync::Arc::clone(self);
        tokio::task::spawn_blocking(move || broker.stop_blocking()).await.expect("stopping the broker");
    }

    pub(super) fn stop_blocking(&self) {
        let process = self.slot().take();
        if let Some(process) = process {
            process.signal(Signal::SIGTERM);
            process.wait(Duration::from_secs(60));
        }
    }

    /// SIGSTOP: the process keeps its sockets and does nothing.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        self.slot().as_ref().expect("the broker was stopped").signal(signal);
    }

    /// The folder of the partition's log on this broker.
    pub fn partition_folder(&self, topic: &str, partition: i32) -> PathBuf {
        self.plan.folder.join("data").join(format!("{topic}-{partition}"))
    }

    /// The partition's first segment, which holds all of a short log. The broker reads it anew for each fetch, so that
    /// a byte flipped here reaches consumers.
    pub fn segment(&self, topic: &str, partition: i32) -> PathBuf {
        self.partition_folder(topic, partition).join("00000000000000000000.log")
    }

    /// Flips the bits of one byte of the log on disk, as a bad disk would: the last one, or the `back`th before it. The
    /// last bytes of a log belong to the last record: 1 is the end of its value if it has no headers.
    pub fn flip_byte(&self, topic: &str, partition: i32, back: u64) {
        let path = self.segment(topic, partition);
        let file = File::options().read(true).write(true).open(&path).expect("opening a segment");
        let at = file.metadata().expect("a segment's size").len() - 1 - back;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("reading a byte of a segment");
        file.write_all_at(&[!byte[0]], at).expect("writing a byte of a segment");
    }
}

fn java_arguments(plan: &Plan, installed: &Installed) -> Vec<String> {
    let mut arguments = vec![
        format!("-Xmx{}m", plan.heap_mb),
        "-XX:+UseSerialGC".into(),
        "-XX:TieredStopAtLevel=1".into(),
        "-XX:-UsePerfData".into(),
        "-XX:+ExitOnOutOfMemoryError".into(),
        "-Xshare:auto".into(),
        "-Djava.awt.headless=true".into(),
    ];
    if let Some(archive) = &installed.archive {
        arguments.push(format!("-XX:SharedArchiveFile={}", archive.display()));
    }
    arguments.extend(plan.java_options.iter().cloned());
    arguments.extend(["-cp".into(), installed.class_path.clone(), "kafka.Kafka".into()]);
    arguments.push(plan.folder.join("server.properties").display().to_string());
    arguments
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("making a folder");
    for entry in fs::read_dir(from).expect("reading a folder") {
        let entry = entry.expect("reading a folder");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("reading a folder").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copying a file");
        }
    }
}
