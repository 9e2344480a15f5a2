//! A child process that never outlives its parent, and is only ever ended by its own pid.
//!
//! Invariant: the kernel's "signal me when my parent dies" counts the *thread* that forked as the parent, and every
//! test has its own thread. So one thread that lives as long as the process forks all children.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

type Job = Box<dyn FnOnce() + Send>;

fn on_forking_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    static JOBS: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("forking".into())
            .spawn(move || receiver.into_iter().for_each(|job| job()))
            .expect("starting the forking thread");
        Mutex::new(sender)
    });
    let (answer, answered) = mpsc::channel();
    let job: Job = Box::new(move || drop(answer.send(job())));
    jobs.lock().expect("the forking thread's lock").send(job).expect("the forking thread lives");
    answered.recv().expect("the forking thread answers")
}

/// A running or ended child. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Mutex<Child>,
    pid: Pid,
}

impl Guarded {
    /// Starts `command`; the child gets `at_parents_death` when this process ends, however it ends.
    pub(crate) fn spawn(mut command: Command, at_parents_death: Signal) -> io::Result<Self> {
        // SAFETY: between fork and exec only prctl runs, which is async-signal-safe and allocates nothing.
        unsafe {
            command.pre_exec(move || prctl::set_pdeathsig(at_parents_death).map_err(io::Error::from));
        }
        let child = on_forking_thread(move || command.spawn())?;
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid fits"));
        Ok(Self { child: Mutex::new(child), pid })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw().cast_unsigned()
    }

    /// Takes the child's pipes or anything else that only `Child` has.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.child.lock().expect("the child's lock"))
    }

    /// Sends a signal, unless the child has ended and been reaped, so that its pid may be another's by now.
    pub(crate) fn signal(&self, signal: Signal) {
        self.with(|child| {
            if child.try_wait().expect("asking for the child's end").is_none() {
                kill(self.pid, signal).expect("a living child of ours takes signals");
            }
        });
    }

    /// The status if the child has ended.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.with(|child| child.try_wait().expect("asking for the child's end"))
    }

    /// Waits for the end of the child.
    pub(crate) fn wait(&self, deadline: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if begin.elapsed() > deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL, and the child is gone when this returns.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
        let _ = self.with(Child::wait);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The exit code as a shell tells it: 128 and the signal for a child that a signal ended.
pub(crate) fn shell_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
