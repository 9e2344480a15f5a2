//! One side of the comparison: a child that reads all orders, and the hand that kills it on its way.
//!
//! Invariant: whether a kill hits a transaction is known and not guessed. The child is stopped first, then the file's write lock is tried from outside, then the child
//! that still stands where it was is killed.

use std::path::Path;
use std::time::{Duration, Instant};

use super::child::{Child, Ended};
use super::file::{CONFIGURATION, DATABASE, Files, LOG, NAIVE_DATABASE, SESSION_MS};
use super::plan::{INSIDE_MIN, Killed, Plan};
use super::progress::Bar;
use super::tables::Look;
use crate::exit::Failed;

const PAUSE: Duration = Duration::from_millis(4);
/// So long a transaction is waited for when one must be hit.
const AIM_MAX: Duration = Duration::from_secs(5);
/// Between two looks whether a transaction is open now.
const AIM_PAUSE: Duration = Duration::from_micros(700);
/// So long without a row is no progress any more; ten times what a start was seen to take on a busy machine.
const STUCK: Duration = Duration::from_secs(30);

/// So long after a kill the mock's group has surely forgotten the dead member: its session, the second between two of the mock's looks, and some more. The mock names
/// members by addresses in its memory, which recur, and two members of one name crash librdkafka; no broker has two such.
const FORGOTTEN: Duration = Duration::from_millis(SESSION_MS as u64 + 1_000 + 300);

/// One side.
pub(super) struct Side<'a> {
    files: &'a Files,
    database: &'static Path,
    /// Of `oncesink`.
    arguments: Vec<String>,
    /// Whether to go on killing until it shows duplicates, or until transactions were hit.
    shows_duplicates: bool,
}

/// What a child came to.
enum Came {
    /// The place where it is to be killed.
    ToTheTarget,
    /// The end of the orders.
    ToTheEnd,
}

impl<'a> Side<'a> {
    /// The sink.
    pub(super) fn once(files: &'a Files) -> Self {
        let arguments = ["--config", CONFIGURATION, "run", "--until-end"].map(str::to_owned).into();
        Self { files, database: Path::new(DATABASE), arguments, shows_duplicates: false }
    }

    /// The loop in the usual order of commits.
    pub(super) fn naive(files: &'a Files, brokers: &str, batch: i64) -> Self {
        let batch = batch.to_string();
        let arguments = ["demo", "naive", "--brokers", brokers, "--batch", &batch].map(str::to_owned).into();
        Self { files, database: Path::new(NAIVE_DATABASE), arguments, shows_duplicates: true }
    }

    /// Starts it, kills it by the plan, starts it again, until all orders are read.
    pub(super) fn run(&self, plan: &Plan, bar: &Bar) -> Result<Killed, Failed> {
        let mut killed = Killed::default();
        loop {
            let mut child = Child::start(&self.arguments, (self.files.log()?, self.files.log()?))?;
            let mut look = Look::open(self.database)?;
            let began = look.rows()?;
            let shown = if self.shows_duplicates { look.doubled()? > 0 } else { killed.inside >= INSIDE_MIN };
            let target = plan.next(killed, shown).map(|step| began + step);
            if let Came::ToTheEnd = self.wait(&mut child, &mut look, began, target, bar)? {
                return Ok(killed);
            }
            let must = !self.shows_duplicates && Plan::must_be_inside(killed);
            let inside = aim(&mut child, &mut look, must);
            if child.kill() {
                killed.kills += 1;
                killed.inside += u32::from(inside);
                bar.killed(killed);
            }
            drop(look);
            std::thread::sleep(FORGOTTEN);
        }
    }

    /// Until the rows reach the target, or the child has read everything.
    fn wait(
        &self,
        child: &mut Child,
        look: &mut Look,
        began: i64,
        target: Option<i64>,
        bar: &Bar,
    ) -> Result<Came, Failed> {
        let (mut rows, mut since) = (began, Instant::now());
        loop {
            let ended = child.ended();
            let now = look.rows()?;
            if now > rows {
                (rows, since) = (now, Instant::now());
            }
            bar.rows(rows);
            match ended {
                Some(Ended::Code(0)) => return Ok(Came::ToTheEnd),
                Some(ended) => return Err(self.trouble(&format!("ended by itself: {ended:?}"))),
                None if target.is_some_and(|target| rows >= target) => return Ok(Came::ToTheTarget),
                None if since.elapsed() > STUCK => {
                    return Err(self.trouble(&format!("wrote nothing for {} s", STUCK.as_secs())));
                }
                None => std::thread::sleep(PAUSE),
            }
        }
    }

    fn trouble(&self, what: &str) -> Failed {
        let name = if self.shows_duplicates { "the naive loop" } else { "oncesink run" };
        Failed::refused(format!("{name} {what}; {LOG} holds what it said"))
    }
}

/// Stops the child and looks whether it stands in a transaction; when it `must`, again and again. Leaves it stopped.
fn aim(child: &mut Child, look: &mut Look, must: bool) -> bool {
    let began = Instant::now();
    loop {
        if !child.freeze() {
            return false;
        }
        let inside = look.is_locked();
        if inside || !must || began.elapsed() > AIM_MAX {
            return inside;
        }
        child.thaw();
        std::thread::sleep(AIM_PAUSE);
    }
}
