//! Topics that match a pattern and come while the sink runs: found in the metadata, looked at as the start looks at a topic, and only then read.
//!
//! Invariant: a topic is handed over only when its target is there and takes rows; until then it is not in the subscription, and the others flow on.
//! Must not: write anything. Its rows are written by its first claim.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::error::{Class, Failure};
use crate::sink::Sink;
use crate::store::Store;
use crate::supervisor::preflight::{Checked, look_at_targets};
use crate::supervisor::settings::SinkSettings;
use crate::supervisor::watch::Seen;
use crate::topics::Topics;
use crate::writer::ConfigSource;

/// A topic that is in trouble is looked at again this often at least.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// A topic that may be read from now on.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) topic: Arc<str>,
    /// As [`crate::store::TopicIdentity`] has it.
    pub(crate) target: Arc<str>,
}

/// What the look works with.
pub(crate) struct Arrivals<S: Store, K: Sink<S>> {
    pub(crate) settings: SinkSettings,
    pub(crate) topics: Topics,
    pub(crate) store: Arc<S>,
    pub(crate) config: ConfigSource<K::Config>,
    pub(crate) checked: Arc<Checked>,
    pub(crate) seen: UnboundedSender<Seen>,
}

impl<S: Store, K: Sink<S>> Arrivals<S, K> {
    /// Looks until the supervisor has gone.
    pub(crate) async fn watch(self) {
        let every = self.settings.metadata_every();
        // Topics whose target is in trouble, each said once.
        let mut said: BTreeMap<Arc<str>, String> = BTreeMap::new();
        let mut rest = every;
        while !self.seen.is_closed() {
            tokio::time::sleep(rest).await;
            rest = every;
            let Ok(matching) = self.checked.monitor.matching(&self.topics).await else { continue };
            let new: Vec<(Arc<str>, i32)> =
                matching.into_iter().filter(|(topic, _)| !self.checked.reading.contains(topic)).collect();
            if new.is_empty() {
                continue;
            }
            let (arrived, troubled) = self.admit(&new).await;
            for (topic, failure) in troubled {
                rest = rest.max(AGAIN_AFTER.min(every.saturating_mul(10)));
                let words = failure.to_string();
                if said.get(&topic) != Some(&words) {
                    tracing::warn!(
                        "{}: topic {topic} matches and is not read yet: {words}",
                        self.settings.name
                    );
                    said.insert(topic, words);
                }
            }
            for arrival in &arrived {
                said.remove(&arrival.topic);
                let pattern =
                    self.topics.pattern_of(&arrival.topic).map(|pattern| Arc::clone(pattern.text()));
                tracing::info!(
                    "{}: topic {} matches {}: read from now on, into {}",
                    self.settings.name,
                    arrival.topic,
                    pattern.as_deref().unwrap_or_default(),
                    self.settings.without_name(&arrival.target)
                );
            }
            if !arrived.is_empty() {
                let _ = self.seen.send(Seen::Arrived(arrived));
            }
        }
    }

    /// All at once, which is one opening of the sink; one by one when that fails, so that one does not hold back the others.
    async fn admit(&self, new: &[(Arc<str>, i32)]) -> (Vec<Arrival>, Vec<(Arc<str>, Failure)>) {
        let several = match self.look(new).await {
            Ok(arrived) => return (arrived, Vec::new()),
            Err(failure) if new.len() == 1 => {
                return (Vec::new(), new.iter().map(|(topic, _)| Arc::clone(topic)).zip([failure]).collect());
            }
            Err(_) => new,
        };
        let (mut arrived, mut troubled) = (Vec::new(), Vec::new());
        for one in several {
            match self.look(std::slice::from_ref(one)).await {
                Ok(mut one) => arrived.append(&mut one),
                Err(failure) => troubled.push((Arc::clone(&one.0), failure)),
            }
        }
        (arrived, troubled)
    }

    async fn look(&self, new: &[(Arc<str>, i32)]) -> Result<Vec<Arrival>, Failure> {
        let partitions: BTreeMap<Arc<str>, i32> = new.iter().cloned().collect();
        let looking = look_at_targets::<S, K>(
            &self.settings,
            &self.store,
            &self.config,
            &partitions,
            &self.checked.reading,
        );
        let patience = self.settings.call_max() * 2;
        let targets = match tokio::time::timeout(patience, looking).await {
            Ok(answer) => answer?,
            Err(_) => return Err(Failure::new(Class::Timeout, "no answer in time")),
        };
        Ok(targets
            .into_iter()
            .map(|(topic, target)| Arrival { topic, target: self.settings.with_name(&target) })
            .collect())
    }
}
