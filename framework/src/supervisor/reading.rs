//! The topics that a sink reads now, each with its target.
//!
//! Invariant: what the group is subscribed to, what is looked at every second and what claims name as a target is this one list. It only grows: a topic that
//! was deleted stays, so that one that is created again is recognised by its id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by the supervisor, its claims and the look for topics that come later; outlives a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading(Arc<Mutex<BTreeMap<Arc<str>, Arc<str>>>>);

impl Reading {
    pub(crate) fn new(targets: BTreeMap<Arc<str>, Arc<str>>) -> Self {
        Self(Arc::new(Mutex::new(targets)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All topics, sorted.
    pub(crate) fn topics(&self) -> Vec<Arc<str>> {
        self.lock().keys().cloned().collect()
    }

    /// The sink and the resolved target of a topic, as its rows bear it.
    pub(crate) fn target(&self, topic: &str) -> Option<Arc<str>> {
        self.lock().get(topic).cloned()
    }

    pub(crate) fn contains(&self, topic: &str) -> bool {
        self.lock().contains_key(topic)
    }

    pub(crate) fn add(&self, topic: Arc<str>, target: Arc<str>) {
        self.lock().insert(topic, target);
    }
}
