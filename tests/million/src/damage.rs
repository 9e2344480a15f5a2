//! What is done to the instances, the same for every contender, and how much of it really happened.

use std::fmt;
use std::time::{Duration, Instant};

use oncesink_test_support::proxy::{Action, Point, Proxy};

use crate::contender::{Contender, Kind};
use crate::instances::Crew;
use crate::throttle::{self, Progress};

/// Kills of the three instances that bear a name, which have their partitions back at once.
const KILLS: usize = 21;
/// Before these kills another instance joins; it is killed as well before the middle one, else sent away.
const JOINS: [usize; 3] = [3, 10, 17];
const FREEZES: usize = 2;
/// The rest of the rows, no longer held up, takes far less.
const FINISH: Duration = Duration::from_secs(180);

/// What happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    kills: usize,
    /// Kills within a transaction that was seen in the database while the instance was held for it.
    in_transaction: usize,
    /// Freezes with a takeover, a thaw and a return to work.
    freezes: usize,
    /// Joins and leaves after which the partitions were seen to be shared out anew.
    rebalances: usize,
    /// Times that an instance of the command said that it was fenced: by an advance that did not match, or by the group.
    fenced: usize,
    /// COMMITs whose answer the proxy swallowed, as the instances tell it.
    in_doubt: usize,
}

impl Damage {
    async fn kill(&mut self, crew: &mut Crew<'_>, index: usize, in_transaction: bool) {
        crew.kill(index, in_transaction).await;
        self.killed(in_transaction);
    }

    /// One kill more.
    pub(crate) fn killed(&mut self, in_transaction: bool) {
        self.kills += 1;
        self.in_transaction += usize::from(in_transaction);
    }

    /// What falls short where kills are all that can be done.
    pub(crate) fn shortcomings_of_kills(&self) -> Vec<String> {
        short(&[("kills", self.kills, 20), ("kills in a transaction", self.in_transaction, 10)])
    }

    /// What falls short of a run that proves something.
    pub(crate) fn shortcomings(&self) -> Vec<String> {
        short(&[
            ("kills", self.kills, 20),
            ("kills in a transaction", self.in_transaction, 10),
            ("freezes with takeover and thaw", self.freezes, 2),
            ("rebalances", self.rebalances, 5),
            ("commits in doubt", self.in_doubt, 1),
        ])
    }
}

fn short(minimum: &[(&str, usize, usize)]) -> Vec<String> {
    let short = minimum.iter().filter(|(_, seen, least)| seen < least);
    short.map(|(what, seen, least)| format!("only {seen} of {least} {what}")).collect()
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kills {}, in_transaction {}, freezes {}, rebalances {}, fenced {}, in_doubt {}",
            self.kills, self.in_transaction, self.freezes, self.rebalances, self.fenced, self.in_doubt
        )
    }
}

/// Does all of it, lets the rows run to their end, and ends the instances. Also tells how many rows were doubled before anything was frozen.
pub(crate) async fn inflict(contender: &Contender) -> (Damage, i64) {
    let progress = Progress::default();
    let mut crew = Crew::new(contender);
    let mut damage = Damage::default();
    let begin = Instant::now();
    let doubled_by_kills = tokio::select! {
        doubled = schedule(&mut crew, &mut damage, &progress) => doubled,
        () = throttle::pace(contender, &progress) => 0,
    };
    let damaged = begin.elapsed();
    throttle::open(contender).await;
    finish(contender).await;
    crew.end().await;
    if contender.kind == Kind::Oncesink {
        damage.fenced = crew.said("not ours any more") + crew.said("partitions to the group");
        damage.in_doubt = crew.said("in doubt: ");
    }
    let (damaged, whole) = (damaged.as_secs_f64(), begin.elapsed().as_secs_f64());
    eprintln!("{}: {damaged:.0} s of damage, {whole:.0} s in all", contender.kind);
    (damage, doubled_by_kills)
}

async fn schedule(crew: &mut Crew<'_>, damage: &mut Damage, progress: &Progress) -> i64 {
    let steps = KILLS + 1 + FREEZES;
    let url = crew.contender.url.clone();
    for name in ["a", "b", "c"] {
        crew.start(name, &url);
    }
    crew.all_owned().await;
    for kill in 0..KILLS {
        if JOINS.contains(&kill) {
            join_and_go(crew, damage, kill == JOINS[1]).await;
        }
        damage.kill(crew, kill % 3, kill % 4 > 0).await;
        progress.set(kill + 1, steps);
    }
    let doubled = "SELECT (sum(times) - count(*))::bigint FROM written";
    let doubled = crew.contender.integer(doubled).await;
    lose_a_commit(crew, damage).await;
    progress.set(KILLS + 1, steps);
    for freeze in 0..FREEZES {
        crew.freeze(freeze).await;
        damage.freezes += 1;
        progress.set(KILLS + 2 + freeze, steps);
    }
    doubled
}

/// A fourth instance comes, gets partitions, and goes again.
async fn join_and_go(crew: &mut Crew<'_>, damage: &mut Damage, by_kill: bool) {
    let url = crew.contender.url.clone();
    let guest = crew.start("", &url);
    crew.owns_some(guest).await;
    damage.rebalances += 1;
    if by_kill {
        damage.kill(crew, guest, true).await;
        crew.all_owned().await;
    } else {
        crew.leave(guest).await;
    }
    damage.rebalances += 1;
}

/// An instance whose COMMIT is done, and the answer to it swallowed.
async fn lose_a_commit(crew: &mut Crew<'_>, damage: &mut Damage) {
    let proxy = Proxy::start(&crew.contender.url);
    let guest = crew.start("", proxy.url());
    crew.owns_some(guest).await;
    damage.rebalances += 1;
    proxy.arm(Point::CommitOf("orders".into()), Action::CutAfter);
    proxy.wait_for(|seen| seen.cuts == 1).await;
    damage.in_doubt += 1;
    crew.leave(guest).await;
    damage.rebalances += 1;
}

async fn finish(contender: &Contender) {
    let ends: Vec<i64> = (0..crate::orders::PARTITIONS).map(|p| contender.orders.end(p)).collect();
    let begin = Instant::now();
    while contender.written().await != ends && begin.elapsed() < FINISH {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // Behind the last row there may be a bad order.
    let all: Vec<i64> = (0..crate::orders::PARTITIONS).map(|p| contender.orders.of(p)).collect();
    let stored = "SELECT last_offset FROM kafka_offsets ORDER BY partition_id";
    let is_ours = contender.kind == Kind::Oncesink;
    while is_ours && contender.integers(stored).await != all && begin.elapsed() < FINISH {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
