//! What we hold, and what is to be done about it: a pure step from an input to actions.
//!
//! Invariants: a revoke is answered exactly once; nothing else is assigned or unassigned while it waits, since librdkafka would take that for the
//! answer; a start is carried out only in the tenure in which it was claimed. A subscription is not changed while a revoke waits, nor between a loss and the
//! assignment that follows: a member without an id that joins again meets an assertion of librdkafka 2.12.1 there, which ends the process.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::events::{Command, Event, Start, Tenure};
use crate::record::TopicPartition;

/// What the thread learns.
#[derive(Debug)]
pub(super) enum Input {
    Assigned(Vec<TopicPartition>),
    Revoked(Vec<TopicPartition>),
    Lost(Vec<TopicPartition>),
    Assign(Vec<Start>),
    Unassign {
        places: Vec<TopicPartition>,
        revoke: bool,
    },
    Subscribe(Vec<String>),
    /// Time has passed.
    Tick,
}

impl Input {
    /// A command about partitions; none for a stop, which is no matter of the group's.
    pub(super) fn from_command(command: Command) -> Result<Self, Duration> {
        match command {
            Command::Assign(starts) => Ok(Self::Assign(starts)),
            Command::Unassign { places, revoke } => Ok(Self::Unassign { places, revoke }),
            Command::Subscribe(topics) => Ok(Self::Subscribe(topics)),
            Command::Stop { deadline } => Err(deadline),
        }
    }
}

/// What the thread does, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// An incremental assign of nothing: the answer to an assignment.
    AnswerAssign,
    /// An incremental unassign of what is assigned of these, also when that is nothing: the answer to a revoke.
    AnswerRevoke(Vec<TopicPartition>),
    /// The same outside a rebalance; nothing is done for nothing.
    Unassign(Vec<TopicPartition>),
    Assign(Vec<Start>),
    Subscribe(Vec<String>),
    Send(Event),
}

#[derive(Debug)]
struct Waiting {
    places: Vec<TopicPartition>,
    deadline: Instant,
}

#[derive(Debug)]
enum Held {
    Assign(Vec<Start>),
    Unassign(Vec<TopicPartition>),
}

/// Our part of the group.
#[derive(Debug)]
pub(super) struct Membership {
    patience: Duration,
    owned: BTreeMap<TopicPartition, Tenure>,
    tenures: u64,
    waiting: Option<Waiting>,
    held: VecDeque<Held>,
    /// What to subscribe to when the time has come; a later list holds all of an earlier one.
    subscription: Option<Vec<String>>,
    /// Set by a loss, until the next assignment, or until this time: one of nothing may come without a word.
    shaken: Option<Instant>,
}

/// How long a changed subscription waits for the assignment that follows a loss.
const SHAKEN_MAX: Duration = Duration::from_secs(30);

impl Membership {
    /// A member that holds nothing yet and lets a revoke wait this long.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            owned: BTreeMap::new(),
            tenures: 0,
            waiting: None,
            held: VecDeque::new(),
            subscription: None,
            shaken: None,
        }
    }

    /// When the next [`Input::Tick`] matters.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|waiting| waiting.deadline)
    }

    /// What to do about an input.
    pub(super) fn step(&mut self, input: Input, now: Instant) -> Vec<Action> {
        let mut actions = self.react(input, now);
        if self.waiting.is_none() && self.shaken.is_none_or(|until| until <= now) {
            actions.extend(self.subscription.take().map(Action::Subscribe));
        }
        actions
    }

    fn react(&mut self, input: Input, now: Instant) -> Vec<Action> {
        match input {
            Input::Assigned(places) => self.assigned(places),
            Input::Revoked(places) => self.revoked(places, now),
            Input::Lost(places) => {
                self.shaken = Some(now + SHAKEN_MAX);
                self.give_up(places)
            }
            Input::Subscribe(topics) => {
                self.subscription = Some(topics);
                Vec::new()
            }
            Input::Assign(starts) if self.waiting.is_some() => self.hold(Held::Assign(starts)),
            Input::Assign(starts) => self.assign(starts),
            Input::Unassign { places, revoke: true } if self.is_answer(&places) => self.answer(places),
            Input::Unassign { places, .. } if self.waiting.is_some() => self.hold(Held::Unassign(places)),
            Input::Unassign { places, .. } => unassign(places),
            Input::Tick => match &self.waiting {
                Some(waiting) if waiting.deadline <= now => {
                    let places = waiting.places.clone();
                    self.give_up(places)
                }
                _ => Vec::new(),
            },
        }
    }

    fn assigned(&mut self, places: Vec<TopicPartition>) -> Vec<Action> {
        self.shaken = None;
        if places.is_empty() {
            return vec![Action::AnswerAssign, Action::Send(Event::Joined)];
        }
        self.tenures += 1;
        let tenure = Tenure(self.tenures);
        self.owned.extend(places.iter().map(|place| (place.clone(), tenure)));
        vec![Action::AnswerAssign, Action::Send(Event::Assigned { places, tenure })]
    }

    fn revoked(&mut self, places: Vec<TopicPartition>, now: Instant) -> Vec<Action> {
        if places.is_empty() {
            return vec![Action::AnswerRevoke(places)];
        }
        self.waiting = Some(Waiting { places: places.clone(), deadline: now + self.patience });
        vec![Action::Send(Event::Revoked(places))]
    }

    /// An answer that came late belongs to an earlier revoke and must not answer a later one, of other partitions.
    fn is_answer(&self, places: &[TopicPartition]) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.places.iter().all(|place| places.contains(place)))
    }

    fn answer(&mut self, places: Vec<TopicPartition>) -> Vec<Action> {
        let mut actions = vec![Action::AnswerRevoke(places.clone())];
        self.forget_waiting();
        actions.push(Action::Send(Event::Unassigned { places }));
        self.release(actions)
    }

    /// Lost, or revoked and not answered in time.
    fn give_up(&mut self, places: Vec<TopicPartition>) -> Vec<Action> {
        for place in &places {
            self.owned.remove(place);
        }
        self.forget_waiting();
        self.release(vec![Action::AnswerRevoke(places.clone()), Action::Send(Event::Lost(places))])
    }

    fn forget_waiting(&mut self) {
        for place in self.waiting.take().map(|waiting| waiting.places).unwrap_or_default() {
            self.owned.remove(&place);
        }
    }

    fn hold(&mut self, held: Held) -> Vec<Action> {
        self.held.push_back(held);
        Vec::new()
    }

    fn release(&mut self, mut actions: Vec<Action>) -> Vec<Action> {
        while let Some(held) = self.held.pop_front() {
            actions.extend(match held {
                Held::Assign(starts) => self.assign(starts),
                Held::Unassign(places) => unassign(places),
            });
        }
        actions
    }

    fn assign(&self, starts: Vec<Start>) -> Vec<Action> {
        let (ours, others): (Vec<Start>, Vec<Start>) =
            starts.into_iter().partition(|start| self.owned.get(&start.place) == Some(&start.tenure));
        let refusals = others.into_iter().map(|start| {
            let reason = "the group has taken the partition back since it was claimed".to_owned();
            Action::Send(Event::Refused { place: start.place, claim: start.claim, reason })
        });
        let mut actions: Vec<Action> = refusals.collect();
        if !ours.is_empty() {
            actions.push(Action::Assign(ours));
        }
        actions
    }
}

fn unassign(places: Vec<TopicPartition>) -> Vec<Action> {
    vec![Action::Unassign(places.clone()), Action::Send(Event::Unassigned { places })]
}

#[cfg(test)]
mod tests;
