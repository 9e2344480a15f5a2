//! The command under test as a child: its configuration in a folder of its own, its lines read as they come.
//!
//! Invariant: the pipes are read all the time, so that the child never blocks on a full one; the child ends with the
//! value, or with the test process.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::child::Guarded;
use crate::workdir::Workdir;

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A line that the child wrote, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The stream it came on.
    pub stream: Stream,
    /// Its text.
    pub text: String,
}

/// How the child was started, and where.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    folder: Workdir,
}

/// A running or ended child.
#[derive(Debug)]
pub struct Process {
    child: Guarded,
    lines: Arc<Lines>,
    folder: Workdir,
}

#[derive(Debug, Default)]
struct Lines {
    state: Mutex<Captured>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Captured {
    lines: Vec<Line>,
    ended_streams: usize,
}

impl Launch {
    /// A launch of the program at `binary`, which the caller knows as `env!("CARGO_BIN_EXE_oncesink")`. The working
    /// folder is new and empty.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let folder = Workdir::new("process");
        let mut command = Command::new(binary.as_ref());
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, folder }
    }

    /// Writes a file into the working folder.
    pub fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.folder.path().join(name), text).expect("writing a file for the child");
        self
    }

    /// The path of a file in the working folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One more argument.
    pub fn arg(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments.
    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(arguments);
        self
    }

    /// A variable of the child's environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts the child.
    pub fn start(self) -> Process {
        let child = Guarded::spawn(self.command, Signal::SIGKILL).expect("starting the command under test");
        let lines = Arc::<Lines>::default();
        let (out, err) = child.with(|child| (child.stdout.take(), child.stderr.take()));
        lines.read(Stream::Out, out.expect("a pipe for standard output"));
        lines.read(Stream::Err, err.expect("a pipe for standard error"));
        Process { child, lines, folder: self.folder }
    }

    /// Starts the child and waits for its end; gives its exit code and all of its lines.
    pub async fn run(self, deadline: Duration) -> (i32, Vec<Line>) {
        let process = self.start();
        let code = process.wait_exit(deadline).await;
        (code, process.lines())
    }
}

impl Lines {
    fn read(self: &Arc<Self>, stream: Stream, pipe: impl Read + Send + 'static) {
        let lines = Arc::clone(self);
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n') {
                let Ok(line) = line else { break };
                let text = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                lines.state.lock().expect("the lines' lock").lines.push(Line { stream, text });
                lines.news.notify_all();
            }
            lines.state.lock().expect("the lines' lock").ended_streams += 1;
            lines.news.notify_all();
        });
    }

    /// The first line from `from` on that `wanted` holds for, or all lines if there is none in time.
    fn find(
        &self,
        from: usize,
        wanted: impl Fn(&Line) -> bool,
        deadline: Duration,
    ) -> Result<(usize, Line), Vec<Line>> {
        let begin = Instant::now();
        let mut state = self.state.lock().expect("the lines' lock");
        let mut next = from;
        loop {
            if let Some(at) = state.lines.iter().skip(next).position(&wanted) {
                return Ok((next + at, state.lines[next + at].clone()));
            }
            next = next.max(state.lines.len());
            let left = deadline.saturating_sub(begin.elapsed());
            if left.is_zero() || state.ended_streams == 2 {
                return Err(state.lines.clone());
            }
            state = self.news.wait_timeout(state, left).expect("the lines' lock").0;
        }
    }
}

impl Process {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Whether the process runs; a frozen one runs.
    pub fn is_running(&self) -> bool {
        self.child.ended().is_none()
    }

    /// The working folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All lines so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.state.lock().expect("the lines' lock").lines.clone()
    }

    /// All text so far, for messages.
    pub fn text(&self) -> String {
        joined(&self.lines())
    }

    /// Waits for a line, also among those already written.
    ///
    /// # Panics
    /// When none came before the deadline or the child's end; the message shows all lines.
    pub async fn wait_for_line(
        &self,
        wanted: impl Fn(&Line) -> bool + Send + 'static,
        deadline: Duration,
    ) -> Line {
        self.wait_for_line_after(0, wanted, deadline).await.1
    }

    /// Waits for a line with an index of `from` or more; gives its index, too.
    ///
    /// # Panics
    /// As `wait_for_line`.
    pub async fn wait_for_line_after(
        &self,
        from: usize,
        wanted: impl Fn(&Line) -> bool + Send + 'static,
        deadline: Duration,
    ) -> (usize, Line) {
        let lines = Arc::clone(&self.lines);
        tokio::task::spawn_blocking(move || lines.find(from, wanted, deadline))
            .await
            .expect("waiting for a line")
            .unwrap_or_else(|all| panic!("no such line within {deadline:?}; all lines:\n{}", joined(&all)))
    }

    /// `kill -9`; the process is gone when this returns.
    pub fn kill9(&self) {
        self.child.kill();
    }

    /// SIGSTOP.
    pub fn freeze(&self) {
        self.child.signal(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.child.signal(Signal::SIGCONT);
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.child.signal(Signal::SIGTERM);
    }

    /// SIGINT.
    pub fn interrupt(&self) {
        self.child.signal(Signal::SIGINT);
    }

    /// Waits for the end and for the last line; gives the exit code, or 128 and the number of the signal that ended it.
    ///
    /// # Panics
    /// When the child still runs at the deadline; the message shows all lines.
    pub async fn wait_exit(&self, deadline: Duration) -> i32 {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.ended() {
                break status;
            }
            assert!(
                begin.elapsed() < deadline,
                "still running after {deadline:?}; all lines:\n{}",
                self.text()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let lines = Arc::clone(&self.lines);
        let rest = deadline.saturating_sub(begin.elapsed()).max(Duration::from_secs(1));
        let _ = tokio::task::spawn_blocking(move || lines.find(usize::MAX, |_| false, rest)).await;
        crate::child::shell_code(status)
    }
}

fn joined(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}
