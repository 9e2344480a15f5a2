//! The life of a writer as a pure function: what it owns, what is in flight, and what an outcome means.
//!
//! Free of clocks, I/O and randomness: time, tokens and everything that happened come in as events. Invariants:
//! - a record is taken only by a partition that was handed over and was not taken away since, and only at or above its next offset;
//! - parts of one partition run in offset order, and nothing runs behind an undecided one;
//! - a record is passed over only with its part, written or set aside in it, and set aside only by a verdict on the record itself;
//! - an outcome counts only for the claim under which its part was run;
//! - a transaction in doubt is settled before anything of its partitions runs again.

mod bad;
mod words;
pub(crate) use words::{BadDescription, Break, Effect, Event, Gone, Phase, Report, Taken, Verdict};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::batch::Part;
use crate::config::OnBadRecord;
use crate::error::Class;
use crate::kafka::ClaimNumber;
use crate::position::after;
use crate::record::TopicPartition;
use crate::store::{Fence, Settled, Step};

/// How often a transaction may be found not applied before its parts are run apart.
const UNDONE_MAX: u32 = 3;
/// How often a transaction may run out of time before it is taken for too large; its halves are split at the first time.
const OVERDUE_MAX: u32 = 2;

/// What a writer knows of a partition that was handed over to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Intake {
    claim: ClaimNumber,
    fence: Fence,
    /// Next offset to take from the queue.
    next: i64,
    /// Runs in a transaction of its own until it has committed once: it was sick.
    alone: bool,
    /// Closed by an event that is no record: nothing is taken until it is handed over again.
    open: bool,
    /// Stored so far.
    stored: i64,
    /// Why it was closed, to be reported when everything taken before is stored.
    broken: Option<Break>,
    /// Records below this offset have waited for the rows that they refer to.
    waited: i64,
}

/// A part with the claim and the fence that make it ours to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) part: Part,
    claim: ClaimNumber,
    fence: Fence,
    /// Why the partition leaves behind this part.
    behind: Option<Gone>,
    /// As the intake's.
    waited: i64,
    /// Taken away while the transaction was running.
    released: bool,
}

impl Held {
    fn place(&self) -> &TopicPartition {
        self.part.topic_partition()
    }

    fn step(&self) -> Step {
        Step {
            place: self.place().clone(),
            fence: self.fence,
            interval: self.part.interval(),
            end: self.part.end(),
        }
    }
}

/// The parts of one transaction and what was tried with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Run {
    held: Vec<Held>,
    attempts: u32,
    undone: u32,
    overdue: u32,
    reopened: bool,
}

impl Run {
    fn of(held: Vec<Held>) -> Self {
        Self { held, ..Self::default() }
    }
}

/// The state of one writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    /// What becomes of bad records.
    policy: OnBadRecord,
    intakes: BTreeMap<TopicPartition, Intake>,
    queue: VecDeque<Run>,
    phase: Phase,
    /// Releases to be acknowledged when the running transaction has ended.
    leaving: BTreeSet<(TopicPartition, ClaimNumber)>,
}

impl Writer {
    /// A writer without partitions.
    pub(crate) fn new(policy: OnBadRecord) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Whether nothing is in flight and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// Takes a record at `offset`, or not: answers the offset from which a slice that begins with it begins.
    pub(crate) fn take(&mut self, place: &TopicPartition, offset: i64) -> Taken {
        match self.intakes.get_mut(place) {
            Some(intake) if intake.open && offset >= intake.next => {
                let from = intake.next;
                intake.next = after(offset);
                Taken::From(from)
            }
            Some(intake) if intake.open => Taken::Below,
            _ => Taken::Unwanted,
        }
    }

    /// Passes over everything below `end`, an end of partition; answers like [`Writer::take`].
    pub(crate) fn pass(&mut self, place: &TopicPartition, end: i64) -> Taken {
        match self.intakes.get_mut(place) {
            Some(intake) if intake.open && end > intake.next => {
                let from = intake.next;
                intake.next = end;
                Taken::From(from)
            }
            Some(intake) if intake.open => Taken::Below,
            _ => Taken::Unwanted,
        }
    }

    /// The whole state-by-event table.
    pub(crate) fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::HandedOver { place, claim, fence, start, alone, waited } => {
                effects.push(Effect::Discard { place: place.clone() });
                effects.push(Effect::AcknowledgeHandOver { place: place.clone(), claim });
                let (next, stored) = (start, start);
                let intake = Intake { claim, fence, next, alone, open: true, stored, broken: None, waited };
                self.intakes.insert(place, intake);
            }
            Event::Released { place, claim, finish } => self.release(&place, claim, finish, &mut effects),
            Event::Broken { place, why } => self.broken(place, why, &mut effects),
            Event::Gathered { parts } => self.gathered(parts, &mut effects),
            Event::BackedOff if matches!(self.phase, Phase::BackingOff | Phase::SettleBackingOff) => {
                self.go_on(&mut effects);
            }
            // A wait that nobody waits for any more.
            Event::BackedOff => {}
            Event::Settled { verdicts } => self.settled(&verdicts, &mut effects),
            Event::SettleFailed => self.settle_failed(&mut effects),
            outcome => self.outcome(outcome, &mut effects),
        }
        effects
    }

    fn release(
        &mut self,
        place: &TopicPartition,
        claim: ClaimNumber,
        finish: bool,
        effects: &mut Vec<Effect>,
    ) {
        if self.intakes.get(place).is_some_and(|intake| intake.claim == claim) {
            self.intakes.remove(place);
            effects.push(Effect::Discard { place: place.clone() });
        }
        let mut in_transaction = false;
        for (index, run) in self.queue.iter_mut().enumerate() {
            let answer_pending = index == 0 && matches!(self.phase, Phase::Running | Phase::Settling);
            if !answer_pending {
                run.held.retain(|held| held.claim != claim || held.place() != place);
                continue;
            }
            // Kept until the answer, which comes in the order of the run.
            for held in run.held.iter_mut().filter(|held| held.claim == claim && held.place() == place) {
                held.released = true;
                in_transaction = self.phase == Phase::Running;
            }
        }
        if !in_transaction {
            // In doubt: the next owner's claim finds out.
            effects.push(Effect::AcknowledgeRelease { place: place.clone(), claim });
            return;
        }
        self.leaving.insert((place.clone(), claim));
        if !finish {
            effects.push(Effect::Withdraw);
        }
    }

    /// Intake ends here. Records that stand before a damaged batch are good, and are stored first: dropped with it, they would be read and dropped again for
    /// ever. Where the log itself is not what it was, what was read of it is dropped.
    fn broken(&mut self, place: TopicPartition, why: Break, effects: &mut Vec<Effect>) {
        if let Some(intake) = self.intakes.get_mut(&place).filter(|intake| intake.open) {
            intake.open = false;
            if why == Break::Error && intake.stored < intake.next {
                intake.broken = Some(why);
                return;
            }
            let claim = intake.claim;
            effects.push(Effect::Report(Report::Gone { place, claim, why: Gone::Broken(why) }));
        }
    }

    fn gathered(&mut self, parts: Vec<Part>, effects: &mut Vec<Effect>) {
        let mut together = Vec::new();
        for part in parts {
            let Some(intake) = self.intakes.get(part.topic_partition()) else { continue };
            let Intake { claim, fence, alone, waited, .. } = *intake;
            let held = Held { part, claim, fence, behind: None, waited, released: false };
            if alone {
                self.queue.push_back(Run::of(vec![held]));
            } else {
                together.push(held);
            }
        }
        if !together.is_empty() {
            together.sort_by(|a, b| a.place().cmp(b.place()));
            self.queue.push_front(Run::of(together));
        }
        self.go_on(effects);
    }

    /// Runs what stands in front.
    fn go_on(&mut self, effects: &mut Vec<Effect>) {
        while self.queue.front().is_some_and(|run| run.held.is_empty()) {
            // What was waited for, or was in doubt, has gone: the next run starts afresh.
            self.queue.pop_front();
            self.phase = Phase::Idle;
        }
        let Some(run) = self.queue.front() else {
            self.phase = Phase::Idle;
            return;
        };
        let steps = run.held.iter().map(Held::step).collect();
        if self.phase == Phase::SettleBackingOff {
            self.phase = Phase::Settling;
            effects.push(Effect::Settle { steps });
        } else {
            self.phase = Phase::Running;
            let parts = run.held.iter().map(|held| held.part.clone()).collect();
            effects.push(Effect::Run { parts, steps });
        }
    }

    fn outcome(&mut self, outcome: Event, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Running {
            return;
        }
        let Some(mut run) = self.queue.pop_front() else { return };
        let committed = matches!(outcome, Event::Committed);
        self.acknowledge_leaving(effects);
        if committed {
            for held in run.held.drain(..) {
                self.stored(held, effects);
            }
            self.phase = Phase::Idle;
            return self.go_on(effects);
        }
        if let Event::NotMine { matched } = &outcome {
            let mut matched = matched.iter();
            let unmatched: Vec<Held> =
                run.held.extract_if(.., |_| !matched.next().copied().unwrap_or(false)).collect();
            for held in unmatched {
                self.give_up(held, Gone::NotMine, effects);
            }
        }
        run.held.retain(|held| !held.released);
        self.phase = Phase::Idle;
        match outcome {
            Event::InDoubt => return self.in_doubt(run, effects),
            Event::Contended { locked } => {
                let contended: Vec<Held> =
                    run.held.extract_if(.., |held| locked.contains(held.place())).collect();
                let freed = contended.is_empty();
                for held in contended {
                    self.give_up(held, Gone::Contended, effects);
                }
                if freed {
                    return self.back_off(run, effects);
                }
                self.queue.push_front(run);
            }
            Event::Bad { records } => self.bad(run, records, effects),
            Event::BadSomewhere { description } => self.search(run, description, effects),
            Event::RolledBack { class } => match class {
                Class::Fatal => {
                    // Nothing more is handed to a connector that broke its contract.
                    self.queue.clear();
                    self.intakes.clear();
                    effects.push(Effect::Report(Report::Fatal));
                }
                Class::StaleCatalog if !run.reopened => self.reopen(run, Effect::Reopen, effects),
                Class::StaleCatalog | Class::SickObject => self.sick(run, effects),
                Class::Timeout => return self.overdue(run, effects),
                Class::Transient | Class::WrongServer | Class::BadRecord => {
                    return self.back_off(run, effects);
                }
            },
            _ => self.queue.push_front(run),
        }
        self.go_on(effects);
    }

    fn acknowledge_leaving(&mut self, effects: &mut Vec<Effect>) {
        for (place, claim) in std::mem::take(&mut self.leaving) {
            effects.push(Effect::AcknowledgeRelease { place, claim });
        }
    }

    /// A part is stored: its partition is past it, and stops when a bad record stands right behind.
    fn stored(&mut self, held: Held, effects: &mut Vec<Effect>) {
        let (place, claim, offset) = (held.place().clone(), held.claim, held.part.interval().to);
        let mut broken = None;
        if let Some(intake) = self.intakes.get_mut(&place).filter(|intake| intake.claim == claim) {
            intake.alone = false;
            intake.fence = held.fence;
            intake.stored = offset;
            broken = intake.broken.filter(|_| offset == intake.next);
        }
        effects.push(Effect::Report(Report::Stored {
            place: place.clone(),
            claim,
            offset,
            fence: held.fence,
            records: held.part.read(),
        }));
        if let Some(why) = broken {
            let place = place.clone();
            effects.push(Effect::Report(Report::Gone { place, claim, why: Gone::Broken(why) }));
        }
        if let Some(why) = held.behind {
            effects.push(Effect::Report(Report::Gone { place, claim, why }));
        }
    }

    /// Drops a partition: what was gathered, what is queued, and its intake.
    fn give_up(&mut self, held: Held, why: Gone, effects: &mut Vec<Effect>) {
        let (place, claim) = (held.place().clone(), held.claim);
        self.forget(&place, claim, effects);
        if !held.released {
            effects.push(Effect::Report(Report::Gone { place, claim, why }));
        }
    }

    fn forget(&mut self, place: &TopicPartition, claim: ClaimNumber, effects: &mut Vec<Effect>) {
        for run in &mut self.queue {
            run.held.retain(|held| held.claim != claim || held.place() != place);
        }
        if self.intakes.get(place).is_some_and(|intake| intake.claim == claim) {
            self.intakes.remove(place);
            effects.push(Effect::Discard { place: place.clone() });
        }
    }

    fn back_off(&mut self, mut run: Run, effects: &mut Vec<Effect>) {
        if run.held.is_empty() {
            return self.go_on(effects);
        }
        run.attempts = run.attempts.saturating_add(1);
        effects.push(Effect::BackOff { attempts: run.attempts });
        self.queue.push_front(run);
        self.phase = Phase::BackingOff;
    }

    /// Out of time: what was too much for a statement's limit will be so again, for ever, so that halves are tried, down to a record.
    fn overdue(&mut self, mut run: Run, effects: &mut Vec<Effect>) {
        run.overdue = run.overdue.saturating_add(1);
        if run.overdue >= OVERDUE_MAX
            && let Some((left, right)) = split(&run)
        {
            self.queue.push_front(right);
            run = left;
        }
        self.back_off(run, effects);
    }

    fn reopen(&mut self, mut run: Run, how: Effect, effects: &mut Vec<Effect>) {
        run.reopened = true;
        effects.push(how);
        self.queue.push_front(run);
    }

    /// A table is sick: partitions run apart, so that healthy ones commit; one that stands alone leaves the queue.
    fn sick(&mut self, mut run: Run, effects: &mut Vec<Effect>) {
        if run.held.len() > 1 {
            let right = run.held.split_off(run.held.len() / 2);
            self.queue.push_front(Run { held: right, ..run.clone() });
            self.queue.push_front(run);
            return;
        }
        for held in run.held {
            self.give_up(held, Gone::Sick, effects);
        }
    }

    fn in_doubt(&mut self, run: Run, effects: &mut Vec<Effect>) {
        if run.held.is_empty() {
            return self.go_on(effects);
        }
        effects.push(Effect::Settle { steps: run.held.iter().map(Held::step).collect() });
        self.queue.push_front(run);
        self.phase = Phase::Settling;
    }

    fn settle_failed(&mut self, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Settling {
            return;
        }
        let Some(run) = self.queue.front_mut() else { return };
        run.held.retain(|held| !held.released);
        run.attempts = run.attempts.saturating_add(1);
        effects.push(Effect::BackOff { attempts: run.attempts });
        self.phase = Phase::SettleBackingOff;
    }

    /// The parts that are still mine decide for the transaction, and must agree.
    fn settled(&mut self, verdicts: &[Settled], effects: &mut Vec<Effect>) {
        if self.phase != Phase::Settling {
            return;
        }
        let Some(mut run) = self.queue.pop_front() else { return };
        self.phase = Phase::Idle;
        let (mut mine, mut fenced) = (Vec::new(), Vec::new());
        for (mut held, verdict) in run.held.drain(..).zip(verdicts) {
            match *verdict {
                _ if held.released => {}
                Settled::Fenced => fenced.push(held),
                Settled::Mine { offset, fence } => {
                    self.adopt(&mut held, fence, effects);
                    mine.push((held, offset));
                }
            }
        }
        let verdict = verdict(&mine);
        if !mine.is_empty() || !fenced.is_empty() {
            effects.push(Effect::Verdict(verdict));
        }
        for held in fenced {
            self.give_up(held, Gone::NotMine, effects);
        }
        // One transaction: where a part of it is stored, none of the others can be found undone.
        let contradicted = mine.iter().any(|(held, offset)| *offset == held.part.interval().to);
        for (held, found) in mine {
            let from = held.part.interval().from;
            if verdict == Verdict::Applied {
                self.stored(held, effects);
            } else if found == from && !contradicted {
                run.held.push(held);
            } else if found < from {
                self.give_up(held, Gone::Rewound { found }, effects);
            } else {
                self.give_up(held, Gone::Odd { found }, effects);
            }
        }
        run.undone += 1;
        if !run.held.is_empty() && run.undone >= UNDONE_MAX && run.held.len() > 1 {
            run.undone = 0;
            let right = run.held.split_off(run.held.len() / 2);
            self.queue.push_front(Run { held: right, ..run.clone() });
        }
        self.queue.push_front(run);
        self.go_on(effects);
    }

    /// The settle wrote a new fence: everything of this claim carries it from now on.
    fn adopt(&mut self, held: &mut Held, fence: Fence, effects: &mut Vec<Effect>) {
        held.fence = fence;
        let (place, claim) = (held.place().clone(), held.claim);
        effects.push(Effect::Report(Report::Refenced { place: place.clone(), claim, fence }));
        if let Some(intake) = self.intakes.get_mut(&place).filter(|intake| intake.claim == claim) {
            intake.fence = fence;
        }
        for other in self.queue.iter_mut().flat_map(|run| &mut run.held) {
            if other.claim == claim && other.place() == &place {
                other.fence = fence;
            }
        }
    }
}

/// The parts that are still mine, with the offsets found, decide for the transaction.
fn verdict(mine: &[(Held, i64)]) -> Verdict {
    let all = |end: fn(&Part) -> i64| mine.iter().all(|(held, found)| *found == end(&held.part));
    if mine.is_empty() {
        Verdict::Fenced
    } else if all(|part| part.interval().to) {
        Verdict::Applied
    } else if all(|part| part.interval().from) {
        Verdict::NotApplied
    } else {
        Verdict::Rewound
    }
}

/// Halves of a run: by partitions as long as there are several, then by records; the left one goes first.
fn split(run: &Run) -> Option<(Run, Run)> {
    if run.held.len() > 1 {
        let (left, right) = run.held.split_at(run.held.len() / 2);
        let with = |held: &[Held]| Run { held: held.to_vec(), ..run.clone() };
        return Some((with(left), with(right)));
    }
    let held = run.held.first()?;
    let (left, right) = held.part.halves()?;
    // The end, when there is one, stands behind the right half.
    let left = Held { part: left, behind: None, ..held.clone() };
    let right = Held { part: right, ..held.clone() };
    Some((Run { held: vec![left], ..run.clone() }, Run { held: vec![right], ..run.clone() }))
}

#[cfg(test)]
mod tests;
