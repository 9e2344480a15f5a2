//! The life of every partition that the group assigns here, as a pure function.
//!
//! Free of clocks, I/O and randomness. Invariants:
//! - a partition is assigned only at the offset that its own, latest claim returned, and only after its writer acknowledged the hand-over;
//! - whatever an older claim still brings is dropped;
//! - a revoke is answered when all its writers have let go, or when the loop says that it waited long enough.

mod words;
pub(crate) use words::{Effect, Event, Halt, HaltState, Life, Start, Then};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::kafka::{ClaimNumber, Tenure};
use crate::record::TopicPartition;
use crate::store::Fence;
use crate::writer::{Break, Gone};

/// A partition whose queue delivers anything but records is read again for this long without progress before it stops.
const NO_PROGRESS_MAX: Duration = Duration::from_secs(600);
/// A partition that is fenced more often than this within a minute has two owners, and stops.
const FENCED_MAX: usize = 10;
const FENCED_WITHIN: Duration = Duration::from_secs(60);

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partition {
    pub(crate) life: Life,
    pub(crate) claim: ClaimNumber,
    /// The group's assignment under which it is here: a start of an earlier one is refused by the consumer.
    tenure: Tenure,
    /// Troubles since a transaction was last stored: the back-off's exponent.
    attempts: u32,
    /// Was sick: runs in transactions of its own until one is stored.
    alone: bool,
    /// The fence that was last known to be mine.
    pub(crate) fence: Option<Fence>,
    /// The fence that the row was last known to bear, mine or not; none when there is no row, or when it was never read. Another one is a word from outside.
    pub(crate) seen: Option<Fence>,
    /// The stored offset as last known.
    pub(crate) stored: Option<i64>,
    /// Where its latest claim began.
    started: Option<i64>,
    /// A record that was delivered past its writer: the next claim must find the row at or below it.
    stray: Option<i64>,
    /// Since when its queue delivers something else than records, without progress.
    broken_since: Option<Duration>,
    /// When transactions were refused because the row was not mine.
    fenced: Vec<Duration>,
    /// Who else had the row last, for people.
    other: Option<String>,
}

/// What a claim found out about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There is none.
    NoRow,
    /// It belongs to others and was not touched.
    Others(Option<Fence>),
    /// It is mine, at this offset.
    Mine { fence: Fence, offset: i64 },
}

impl Partition {
    /// Label value of `oncesink_partition_state`.
    pub(crate) fn state(&self) -> &'static str {
        match &self.life {
            Life::Running { .. } => "running",
            Life::Halted(Halt { state: HaltState::Stopped, .. }) => "stopped",
            Life::Halted(Halt { state: HaltState::Refused, .. }) => "refused",
            Life::Halted(Halt { state: HaltState::Paused, .. }) => "paused",
            _ if self.alone => "blocked",
            _ => "claiming",
        }
    }

    /// Whether it neither waits for a claim nor is on its way somewhere.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.life, Life::Running { .. } | Life::Halted(_))
    }

    /// Whether it waits for a word from outside.
    pub(crate) fn is_halted(&self) -> bool {
        matches!(self.life, Life::Halted(_))
    }

    /// Whether it is on its way out: the group wants it back, or the sink ends.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.life, Life::Leaving { .. })
    }

    /// The writer that has it, or has been told to let go of it.
    fn held_by(&self) -> Option<usize> {
        match self.life {
            Life::Releasing { writer, .. } | Life::Leaving { writer } => Some(writer),
            _ => self.writer(),
        }
    }

    /// The writer that has it.
    fn writer(&self) -> Option<usize> {
        match self.life {
            Life::HandingOver { writer, .. } | Life::Positioning { writer } | Life::Running { writer } => {
                Some(writer)
            }
            _ => None,
        }
    }
}

/// All partitions of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Partitions {
    map: BTreeMap<TopicPartition, Partition>,
    writers: usize,
    last_claim: u64,
    revoking: Option<Revoke>,
    ending: bool,
    now: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Revoke {
    places: Vec<TopicPartition>,
    waiting: BTreeSet<TopicPartition>,
}

impl Partitions {
    /// No partition yet, `writers` to spread them over.
    pub(crate) fn new(writers: usize) -> Self {
        Self { writers, ..Self::default() }
    }

    /// Every partition that the group assigns here.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TopicPartition, &Partition)> {
        self.map.iter()
    }

    /// One partition.
    pub(crate) fn get(&self, place: &TopicPartition) -> Option<&Partition> {
        self.map.get(place)
    }

    /// Remembers what a claim found, whatever follows from it: later looks are compared with it, and only what is mine may be written to.
    pub(crate) fn learn(&mut self, place: &TopicPartition, claim: ClaimNumber, found: Found) {
        let Some(partition) = self.current(place, claim) else { return };
        match found {
            Found::Mine { fence, offset } => {
                if partition.stored != Some(offset) {
                    partition.broken_since = None;
                }
                (partition.fence, partition.seen) = (Some(fence), Some(fence));
                partition.stored = Some(offset);
            }
            Found::Others(fence) => (partition.seen, partition.stored) = (fence, None),
            Found::NoRow => (partition.seen, partition.stored) = (None, None),
        }
    }

    /// Remembers who had the row before this claim, when that was somebody else.
    pub(crate) fn name_other(&mut self, place: &TopicPartition, other: Option<&str>) {
        if let (Some(partition), Some(other)) = (self.map.get_mut(place), other) {
            partition.other = Some(other.to_owned());
        }
    }

    /// Whether a claim is still the partition's latest.
    pub(crate) fn is_current(&self, place: &TopicPartition, claim: ClaimNumber) -> bool {
        self.map.get(place).is_some_and(|partition| partition.claim == claim)
    }

    /// The whole state-by-event table.
    pub(crate) fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Assigned { places, tenure } => self.assigned(places, tenure, &mut effects),
            Event::Revoked(places) => self.revoked(places, &mut effects),
            Event::Lost(places) => self.lost(&places, &mut effects),
            Event::ClientLost => {
                let all: Vec<TopicPartition> = self.map.keys().cloned().collect();
                self.lost(&all, &mut effects);
                self.revoking = None;
            }
            Event::RevokeOverdue => self.answer_revoke(&mut effects),
            Event::Claimed { place, claim, fence, start } => {
                self.claimed(place, claim, fence, start, &mut effects)
            }
            Event::ClaimHalted { place, claim, halt } => {
                if let Some(partition) = self.current(&place, claim)
                    && partition.life == Life::Claiming
                {
                    partition.life = Life::Halted(halt.clone());
                    effects.push(Effect::Halted { place, halt });
                }
            }
            Event::HandedOver { place, claim } => {
                if let Some(partition) = self.current(&place, claim)
                    && let Life::HandingOver { writer, start } = partition.life
                {
                    partition.life = Life::Positioning { writer };
                    let tenure = partition.tenure;
                    effects.push(Effect::Assign { writer, place, tenure, claim, start });
                }
            }
            Event::Positioned { place, claim } => {
                if let Some(partition) = self.current(&place, claim)
                    && let Life::Positioning { writer } = partition.life
                {
                    partition.life = Life::Running { writer };
                }
            }
            Event::NotPositioned { place, claim } => {
                if let Some(partition) = self.current(&place, claim) {
                    partition.attempts = partition.attempts.saturating_add(1);
                    self.take_out(&place, Then::Claim, &mut effects);
                }
            }
            Event::Released { place, claim } => self.released(&place, claim, &mut effects),
            Event::Unassigned(places) => self.unassigned(places, &mut effects),
            Event::Stored { place, claim, offset, fence } => {
                if let Some(partition) = self.current(&place, claim) {
                    (partition.attempts, partition.alone, partition.broken_since) = (0, false, None);
                    (partition.stored, partition.fence) = (Some(offset), Some(fence));
                    partition.seen = Some(fence);
                }
            }
            Event::Refenced { place, claim, fence } => {
                if let Some(partition) = self.current(&place, claim) {
                    (partition.fence, partition.seen) = (Some(fence), Some(fence));
                }
            }
            Event::Gone { place, claim, why } => self.gone(&place, claim, why, &mut effects),
            Event::Stray { place, offset } => self.stray(&place, offset, &mut effects),
            Event::OutsideWord(place) => self.take_out(&place, Then::Claim, &mut effects),
            Event::Halt { place, halt } => self.take_out(&place, Then::Halt(halt), &mut effects),
            Event::Tick(now) => self.tick(now, &mut effects),
            Event::Shutdown => self.shutdown(&mut effects),
            Event::DrainOverdue => {
                for (place, partition) in &self.map {
                    if let Life::Leaving { writer } = partition.life {
                        let claim = partition.claim;
                        effects.push(Effect::Release { writer, place: place.clone(), claim, finish: false });
                    }
                }
            }
        }
        effects
    }

    fn current(&mut self, place: &TopicPartition, claim: ClaimNumber) -> Option<&mut Partition> {
        self.map.get_mut(place).filter(|partition| partition.claim == claim)
    }

    fn assigned(&mut self, places: Vec<TopicPartition>, tenure: Tenure, effects: &mut Vec<Effect>) {
        if self.ending {
            return;
        }
        for place in places {
            if let Some(partition) = self.map.get_mut(&place) {
                partition.tenure = tenure;
                self.take_out(&place, Then::Claim, effects);
                continue;
            }
            let claim = self.next_claim();
            let partition = Partition {
                life: Life::Claiming,
                claim,
                tenure,
                attempts: 0,
                alone: false,
                fence: None,
                seen: None,
                stored: None,
                started: None,
                stray: None,
                broken_since: None,
                fenced: Vec::new(),
                other: None,
            };
            self.map.insert(place.clone(), partition);
            effects.push(Effect::Claim { place, claim, attempts: 0 });
        }
    }

    fn next_claim(&mut self) -> ClaimNumber {
        self.last_claim += 1;
        ClaimNumber(self.last_claim)
    }

    fn revoked(&mut self, places: Vec<TopicPartition>, effects: &mut Vec<Effect>) {
        let mut waiting = BTreeSet::new();
        for place in &places {
            let Some(partition) = self.map.get_mut(place) else { continue };
            // Also when the sink ends: its transaction is not waited for any more.
            let told = matches!(partition.life, Life::Releasing { .. });
            if let Some(writer) = partition.held_by().filter(|_| !told) {
                let claim = partition.claim;
                effects.push(Effect::Release { writer, place: place.clone(), claim, finish: false });
            }
            match partition.held_by() {
                Some(writer) => {
                    partition.life = Life::Leaving { writer };
                    waiting.insert(place.clone());
                }
                None => {
                    self.map.remove(place);
                }
            }
        }
        self.revoking = Some(Revoke { places, waiting });
        effects.push(Effect::AwaitRevoke);
        self.answer_when_let_go(effects);
    }

    fn answer_when_let_go(&mut self, effects: &mut Vec<Effect>) {
        if self.revoking.as_ref().is_some_and(|revoke| revoke.waiting.is_empty()) {
            self.answer_revoke(effects);
        }
    }

    fn answer_revoke(&mut self, effects: &mut Vec<Effect>) {
        let Some(revoke) = self.revoking.take() else { return };
        for place in &revoke.waiting {
            self.map.remove(place);
        }
        effects.push(Effect::AnswerRevoke { places: revoke.places });
        self.drained_when_empty(effects);
    }

    fn lost(&mut self, places: &[TopicPartition], effects: &mut Vec<Effect>) {
        for place in places {
            let Some(partition) = self.map.remove(place) else { continue };
            if let Some(writer) = partition.writer() {
                let claim = partition.claim;
                effects.push(Effect::Release { writer, place: place.clone(), claim, finish: false });
            }
        }
        self.drained_when_empty(effects);
    }

    fn claimed(
        &mut self,
        place: TopicPartition,
        claim: ClaimNumber,
        fence: Fence,
        start: Start,
        effects: &mut Vec<Effect>,
    ) {
        self.learn(&place, claim, Found::Mine { fence, offset: start.offset });
        let writer = self.least_loaded();
        let Some(partition) = self.current(&place, claim) else { return };
        if partition.life != Life::Claiming {
            return;
        }
        partition.started = Some(start.offset);
        if let Some(offset) = partition.stray.take().filter(|offset| *offset < start.offset) {
            let halt = Halt::stopped(format!(
                "the record at {offset} was delivered past its writer and may be missing from the target: look for it, then reset to {offset} or skip ahead"
            ));
            partition.life = Life::Halted(halt.clone());
            effects.push(Effect::Halted { place, halt });
            return;
        }
        partition.life = Life::HandingOver { writer, start };
        let alone = partition.alone;
        effects.push(Effect::HandOver { writer, place, claim, fence, start, alone });
    }

    /// What was delivered past the writer is read again. Below the claim's start it is a leftover of an earlier one.
    fn stray(&mut self, place: &TopicPartition, offset: i64, effects: &mut Vec<Effect>) {
        let Some(partition) = self.map.get_mut(place) else { return };
        if partition.started.is_none_or(|started| offset < started) {
            return;
        }
        partition.stray = Some(partition.stray.map_or(offset, |known| known.min(offset)));
        self.take_out(place, Then::Claim, effects);
    }

    fn least_loaded(&self) -> usize {
        let mut loads = vec![0_usize; self.writers.max(1)];
        for writer in self.map.values().filter_map(Partition::writer) {
            if let Some(load) = loads.get_mut(writer) {
                *load += 1;
            }
        }
        loads.iter().enumerate().min_by_key(|(_, load)| **load).map_or(0, |(writer, _)| writer)
    }

    fn released(&mut self, place: &TopicPartition, claim: ClaimNumber, effects: &mut Vec<Effect>) {
        let Some(partition) = self.current(place, claim) else { return };
        match &partition.life {
            Life::Releasing { then, .. } => {
                partition.life = Life::Unassigning { then: then.clone() };
                effects.push(Effect::Unassign { place: place.clone() });
            }
            Life::Leaving { .. } => {
                self.map.remove(place);
                if let Some(revoke) = &mut self.revoking {
                    revoke.waiting.remove(place);
                }
                self.answer_when_let_go(effects);
                self.drained_when_empty(effects);
            }
            _ => {}
        }
    }

    fn unassigned(&mut self, places: Vec<TopicPartition>, effects: &mut Vec<Effect>) {
        for place in places {
            let claim = ClaimNumber(self.last_claim + 1);
            let Some(partition) = self.map.get_mut(&place) else { continue };
            let Life::Unassigning { then } = &partition.life else { continue };
            match then.clone() {
                Then::Claim => {
                    (partition.life, partition.claim) = (Life::Claiming, claim);
                    let attempts = partition.attempts;
                    self.last_claim += 1;
                    effects.push(Effect::Claim { place, claim, attempts });
                }
                Then::Halt(halt) => {
                    partition.life = Life::Halted(halt.clone());
                    effects.push(Effect::Halted { place, halt });
                }
            }
        }
    }

    fn gone(&mut self, place: &TopicPartition, claim: ClaimNumber, why: Gone, effects: &mut Vec<Effect>) {
        let now = self.now;
        let Some(partition) = self.current(place, claim) else { return };
        partition.attempts = partition.attempts.saturating_add(1);
        if matches!(why, Gone::Broken(_)) {
            partition.broken_since.get_or_insert(now);
        }
        let then = match why {
            Gone::NotMine => {
                partition.fenced.retain(|at| now.saturating_sub(*at) < FENCED_WITHIN);
                partition.fenced.push(now);
                if partition.fenced.len() > FENCED_MAX {
                    partition.fenced.clear();
                    let other = partition.other.as_deref().unwrap_or("another process");
                    Then::Halt(Halt::stopped(format!(
                        "fenced more than {FENCED_MAX} times within a minute, by {other}: two owners fight over its row"
                    )))
                } else {
                    Then::Claim
                }
            }
            Gone::Contended => Then::Claim,
            Gone::Rewound { .. } | Gone::Odd { .. } => {
                // Reported with what was found: the claim that follows must not take it for news.
                partition.stored = None;
                Then::Claim
            }
            Gone::Sick | Gone::Orphan { .. } => {
                partition.alone = true;
                Then::Claim
            }
            Gone::Broken(Break::OutOfRange | Break::Error) => Then::Claim,
            Gone::Broken(Break::Truncated) => Then::Halt(Halt::stopped(
                "the log was truncated below the stored offset (an unclean leader election): records that are in the target are gone from the topic, and others may have taken their offsets",
            )),
            Gone::Stopped(bad) => {
                Then::Halt(Halt { state: HaltState::Stopped, reason: bad.message, bad_record: true })
            }
        };
        self.take_out(place, then, effects);
    }

    /// Time alone stops only what was read again and again without progress.
    fn tick(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.now = now;
        let overdue = |since: Duration| now.saturating_sub(since) >= NO_PROGRESS_MAX;
        let stuck: Vec<TopicPartition> = self
            .map
            .iter_mut()
            .filter(|(_, partition)| partition.broken_since.is_some_and(overdue))
            .map(|(place, partition)| {
                partition.broken_since = None;
                place.clone()
            })
            .collect();
        for place in stuck {
            let at = self.map.get(&place).and_then(|partition| partition.stored);
            let at = at.map_or_else(|| "its stored offset".to_owned(), |offset| format!("offset {offset}"));
            let halt = Halt::stopped(format!(
                "nothing could be read at {at} for {} minutes: the broker delivers something else than records there, such as a damaged batch",
                NO_PROGRESS_MAX.as_secs() / 60
            ));
            self.take_out(&place, Then::Halt(halt), effects);
        }
    }

    /// Out of the writer, out of the assignment, then what follows.
    fn take_out(&mut self, place: &TopicPartition, then: Then, effects: &mut Vec<Effect>) {
        let claim = ClaimNumber(self.last_claim + 1);
        let Some(partition) = self.map.get_mut(place) else { return };
        match &mut partition.life {
            Life::HandingOver { writer, .. } | Life::Positioning { writer } | Life::Running { writer } => {
                let writer = *writer;
                partition.life = Life::Releasing { writer, then };
                let claim = partition.claim;
                effects.push(Effect::Release { writer, place: place.clone(), claim, finish: false });
            }
            Life::Releasing { then: after, .. } | Life::Unassigning { then: after } => {
                // A halt is not forgotten for a claim that was decided before it.
                if matches!(then, Then::Halt(_)) {
                    *after = then;
                }
            }
            Life::Claiming | Life::Halted(_) => match then {
                Then::Claim if partition.life == Life::Claiming => {}
                Then::Claim => {
                    (partition.life, partition.claim) = (Life::Claiming, claim);
                    self.last_claim += 1;
                    effects.push(Effect::Claim { place: place.clone(), claim, attempts: 0 });
                }
                Then::Halt(halt) => {
                    let known = matches!(&partition.life, Life::Halted(already) if *already == halt);
                    if partition.life == Life::Claiming {
                        // What its claim still brings is of the time before: taken for news it would hide a later word from outside, and nothing would end the halt.
                        partition.claim = claim;
                        self.last_claim += 1;
                    }
                    partition.life = Life::Halted(halt.clone());
                    if !known {
                        effects.push(Effect::Halted { place: place.clone(), halt });
                    }
                }
            },
            Life::Leaving { .. } => {}
        }
    }

    fn shutdown(&mut self, effects: &mut Vec<Effect>) {
        self.ending = true;
        self.map.retain(|place, partition| {
            if let Some(writer) = partition.writer() {
                let claim = partition.claim;
                effects.push(Effect::Release { writer, place: place.clone(), claim, finish: true });
            }
            let held_by = partition.held_by();
            if let Some(writer) = held_by {
                partition.life = Life::Leaving { writer };
            }
            held_by.is_some()
        });
        self.drained_when_empty(effects);
    }

    fn drained_when_empty(&self, effects: &mut Vec<Effect>) {
        if self.ending && self.map.is_empty() && !effects.contains(&Effect::Drained) {
            effects.push(Effect::Drained);
        }
    }
}

#[cfg(test)]
mod tests;
