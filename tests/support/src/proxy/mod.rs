//! A proxy in front of Postgres that understands enough of its protocol to see a COMMIT, and to lose it on either side.
//!
//! Invariant: without a fault every byte passes unchanged (but for a client's wish for encryption, which is declined).
//! The proxy runs on a thread and runtime of its own, so that a test may block.

mod fault;
mod relay;
mod wire;

use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

pub use fault::{Action, Cut, Point, Seen};
use fault::{Passing, Rule, Transaction};

use crate::{eventually_within, ports, postgres};

const DEADLINE: Duration = Duration::from_secs(60);

/// How the proxy treats everything, apart from armed faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pass,
    BlackHole,
    Refuse,
}

/// What the test's side and the sessions share.
struct Shared {
    server: String,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Seen>,
    mode: watch::Sender<Mode>,
    /// Rises with each release of held messages.
    releases: watch::Sender<u64>,
    /// Rises each time that all sessions are to be closed.
    cuts: watch::Sender<u64>,
}

/// A running proxy. Dropping it closes all of its sessions.
pub struct Proxy {
    url: String,
    shared: Arc<Shared>,
    // Dropped with the proxy, which ends the thread.
    _end: oneshot::Sender<()>,
}

impl Proxy {
    /// Starts a proxy in front of the server of a `postgres://` URL.
    pub fn start(url: &str) -> Self {
        let port = ports::free();
        let (end, ended) = oneshot::channel();
        let shared = Arc::new(Shared {
            server: postgres::Postgres::connect(url).address().to_owned(),
            rules: Mutex::default(),
            seen: Mutex::default(),
            mode: watch::channel(Mode::Pass).0,
            releases: watch::channel(0).0,
            cuts: watch::channel(0).0,
        });
        let on_thread = Arc::clone(&shared);
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("binding the proxy's port");
        listener.set_nonblocking(true).expect("a listener for the runtime");
        std::thread::Builder::new()
            .name("proxy".into())
            .spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async {
                    let listener = TcpListener::from_std(listener).expect("a listener of the runtime");
                    tokio::select! {
                        () = relay::listen(listener, on_thread) => {}
                        _ = ended => {}
                    }
                });
            })
            .expect("starting the proxy's thread");
        Self { url: postgres::with_address(url, &format!("127.0.0.1:{port}")), shared, _end: end }
    }

    /// The URL given at the start, by way of the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Cuts at the next COMMIT of any session.
    pub fn cut_next_commit(&self, cut: Cut) {
        let action = match cut {
            Cut::Before => Action::CutBefore,
            Cut::AfterApplied => Action::CutAfter,
        };
        self.arm(Point::Commit, action);
    }

    /// Does `action` the next time that a session comes to `point`.
    pub fn arm(&self, point: Point, action: Action) {
        self.arm_times(1, point, action);
    }

    /// Does `action` the next `times` times that a session comes to `point`. Of several armed faults that fit, the
    /// first one armed is taken.
    ///
    /// # Panics
    /// For an action "after" a COPY data message, which the server does not answer.
    pub fn arm_times(&self, times: u32, point: Point, action: Action) {
        let after = matches!(action, Action::CutAfter | Action::StallAfter);
        assert!(!(after && matches!(point, Point::CopyBytes(_))), "COPY data has no answer to wait for");
        self.shared.rules().push(Rule { point, action, times });
    }

    /// Forgets all armed faults that have not happened.
    pub fn disarm(&self) {
        self.shared.rules().clear();
    }

    /// Lets all held messages go on.
    pub fn release(&self) {
        self.shared.releases.send_modify(|count| *count += 1);
    }

    /// Nothing passes any more, in either direction, in all sessions, old and new; no socket is closed. After `pass`
    /// what was sent meanwhile arrives, as after a broken network has healed.
    pub fn black_hole(&self) {
        self.shared.mode.send_replace(Mode::BlackHole);
    }

    /// New connections are refused, as by a stopped server; sessions go on. The port is closed a moment later.
    pub fn refuse(&self) {
        self.shared.mode.send_replace(Mode::Refuse);
    }

    /// Ends `black_hole` and `refuse`.
    pub fn pass(&self) {
        self.shared.mode.send_replace(Mode::Pass);
    }

    /// Closes all sessions, on both sides.
    pub fn cut_sessions(&self) {
        self.shared.cuts.send_modify(|count| *count += 1);
    }

    /// What has been seen so far.
    pub fn seen(&self) -> Seen {
        *self.shared.seen()
    }

    /// Waits until `wanted` holds for what has been seen.
    #[track_caller]
    pub fn wait_for(&self, wanted: impl Fn(&Seen) -> bool) -> impl Future<Output = Seen> {
        eventually_within(DEADLINE, async || self.seen(), wanted)
    }
}

impl Shared {
    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().expect("the faults' lock")
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("the counters' lock")
    }

    /// The action for the message that is about to pass, used up by this call.
    fn action(&self, passing: &Passing<'_>, transaction: &Transaction) -> Option<Action> {
        let mut rules = self.rules();
        let place = rules.iter().position(|rule| rule.point.is(passing, transaction))?;
        let action = rules[place].action;
        rules[place].times -= 1;
        if rules[place].times == 0 {
            rules.remove(place);
        }
        Some(action)
    }
}
