//! The look around, once a second: topic identities, the ends of the partitions, and words from outside.
//!
//! Must not: decide anything. What was seen goes to the supervisor.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use crate::kafka::{Ends, Monitor, TopicFacts, TopicState};
use crate::record::TopicPartition;
use crate::store::{Fence, Row, Store};

const EVERY: Duration = Duration::from_secs(1);
/// So long without topic identities is said.
const BLIND_AFTER: Duration = Duration::from_secs(15);
/// A look that hangs is given up; the next one comes.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// What was seen.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Topics as the brokers know them.
    Topics(Vec<TopicFacts>),
    /// Ends of partitions, with the stored offset that was known before they were read: a lag of the two is never negative.
    Ends(Vec<(TopicPartition, Option<i64>, Ends)>),
    /// Rows of the partitions that had no transaction since the look before, each with what was known before it was read.
    Rows(Vec<(Row, Known)>),
    /// Those of them that have no row, with what was known before.
    Absent(Vec<(TopicPartition, Known)>),
    /// Rows read to see whether the ends are reached; none when they could not be read.
    Reached(Option<Vec<Row>>),
}

/// What to look at; written by the supervisor.
#[derive(Clone, Default)]
pub(crate) struct Looked(Arc<Mutex<Look>>);

#[derive(Clone, Default)]
pub(crate) struct Look {
    pub(crate) topics: Vec<Arc<str>>,
    /// Every partition here with its stored offset.
    pub(crate) places: HashMap<TopicPartition, Option<i64>>,
    /// Partitions that had no transaction since the look before.
    pub(crate) quiet: HashMap<TopicPartition, Known>,
}

/// What the supervisor knew of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The fence that it bore; none when there was no row.
    pub(crate) fence: Option<Fence>,
    pub(crate) stored: Option<i64>,
}

impl Looked {
    pub(crate) fn set(&self, look: Look) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = look;
    }

    fn get(&self) -> Look {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Looks until the supervisor has gone. Everything is asked side by side, so that one that hangs does not blind the others: ends wait for partitions without
/// a leader, and topic identities must not wait with them.
pub(crate) async fn watch<S: Store>(
    store: Arc<S>,
    monitor: Monitor,
    looked: Looked,
    seen: UnboundedSender<Seen>,
) {
    let topics = look_at_topics(&monitor, &looked, &seen);
    let ends = look_at_ends(&monitor, &looked, &seen);
    let rows = look_at_rows(&*store, &looked, &seen);
    tokio::join!(topics, ends, rows);
}

async fn look_at_topics(monitor: &Monitor, looked: &Looked, seen: &UnboundedSender<Seen>) {
    let (mut last, mut said) = (Instant::now(), false);
    let mut identified = HashSet::new();
    while !seen.is_closed() {
        tokio::time::sleep(EVERY).await;
        let look = looked.get();
        let answer = tokio::time::timeout(LOOK_MAX, monitor.topics(&look.topics)).await;
        let topics = answer.ok().and_then(Result::ok);
        let told = topics.as_deref().is_some_and(|topics| all_told(topics, &mut identified));
        if let Some(topics) = topics {
            let _ = seen.send(Seen::Topics(topics));
        }
        if told {
            if std::mem::take(&mut said) {
                tracing::info!("the brokers tell the topics' identities again");
            }
            last = Instant::now();
        } else if last.elapsed() > BLIND_AFTER && !said {
            said = true;
            tracing::warn!(
                "the brokers have not told the topics' identities for {} s: a topic that is created again is not noticed until they do",
                last.elapsed().as_secs()
            );
        }
    }
}

/// Whether no topic that once had an id is without one now. Brokers that never told any leave nothing to wait for; that was said when the topic was claimed.
fn all_told(topics: &[TopicFacts], identified: &mut HashSet<Arc<str>>) -> bool {
    topics.iter().fold(true, |all, topic| match &topic.state {
        TopicState::Exists { id: Some(_), .. } => {
            identified.insert(Arc::clone(&topic.name));
            all
        }
        TopicState::Exists { id: None, .. } => all && !identified.contains(&topic.name),
        TopicState::Unknown | TopicState::Error(_) => all,
    })
}

async fn look_at_ends(monitor: &Monitor, looked: &Looked, seen: &UnboundedSender<Seen>) {
    while !seen.is_closed() {
        tokio::time::sleep(EVERY).await;
        let look = looked.get();
        let places: Vec<TopicPartition> = look.places.keys().cloned().collect();
        if places.is_empty() {
            continue;
        }
        if let Ok(Ok(ends)) = tokio::time::timeout(LOOK_MAX, monitor.ends(&places)).await {
            let known = places.into_iter().zip(ends).filter_map(|(place, ends)| {
                let stored = look.places.get(&place).copied().flatten();
                Some((place, stored, ends.ok()?))
            });
            let _ = seen.send(Seen::Ends(known.collect()));
        }
    }
}

async fn look_at_rows<S: Store>(store: &S, looked: &Looked, seen: &UnboundedSender<Seen>) {
    while !seen.is_closed() {
        tokio::time::sleep(EVERY).await;
        let quiet = looked.get().quiet;
        if quiet.is_empty() {
            continue;
        }
        let places: Vec<TopicPartition> = quiet.keys().cloned().collect();
        if let Ok(Ok(rows)) = tokio::time::timeout(LOOK_MAX, store.rows(&places)).await {
            let there: HashSet<&TopicPartition> = rows.iter().map(|row| &row.place).collect();
            let absent: Vec<_> = quiet
                .iter()
                .filter(|(place, _)| !there.contains(place))
                .map(|(place, known)| (place.clone(), *known))
                .collect();
            let known = rows.into_iter().filter_map(|row| Some((quiet.get(&row.place).copied()?, row)));
            let _ = seen.send(Seen::Rows(known.map(|(known, row)| (row, known)).collect()));
            if !absent.is_empty() {
                let _ = seen.send(Seen::Absent(absent));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_that_was_told_once_is_missed() {
        let facts = |id: Option<&str>| {
            let state = TopicState::Exists { id: id.map(str::to_owned), partitions: 1 };
            [TopicFacts { name: "t".into(), state }]
        };
        let mut identified = HashSet::new();
        assert!(all_told(&facts(None), &mut identified), "brokers that never told any");
        assert!(all_told(&facts(Some("id")), &mut identified));
        assert!(!all_told(&facts(None), &mut identified), "told once, and not now");
        assert!(all_told(&facts(Some("id")), &mut identified));
    }
}
