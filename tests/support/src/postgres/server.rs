//! A Postgres server of our own: data folder in the system's temporary folder, loopback TCP, trust.
//!
//! Invariant: fsync stays on. These tests kill the server and then believe what it still has.

use std::fs::{self, File, Permissions};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};
use sqlx::{Connection, PgConnection};

use super::Postgres;
use crate::child::Guarded;
use crate::workdir::Workdir;
use crate::{cache, ports};

const DEADLINE: Duration = Duration::from_secs(60);

/// A server of our own. Dropping it ends it and removes its data.
#[derive(Debug)]
pub struct PostgresServer {
    postgres: Postgres,
    instance: Arc<Instance>,
}

/// What the blocking work, done on other threads, needs.
#[derive(Debug)]
struct Instance {
    url: String,
    port: u16,
    settings: Vec<(String, String)>,
    // Before the folder: the server must not lose its folder while it runs.
    process: Mutex<Option<Guarded>>,
    folder: Workdir,
}

impl PostgresServer {
    /// Starts a server and waits until it answers.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with settings as in `postgresql.conf`.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        tokio::task::spawn_blocking(move || Self::launch(settings)).await.expect("starting Postgres")
    }

    /// As `start`, for callers outside of a runtime.
    pub fn start_blocking() -> Self {
        Self::launch(Vec::new())
    }

    pub(super) fn launch(settings: Vec<(String, String)>) -> Self {
        let folder = Workdir::new("postgres");
        lay_out(&folder);
        let port = ports::free();
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let postgres = Postgres::connect(&url);
        let instance = Instance { url, port, settings, process: Mutex::new(None), folder };
        instance.start();
        Self { postgres, instance: Arc::new(instance) }
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        self.instance.log()
    }

    /// The process id of the postmaster.
    ///
    /// # Panics
    /// When the server has been stopped.
    pub fn pid(&self) -> u32 {
        self.instance.slot().as_ref().expect("the server was stopped").pid()
    }

    /// `kill -9` of the postmaster; its backends end when they notice, which a restart waits for.
    pub fn kill9(&self) {
        *self.instance.slot() = None;
    }

    /// SIGSTOP for the postmaster: no new session begins, those that are open go on.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT for the postmaster.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Has the server read its settings, rules and certificates again.
    pub(super) fn reload(&self) {
        self.signal(Signal::SIGHUP);
    }

    fn signal(&self, signal: Signal) {
        self.instance.slot().as_ref().expect("the server was stopped").signal(signal);
    }

    /// An immediate stop: all processes end at once and nothing is flushed, as in a crash.
    pub async fn stop_immediate(&self) {
        self.blocking(|instance| instance.stop(Signal::SIGQUIT)).await;
    }

    /// A fast stop: sessions are ended, open transactions rolled back, then a checkpoint.
    pub async fn stop_fast(&self) {
        self.blocking(|instance| instance.stop(Signal::SIGINT)).await;
    }

    /// Starts the server again, on its port and data folder, and waits until it answers; stops it before if it runs.
    pub async fn restart(&self) {
        self.blocking(|instance| {
            instance.stop(Signal::SIGINT);
            instance.start();
        })
        .await;
    }

    /// Lets the server outlive this process, on its port and with its data moved out of the reach of later runs. Gives its URL; whoever looks at it
    /// stops it, by the pid in the first line of `postmaster.pid` in the data folder.
    pub async fn keep(self) -> String {
        self.blocking(Instance::keep).await;
        self.url().to_owned()
    }

    async fn blocking(&self, work: impl FnOnce(&Instance) + Send + 'static) {
        let instance = Arc::clone(&self.instance);
        tokio::task::spawn_blocking(move || work(&instance)).await.expect("a blocking call to the server");
    }
}

impl Deref for PostgresServer {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.postgres
    }
}

impl Instance {
    fn slot(&self) -> MutexGuard<'_, Option<Guarded>> {
        self.process.lock().expect("the server's lock")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    fn start(&self) {
        let begin = Instant::now();
        *self.slot() = Some(self.spawn());
        loop {
            // After kill -9 the old backends hold the shared memory for a moment; a new postmaster then gives up.
            if let Some(status) = self.slot().as_ref().and_then(Guarded::ended) {
                assert!(begin.elapsed() < DEADLINE, "postgres ended with {status}:\n{}", self.log());
                *self.slot() = Some(self.spawn());
            }
            match self.ask() {
                Ok(()) => return,
                Err(e) if begin.elapsed() > DEADLINE => {
                    panic!("postgres does not answer: {e}\n{}", self.log())
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn spawn(&self) -> Guarded {
        // SIGQUIT ends the postmaster with all of its backends at once.
        Guarded::spawn(self.command(self.folder.path()), Signal::SIGQUIT).expect("starting postgres")
    }

    fn keep(&self) {
        self.stop(Signal::SIGINT);
        let kept = std::env::temp_dir().join(crate::unique("oncesink-kept"));
        fs::rename(self.folder.path(), &kept).expect("moving the data folder");
        let mut command = self.command(&kept);
        command.process_group(0);
        drop(command.spawn().expect("starting postgres"));
        let begin = Instant::now();
        while let Err(error) = self.ask() {
            assert!(begin.elapsed() < DEADLINE, "the kept server does not answer: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, folder: &Path) -> Command {
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.join("server.log"))
            .expect("opening the server's log");
        let mut command = unprivileged(&program("postgres"));
        command.arg("-D").arg(folder.join("data"));
        command.arg("-c").arg(format!("port={}", self.port));
        let tuned = TUNING.iter().map(|(key, value)| format!("{key}={value}"));
        let given = self.settings.iter().map(|(key, value)| format!("{key}={value}"));
        for setting in tuned.chain(given) {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().expect("sharing the server's log")).stderr(log);
        command
    }

    fn ask(&self) -> sqlx::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url).await?;
            let role = "DO $$ BEGIN CREATE ROLE oncesink_with_password; EXCEPTION WHEN duplicate_object THEN NULL; END $$";
            sqlx::query(role).execute(&mut connection).await?;
            connection.close().await
        })
    }

    fn stop(&self, signal: Signal) {
        let process = self.slot().take();
        if let Some(process) = process {
            process.signal(signal);
            process.wait(DEADLINE).expect("postgres stops within its deadline");
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop(Signal::SIGQUIT);
    }
}

/// Members of this role need their password; everybody else is trusted. It is made by whoever starts the server.
const WITH_PASSWORD: &str = "oncesink_with_password";

/// Lays out an initialised data folder that belongs to the server's account.
fn lay_out(folder: &Workdir) {
    let data = folder.path().join("data");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(template()).arg(&data);
    run(copy);
    // The first line that fits decides.
    let rules = data.join("pg_hba.conf");
    let trust = fs::read_to_string(&rules).expect("reading the access rules");
    let demand = format!("host all +{WITH_PASSWORD} 127.0.0.1/32 scram-sha-256\n");
    fs::write(&rules, demand + &trust).expect("writing the access rules");
    if let Some(user) = account() {
        let mut own = Command::new("chown");
        own.arg("-R").arg(format!("{}:{}", user.uid, user.gid)).arg(folder.path());
        run(own);
    }
    // The server refuses a folder that others can read.
    fs::set_permissions(&data, Permissions::from_mode(0o700)).expect("closing the data folder");
}

const TUNING: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("shared_buffers", "64MB"),
    ("max_connections", "200"),
    ("max_wal_size", "512MB"),
    ("log_min_messages", "warning"),
    ("log_line_prefix", "%m [%p] %a "),
];

/// The account that the server runs under; none when this process is unprivileged already.
pub(super) fn account() -> Option<User> {
    geteuid().is_root().then(|| {
        let by_name = |name| User::from_name(name).expect("reading the accounts");
        by_name("postgres").or_else(|| by_name("nobody")).expect("an account that Postgres may run under")
    })
}

fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if let Some(user) = account() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

/// A program of the newest installed server; Debian keeps them out of the search path.
fn program(name: &str) -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = debian
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let path = entry.path().join("bin").join(name);
            path.exists().then_some((version, path))
        })
        .collect();
    versions.sort();
    versions.pop().map_or_else(|| PathBuf::from(name), |(_, path)| path)
}

/// An initialised data folder, made once for each version of the server.
fn template() -> PathBuf {
    let version =
        Command::new(program("postgres")).arg("--version").output().expect("running postgres").stdout;
    let version = String::from_utf8_lossy(&version);
    let number = version.split_whitespace().nth(2).expect("a version");
    cache::entry(&format!("postgres-{number}"), |place| {
        // The account must be able to write there, so not in the cache itself.
        let folder = Workdir::new("initdb");
        if let Some(user) = account() {
            nix::unistd::chown(folder.path(), Some(user.uid), Some(user.gid)).expect("giving away a folder");
        }
        let mut initdb = unprivileged(&program("initdb"));
        initdb.args([
            "--no-sync",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ]);
        initdb.arg("--pgdata").arg(folder.path().join("data"));
        run(initdb);
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(folder.path().join("data")).arg(place);
        run(copy);
    })
}

fn run(mut command: Command) {
    let name = command.get_program().to_os_string();
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("cannot run {name:?}: {e}"));
    assert!(output.status.success(), "{name:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}
