//! How long partitions stand still in a rebalance: free of clocks, time comes in.
//!
//! Three kinds: `assign`, from the group's assignment until each of its partitions is claimed, has halted or has gone again; `revoke`, from the group's wish
//! until our answer, while all partitions of a member stand still; `lost`, from the loss until what is assigned next is claimed: how long this member did
//! not read what it had.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::record::TopicPartition;

/// Stalls that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    assigns: Vec<(Instant, BTreeSet<TopicPartition>)>,
    revoke: Option<Instant>,
    lost: Option<Instant>,
}

impl Stalls {
    /// The group assigned these.
    pub(crate) fn assigned(&mut self, places: &[TopicPartition], now: Instant) {
        self.assigns.push((now, places.iter().cloned().collect()));
    }

    /// The group wants partitions back.
    pub(crate) fn revoked(&mut self, now: Instant) {
        self.revoke = Some(now);
    }

    /// Partitions are gone without a question.
    pub(crate) fn lost(&mut self, now: Instant) {
        self.revoke = None;
        self.lost.get_or_insert(now);
    }

    /// The revoke was answered; how long that took.
    pub(crate) fn answered(&mut self, now: Instant) -> Option<Duration> {
        self.revoke.take().map(|began| now - began)
    }

    /// Partitions may have settled; the stalls that have ended with that, by kind.
    pub(crate) fn settled(
        &mut self,
        is_settled: impl Fn(&TopicPartition) -> bool,
        now: Instant,
    ) -> Vec<(&'static str, Duration)> {
        let mut ended = Vec::new();
        for (began, waiting) in &mut self.assigns {
            waiting.retain(|place| !is_settled(place));
            if waiting.is_empty() {
                ended.push(("assign", now - *began));
            }
        }
        self.assigns.retain(|(_, waiting)| !waiting.is_empty());
        if !ended.is_empty() && self.assigns.is_empty() {
            ended.extend(self.lost.take().map(|began| ("lost", now - began)));
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(numbers: &[i32]) -> Vec<TopicPartition> {
        numbers.iter().map(|number| TopicPartition::new("t", *number)).collect()
    }

    #[test]
    fn an_assignment_stalls_until_its_last_partition_has_settled() {
        let (mut stalls, start) = (Stalls::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        stalls.assigned(&places(&[0, 1]), after(0));
        stalls.assigned(&places(&[2]), after(1));
        assert!(stalls.settled(|place| place.partition == 0, after(2)).is_empty());
        let ended = stalls.settled(|place| place.partition == 2, after(3));
        assert_eq!(ended, [("assign", Duration::from_secs(2))]);
        // Partition 0 has settled before: that it moves again is no matter of this rebalance.
        let ended = stalls.settled(|place| place.partition == 1, after(5));
        assert_eq!(ended, [("assign", Duration::from_secs(5))]);
        assert!(stalls.settled(|_| true, after(6)).is_empty());
    }

    #[test]
    fn a_revoke_stalls_until_its_answer_unless_the_partitions_are_lost() {
        let (mut stalls, start) = (Stalls::default(), Instant::now());
        stalls.revoked(start);
        assert_eq!(stalls.answered(start + Duration::from_secs(1)), Some(Duration::from_secs(1)));
        assert_eq!(stalls.answered(start), None);
        stalls.revoked(start);
        stalls.lost(start);
        assert_eq!(stalls.answered(start), None);
    }

    #[test]
    fn a_loss_stalls_until_the_next_assignment_is_claimed() {
        let (mut stalls, start) = (Stalls::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        stalls.lost(after(0));
        stalls.lost(after(1));
        assert!(stalls.settled(|_| true, after(2)).is_empty());
        stalls.assigned(&places(&[0]), after(3));
        let ended = stalls.settled(|_| true, after(4));
        assert_eq!(ended, [("assign", Duration::from_secs(1)), ("lost", Duration::from_secs(4))]);
    }
}
