//! A child that never outlives the demo, and is only ever ended by its own pid.
//!
//! How: the demo starts itself as `demo child`, which asks the kernel for SIGKILL at its parent's death and then becomes the command that it was given; the request
//! outlasts that. The kernel counts the *thread* that forked as the parent, so a child is started by the thread that waits for its end.

use std::convert::Infallible;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::arguments::Bound;
use crate::exit::{Exit, Failed};

/// The program that runs.
pub(super) fn myself() -> Result<PathBuf, Failed> {
    std::env::current_exe().map_err(|error| Failed::preflight(format!("this program's own file: {error}")))
}

/// Binds this process to its parent, then becomes `oncesink` with the arguments.
pub(super) fn become_command(bound: &Bound) -> Result<Exit, Failed> {
    bind(bound.parent)?;
    let error: Result<Infallible, _> = Err(Command::new(myself()?).args(&bound.command).exec());
    error.map_or_else(
        |error| Err(Failed::preflight(format!("starting oncesink: {error}"))),
        |never| match never {},
    )
}

#[cfg(target_os = "linux")]
fn bind(parent: i32) -> Result<(), Failed> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| Failed::preflight(format!("binding to the demo: {error}")))?;
    // It may have died before it was asked about.
    if nix::unistd::getppid() == Pid::from_raw(parent) {
        return Ok(());
    }
    Err(Failed::preflight("the demo that started this process is gone"))
}

#[cfg(not(target_os = "linux"))]
fn bind(_parent: i32) -> Result<(), Failed> {
    Ok(())
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this exit code.
    Code(i32),
    /// By a signal.
    Signal(Signal),
}

/// A child of this thread. Dropping it kills it.
pub(super) struct Child {
    pid: Pid,
    ended: Option<Ended>,
}

impl Child {
    /// Starts `oncesink` with these arguments; what it says goes to the log.
    pub(super) fn start(arguments: &[String], log: (File, File)) -> Result<Self, Failed> {
        let mut command = Command::new(myself()?);
        command.args(["demo", "child", "--parent", &std::process::id().to_string(), "--"]).args(arguments);
        command.stdin(Stdio::null()).stdout(log.0).stderr(log.1);
        let child =
            command.spawn().map_err(|error| Failed::preflight(format!("starting a child: {error}")))?;
        let pid = i32::try_from(child.id()).map_err(|_| Failed::preflight("a pid beyond all pids"))?;
        Ok(Self { pid: Pid::from_raw(pid), ended: None })
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<Ended> {
        self.wait(WaitPidFlag::WNOHANG);
        self.ended
    }

    /// Stops it, wherever it is; gives false when it ended instead.
    pub(super) fn freeze(&mut self) -> bool {
        self.signal(Signal::SIGSTOP);
        // Until it really stands still, or is gone.
        self.wait(WaitPidFlag::WUNTRACED);
        self.ended.is_none()
    }

    pub(super) fn thaw(&mut self) {
        self.signal(Signal::SIGCONT);
    }

    /// SIGKILL, and it is gone when this returns; gives false when it had ended by itself.
    pub(super) fn kill(&mut self) -> bool {
        self.signal(Signal::SIGKILL);
        while self.ended.is_none() {
            self.wait(WaitPidFlag::empty());
        }
        self.ended == Some(Ended::Signal(Signal::SIGKILL))
    }

    /// To a child that was not waited for yet, so that the pid is still its own.
    fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    fn wait(&mut self, how: WaitPidFlag) {
        if self.ended.is_some() {
            return;
        }
        self.ended = match waitpid(self.pid, Some(how)) {
            Ok(WaitStatus::Exited(_, code)) => Some(Ended::Code(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ended::Signal(signal)),
            Ok(_) | Err(Errno::EINTR) => None,
            // Somebody else waited for it: how it ended is not known, but it did.
            Err(_) => Some(Ended::Code(-1)),
        };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
