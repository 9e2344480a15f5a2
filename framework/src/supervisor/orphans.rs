//! Records that refer to rows which are not there yet. The row may come by another partition, through this process or any other, so that a record is tried
//! again for some time before it counts as bad.
//!
//! Invariant: a record waits once. What was read together with the first one that has to wait has been here as long as it when the wait ends, and does not
//! wait again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::record::TopicPartition;

/// The waits, at most one a partition.
#[derive(Debug)]
pub(crate) struct Orphans {
    wait: Duration,
    waits: HashMap<TopicPartition, Wait>,
}

/// Records `from..read` wait since then.
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: i64,
    read: i64,
    since: Instant,
}

impl Orphans {
    /// None yet; `wait` is how long each waits.
    pub(crate) fn new(wait: Duration) -> Self {
        Self { wait, waits: HashMap::new() }
    }

    /// A record was met whose row is not there; the writer had read up to `read` by then.
    pub(crate) fn met(&mut self, place: &TopicPartition, offset: i64, read: i64, now: Instant) {
        let wait = Wait { from: offset, read, since: now };
        let known = self.waits.entry(place.clone()).or_insert(wait);
        if !(known.from..known.read).contains(&offset) {
            *known = wait;
        }
    }

    /// Records below this offset have waited; 0 when none has.
    pub(crate) fn waited(&self, place: &TopicPartition, now: Instant) -> i64 {
        let is_over = |wait: &&Wait| now.saturating_duration_since(wait.since) >= self.wait;
        self.waits.get(place).filter(is_over).map_or(0, |wait| wait.read)
    }

    /// The stored offset has moved on.
    pub(crate) fn stored(&mut self, place: &TopicPartition, offset: i64) {
        if self.waits.get(place).is_some_and(|wait| offset >= wait.read) {
            self.waits.remove(place);
        }
    }

    /// The partition stopped.
    pub(crate) fn forget(&mut self, place: &TopicPartition) {
        self.waits.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_for_all_that_was_read_by_its_begin_and_comes_once() {
        let (place, second, begin) = (TopicPartition::new("t", 0), Duration::from_secs(1), Instant::now());
        let mut orphans = Orphans::new(5 * second);
        assert_eq!(orphans.waited(&place, begin), 0);
        orphans.met(&place, 10, 100, begin);
        orphans.met(&place, 10, 200, begin + second);
        orphans.met(&place, 40, 200, begin + 2 * second);
        assert_eq!(orphans.waited(&place, begin + 4 * second), 0);
        assert_eq!(orphans.waited(&place, begin + 5 * second), 100);
        // Beyond what was read then a wait begins anew.
        orphans.met(&place, 150, 300, begin + 6 * second);
        assert_eq!(orphans.waited(&place, begin + 10 * second), 0);
        assert_eq!(orphans.waited(&place, begin + 11 * second), 300);
        orphans.stored(&place, 299);
        assert_eq!(orphans.waited(&place, begin + 11 * second), 300);
        orphans.stored(&place, 300);
        assert_eq!(orphans.waited(&place, begin + 11 * second), 0);
        // The partition went back.
        orphans.met(&place, 150, 300, begin);
        orphans.met(&place, 20, 60, begin + 9 * second);
        assert_eq!(orphans.waited(&place, begin + 10 * second), 0);
    }
}
