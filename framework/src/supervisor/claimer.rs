//! Claims beside the polling: identity, first rows, the claim itself, and the check that its position can be.
//!
//! Invariants: a claim is tried as long as the partition waits for exactly this claim, and dropped as soon as it does not; what is out of reach is waited
//! for, what cannot be is reported and decided elsewhere; no call to the database is waited for without a limit; nothing here is in a hurry, since the group
//! has its answer already.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use crate::config::OnExpired;
use crate::error::{Class, Failure};
use crate::kafka::{ClaimNumber, Ends, Monitor, TopicFacts, TopicState};
use crate::metrics::emit;
use crate::position::StartPolicy;
use crate::record::TopicPartition;
use crate::store::{Claim, Claimed, Identity, Refusal, Starts, Store, TopicIdentity, Wanted};
use crate::supervisor::starts;
use crate::supervisor::state::{Found, Halt};

/// A session of our own group that blocks a claim for this long is frozen.
const FROZEN_AFTER: Duration = Duration::from_secs(5);
/// Rows that are waited for at the same time: each takes a connection or two, and an owner that froze may hold hundreds.
const WAITING_MAX: usize = 4;
/// A position that cannot be is read a second time before anything stops.
const CONFIRM_AFTER: Duration = Duration::from_secs(5);
const BACK_OFF_FIRST: Duration = Duration::from_millis(200);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// What a claim brought.
#[derive(Debug)]
pub(crate) enum Brought {
    /// The row is mine and its position was checked.
    Claimed { place: TopicPartition, topic_id: Arc<str>, claim: ClaimNumber, claimed: Claimed },
    /// The partition cannot run; what its claim found in the row nevertheless.
    Halted { place: TopicPartition, claim: ClaimNumber, halt: Halt, found: Found },
}

impl Brought {
    fn of(want: Wanted, claim: ClaimNumber, claimed: Claimed) -> Self {
        Self::Claimed { place: want.place, topic_id: want.topic.id, claim, claimed }
    }

    /// Mine, but not to be read from.
    fn stopped(place: TopicPartition, claim: ClaimNumber, row: &Claimed, reason: impl Into<String>) -> Self {
        let found = Found::Mine { fence: row.fence, offset: row.offset };
        Self::Halted { place, claim, halt: Halt::stopped(reason), found }
    }
}

/// Which claim each partition waits for; written by the supervisor alone.
#[derive(Clone, Default)]
pub(crate) struct Current(Arc<Mutex<HashMap<TopicPartition, ClaimNumber>>>);

impl Current {
    pub(crate) fn set(&self, place: &TopicPartition, claim: ClaimNumber) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone(), claim);
    }

    pub(crate) fn retain(&self, mut keep: impl FnMut(&TopicPartition, ClaimNumber) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|place, claim| keep(place, *claim));
    }

    pub(crate) fn is(&self, place: &TopicPartition, claim: ClaimNumber) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(place) == Some(&claim)
    }
}

/// Topics that something was seen of in this process.
#[derive(Clone, Default)]
pub(crate) struct Topics(Arc<Mutex<BTreeSet<Arc<str>>>>);

impl Topics {
    /// Gives whether it is new here.
    fn insert(&self, topic: &Arc<str>) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(topic))
    }

    fn contains(&self, topic: &Arc<str>) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(topic)
    }
}

/// Permits to wait for a row on a connection of its own.
pub(crate) struct Waiting(Semaphore);

impl Default for Waiting {
    fn default() -> Self {
        Self(Semaphore::new(WAITING_MAX))
    }
}

/// What every claim of a sink needs.
pub(crate) struct Claimer<S> {
    pub(crate) store: Arc<S>,
    pub(crate) monitor: Monitor,
    pub(crate) identity: Identity,
    pub(crate) start: StartPolicy,
    pub(crate) on_expired: OnExpired,
    /// Target of each topic, as the opened sink names it.
    pub(crate) targets: BTreeMap<Arc<str>, Arc<str>>,
    /// Topics that were claimed before. One that has no record any more was not forgotten by us: somebody emptied the tables.
    pub(crate) begun: Topics,
    /// Topics of which it was said that they have no id.
    pub(crate) unidentified: Topics,
    pub(crate) waiting: Waiting,
    pub(crate) current: Current,
    pub(crate) brought: UnboundedSender<Brought>,
    /// Our own timer for a call to the database, above the server's statement timeout.
    pub(crate) call_max: Duration,
}

type Numbered = (TopicPartition, ClaimNumber);
type Row = (Wanted, ClaimNumber, Claimed);

/// What one try for all left over.
struct Left {
    /// Rows that other transactions hold.
    busy: Vec<(Wanted, ClaimNumber)>,
    /// Partitions of topics that could not be registered, or whose identity is not told now, and why.
    waiting: Vec<Numbered>,
    why: Option<Failure>,
}

impl<S: Store> Claimer<S> {
    /// Claims these partitions: all that are free in one transaction, then the others one by one.
    pub(crate) async fn claim(self: Arc<Self>, mut wanted: Vec<Numbered>, attempts: u32) {
        let began = Instant::now();
        if attempts > 0 {
            tokio::time::sleep(back_off(attempts)).await;
        }
        let mut failures = 0;
        loop {
            wanted.retain(|(place, claim)| self.current.is(place, *claim));
            if wanted.is_empty() {
                return;
            }
            let failure = match self.attempt(&wanted).await {
                Ok(left) => {
                    emit::claim(&self.identity.group, began.elapsed());
                    for (want, claim) in left.busy {
                        tokio::spawn(Arc::clone(&self).claim_alone(want, claim, began));
                    }
                    wanted = left.waiting;
                    left.why
                }
                Err(failure) => Some(failure),
            };
            let Some(failure) = failure else { return };
            failures += 1;
            if failures == 1 {
                tracing::warn!(class = failure.class.label(), "claim: {failure}; trying again");
            }
            tokio::time::sleep(back_off(failures)).await;
        }
    }

    /// The same claim once more, from the start: what was claimed is not what it was.
    fn again(self: &Arc<Self>, place: TopicPartition, claim: ClaimNumber) {
        let again: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(Arc::clone(self).claim(vec![(place, claim)], 1));
        tokio::spawn(again);
    }

    /// One try for all. A topic that is in trouble does not hold back the others.
    async fn attempt(self: &Arc<Self>, wanted: &[Numbered]) -> Result<Left, Failure> {
        let (topics, mut why) = self.registered(wanted).await?;
        let mut known: Vec<(Wanted, ClaimNumber)> = Vec::new();
        let mut waiting = Vec::new();
        for (place, claim) in wanted {
            match topics.get(&place.topic) {
                Some(Some(topic)) => {
                    known.push((Wanted { place: place.clone(), topic: topic.clone() }, *claim));
                }
                Some(None) => self.halted(place, *claim, Claim::Missing),
                None => waiting.push((place.clone(), *claim)),
            }
        }
        if known.is_empty() {
            return Ok(Left { busy: Vec::new(), waiting, why });
        }
        let rows: Vec<Wanted> = known.iter().map(|(want, _)| want.clone()).collect();
        let answers = self.answer("claim", self.store.claim(&self.identity, &rows)).await?;
        let mut busy = Vec::new();
        let mut claimed = Vec::new();
        for ((want, claim), answer) in known.into_iter().zip(answers) {
            match answer {
                Claim::Claimed(row) => claimed.push((want, claim, row)),
                Claim::Busy => busy.push((want, claim)),
                Claim::Refused(refusal) if refusal.is_unknown() => {
                    why.get_or_insert_with(|| untold(&want.place, &refusal));
                    waiting.push((want.place, claim));
                }
                other => self.halted(&want.place, claim, other),
            }
        }
        tokio::spawn(Arc::clone(self).check(claimed));
        Ok(Left { busy, waiting, why })
    }

    /// A row that another transaction holds: waited for in a transaction of its own. A session of our own group that still blocks it after five seconds is
    /// frozen, and ended.
    async fn claim_alone(self: Arc<Self>, want: Wanted, claim: ClaimNumber, began: Instant) {
        let mut attempts = 0;
        let mut said = false;
        loop {
            // Never closed. Given back before the back-off, so that every row has its turn.
            let permit = self.waiting.0.acquire().await;
            if !self.current.is(&want.place, claim) {
                return;
            }
            let end_frozen = began.elapsed() >= FROZEN_AFTER;
            if end_frozen && !said {
                tracing::warn!(
                    "{}: its offset row has been held by another transaction for {} s",
                    want.place,
                    FROZEN_AFTER.as_secs()
                );
                said = true;
            }
            let waiting = self.store.claim_waiting(&self.identity, &want, end_frozen);
            let answer = self.answer("claim", waiting).await;
            drop(permit);
            match answer {
                Ok(Claim::Claimed(row)) => {
                    emit::claim(&self.identity.group, began.elapsed());
                    return self.check(vec![(want, claim, row)]).await;
                }
                Ok(Claim::Busy) => {}
                Ok(Claim::Refused(refusal)) if refusal.is_unknown() => return self.again(want.place, claim),
                Ok(other) => return self.halted(&want.place, claim, other),
                Err(failure) => tracing::debug!("claim of {}: {failure}; trying again", want.place),
            }
            attempts += 1;
            tokio::time::sleep(back_off(attempts).min(Duration::from_secs(1))).await;
        }
    }

    /// A connection that falls silent without a word is given up, as every call of a writer's is: nobody else would ever look at this claim again.
    async fn answer<T>(
        &self,
        doing: &str,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.call_max, call).await {
            Ok(answer) => answer,
            Err(_) => {
                let waited = self.call_max.as_secs();
                Err(Failure::new(Class::Timeout, format!("{doing}: no answer within {waited} s")))
            }
        }
    }

    fn halted(&self, place: &TopicPartition, claim: ClaimNumber, answer: Claim) {
        let (halt, found) = match answer {
            Claim::Refused(refusal) => (Halt::refused(refusal.to_string()), Found::Others(refusal.fence)),
            _ => (
                Halt::stopped(
                    "its row is missing although the topic was claimed before: rows are written only by the first claim, so somebody deleted it",
                ),
                Found::NoRow,
            ),
        };
        self.bring(Brought::Halted { place: place.clone(), claim, halt, found });
    }

    fn bring(&self, brought: Brought) {
        // The supervisor outlives its claims, or nobody is left to tell.
        let _ = self.brought.send(brought);
    }

    /// Topic identities, with rows for all their partitions, none for a topic whose record is gone; and why topics are left out, if some are.
    async fn registered(
        &self,
        wanted: &[Numbered],
    ) -> Result<(BTreeMap<Arc<str>, Option<TopicIdentity>>, Option<Failure>), Failure> {
        let mut names: Vec<Arc<str>> = wanted.iter().map(|(place, _)| Arc::clone(&place.topic)).collect();
        names.sort();
        names.dedup();
        let facts = self.monitor.topics(&names).await.map_err(starts::from_kafka)?;
        let recorded = self.answer("topics", self.store.recorded(&names)).await?;
        let (mut topics, mut why) = (BTreeMap::new(), None);
        for (facts, recorded) in facts.into_iter().zip(recorded) {
            if recorded.is_none() && self.begun.contains(&facts.name) {
                topics.insert(facts.name, None);
                continue;
            }
            match self.register(&facts, recorded).await {
                Ok(topic) => {
                    self.begun.insert(&facts.name);
                    topics.insert(facts.name, Some(topic));
                }
                Err(failure) => drop(why.get_or_insert(failure)),
            }
        }
        Ok((topics, why))
    }

    /// One topic's identity, with rows for all its partitions.
    async fn register(&self, facts: &TopicFacts, recorded: Option<i32>) -> Result<TopicIdentity, Failure> {
        let name = &facts.name;
        let (id, partitions) = match &facts.state {
            TopicState::Exists { id, partitions } => (id, *partitions),
            // No proof of deletion, so it is asked again.
            TopicState::Unknown => {
                let message = format!("the brokers do not know topic {name:?} now");
                return Err(Failure::new(Class::Transient, message));
            }
            TopicState::Error(reason) => {
                return Err(Failure::new(Class::Transient, format!("topic {name:?}: {reason}")));
            }
        };
        if id.is_none() && self.unidentified.insert(name) {
            tracing::warn!(
                "topic {name:?}: the brokers tell no topic ids, as before Kafka 2.8: should it be deleted and created again, that cannot be noticed"
            );
        }
        let target = self.targets.get(name).cloned().unwrap_or_else(|| Arc::clone(&self.identity.sink));
        let id = id.as_deref().unwrap_or_default().into();
        let topic = TopicIdentity { name: Arc::clone(name), id, target };
        if recorded.is_none_or(|recorded| recorded < partitions) {
            let starts = self.starts(&topic, partitions, recorded.is_none()).await?;
            self.answer("first rows", self.store.register(&self.identity, &starts)).await?;
        }
        Ok(topic)
    }

    /// Where partitions without a row begin: by the policy at the topic's first claim, at their beginning when they came later.
    async fn starts(
        &self,
        topic: &TopicIdentity,
        partitions: i32,
        first_claim: bool,
    ) -> Result<Starts, Failure> {
        let places: Vec<TopicPartition> = (0..partitions)
            .map(|partition| TopicPartition::new(Arc::clone(&topic.name), partition))
            .collect();
        let beginning = starts::resolve(&self.monitor, &places, StartPolicy::Earliest).await?;
        let first = match self.start {
            StartPolicy::Earliest => beginning.clone(),
            _ if !first_claim => beginning.clone(),
            policy => starts::resolve(&self.monitor, &places, policy).await?,
        };
        Ok(Starts { topic: topic.clone(), policy: self.start, first, beginning })
    }

    /// Checks positions before they are assigned; one that cannot be is confirmed by a second reading before anything stops.
    async fn check(self: Arc<Self>, claimed: Vec<Row>) {
        self.with_ends(claimed, |(want, claim, row), ends| {
            if row.paused {
                let found = Found::Mine { fence: row.fence, offset: row.offset };
                self.bring(Brought::Halted { place: want.place, claim, halt: Halt::paused(), found });
            } else if Position::of(row.offset, &ends) == Position::Readable {
                self.bring(Brought::of(want, claim, row));
            } else {
                tokio::spawn(Arc::clone(&self).confirm(want, claim, row));
            }
        })
        .await;
    }

    /// Hands out the ends of each partition as they become known, however long the brokers take: one without a leader does not hold back the others. Claims that
    /// are not wanted any more are dropped.
    async fn with_ends(&self, mut claimed: Vec<Row>, mut hand_out: impl FnMut(Row, Ends)) {
        let mut attempts = 0;
        loop {
            claimed.retain(|(want, claim, _)| self.current.is(&want.place, *claim));
            if claimed.is_empty() {
                return;
            }
            let places: Vec<TopicPartition> = claimed.iter().map(|(want, ..)| want.place.clone()).collect();
            match self.monitor.ends(&places).await {
                Ok(answers) => {
                    for (row, answer) in std::mem::take(&mut claimed).into_iter().zip(answers) {
                        match answer {
                            Ok(ends) => hand_out(row, ends),
                            Err(reason) => {
                                tracing::debug!("the ends of {}: {reason}; trying again", row.0.place);
                                claimed.push(row);
                            }
                        }
                    }
                }
                Err(error) => tracing::debug!("reading ends: {error}; trying again"),
            }
            if claimed.is_empty() {
                return;
            }
            attempts += 1;
            tokio::time::sleep(back_off(attempts)).await;
        }
    }

    /// The second reading.
    async fn confirm(self: Arc<Self>, want: Wanted, claim: ClaimNumber, row: Claimed) {
        tokio::time::sleep(CONFIRM_AFTER).await;
        let mut found = None;
        self.with_ends(vec![(want.clone(), claim, row.clone())], |_, ends| found = Some(ends)).await;
        let Some(ends) = found else { return };
        let place = want.place.clone();
        let reason = match Position::of(row.offset, &ends) {
            Position::Readable => return self.bring(Brought::of(want, claim, row)),
            Position::Expired => match self.on_expired {
                OnExpired::Continue(policy) => return self.go_on_at(want, claim, row, &ends, policy).await,
                OnExpired::Stop => format!(
                    "the stored offset {} has expired: {} offsets ({} to {}) are gone from the log, {}",
                    row.offset,
                    ends.log_start - row.offset,
                    row.offset,
                    ends.log_start - 1,
                    if ends.high_watermark > ends.log_start {
                        format!("{} to {} exist", ends.log_start, ends.high_watermark - 1)
                    } else {
                        format!("and nothing is left; the next record gets {}", ends.high_watermark)
                    }
                ),
            },
            Position::Beyond => format!(
                "the stored offset {} is above the high watermark {}: the topic was truncated or created again",
                row.offset, ends.high_watermark
            ),
        };
        self.bring(Brought::stopped(place, claim, &row, reason));
    }

    /// An expired position goes on where the configuration says, and the lost range is written down.
    async fn go_on_at(
        self: &Arc<Self>,
        want: Wanted,
        claim: ClaimNumber,
        row: Claimed,
        ends: &Ends,
        policy: StartPolicy,
    ) {
        let place = want.place.clone();
        let offset = match starts::resolve(&self.monitor, std::slice::from_ref(&place), policy).await {
            Ok(offsets) => offsets.first().copied().unwrap_or(ends.log_start).max(ends.log_start),
            Err(failure) => {
                tracing::warn!("{place}: resolving {policy}: {failure}; trying again");
                return self.again(place, claim);
            }
        };
        let reason = format!(
            "expired: offsets {}..{} are gone; going on at {offset} by on_expired = {policy}",
            row.offset, ends.log_start
        );
        let forward = self.store.forward(&place, row.fence, row.offset, offset, &reason);
        match self.answer("moving on", forward).await {
            Ok(true) => {
                tracing::warn!("{place}: {reason}");
                self.bring(Brought::of(want, claim, Claimed { offset, leader_epoch: None, ..row }));
            }
            // Somebody else, or an attempt of ours whose answer was lost: the row tells.
            Ok(false) => self.again(place, claim),
            Err(failure) => {
                tracing::warn!("{place}: moving on from an expired position: {failure}; trying again");
                self.again(place, claim);
            }
        }
    }
}

/// A stored offset against the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Within the log, or at its very end.
    Readable,
    /// Below the log start.
    Expired,
    /// Above the high watermark, read uncommitted: the last stable offset would look like a truncation.
    Beyond,
}

impl Position {
    fn of(offset: i64, ends: &Ends) -> Self {
        if offset < ends.log_start {
            Self::Expired
        } else if offset > ends.high_watermark {
            Self::Beyond
        } else {
            Self::Readable
        }
    }
}

/// A stored id that cannot be compared: out of reach, and waited for.
fn untold(place: &TopicPartition, refusal: &Refusal) -> Failure {
    Failure::new(Class::Transient, format!("{place}: {refusal}"))
}

/// Jittered: 0.2 to 5 s.
pub(crate) fn back_off(attempts: u32) -> Duration {
    let full = BACK_OFF_FIRST.saturating_mul(1 << attempts.min(6)).min(BACK_OFF_MAX);
    full.mul_f64(rand::random_range(0.5..1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_readable_from_the_log_start_to_the_end_itself() {
        let ends = Ends { log_start: 500, high_watermark: 901, last_stable: 800, leader_epoch: None };
        for (offset, expected) in [
            (100, Position::Expired),
            (499, Position::Expired),
            (500, Position::Readable),
            (850, Position::Readable),
            (901, Position::Readable),
            (902, Position::Beyond),
        ] {
            assert_eq!(Position::of(offset, &ends), expected, "{offset}");
        }
        let empty = Ends { log_start: 0, high_watermark: 0, last_stable: 0, leader_epoch: None };
        assert_eq!(Position::of(0, &empty), Position::Readable);
    }
}
