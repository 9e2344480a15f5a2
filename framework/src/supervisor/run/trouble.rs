//! Partitions in trouble, and a client that died: told to people, counted, noted in the database.

use super::*;
use crate::config::show_duration;

impl<S: Store> Supervisor<S> {
    /// Meanwhile its partition is out of the queue, so that the row can come.
    fn orphaned(&mut self, bad: &BadRecord, read: i64) {
        self.orphans.met(&bad.place, bad.offset, read, Instant::now());
        let (message, wait) = (&bad.message, show_duration(self.settings.foreign_key_wait));
        self.chronicle.sick(
            &bad.place,
            &format!("offset {}: {message}; waiting up to {wait} for the row that it refers to", bad.offset),
        );
    }

    pub(super) fn gone(&mut self, place: &TopicPartition, why: &Gone) {
        let group = Arc::clone(&self.settings.group);
        let group = &group;
        match why {
            Gone::NotMine => {
                emit::fenced(group, &place.topic);
                tracing::info!(
                    "{place}: not ours any more, or moved; claiming again if the group still assigns it here"
                );
            }
            Gone::Contended => {
                tracing::warn!("{place}: its offset row is held by another transaction; the others flow on")
            }
            Gone::Rewound { found } | Gone::Odd { found } => {
                let expected = self.partitions.get(place).and_then(|partition| partition.stored);
                self.rewound(place, expected, *found);
            }
            Gone::Broken(why) => {
                tracing::warn!("{place}: {why:?} on its queue; reading again from the stored offset")
            }
            // A resume begins its wait anew.
            Gone::Stopped(_) => self.orphans.forget(place),
            Gone::Orphan { bad, read } => self.orphaned(bad, *read),
            // Told with its reason before.
            Gone::Sick => {}
        }
    }

    /// The row went back, or elsewhere, without a word of ours: a failover or a restore.
    pub(super) fn rewound(&self, place: &TopicPartition, expected: Option<i64>, found: i64) {
        tracing::warn!(
            "{place}: the stored offset was {} and is {found}; reading again from there",
            shown(expected)
        );
        let (kind, reason) = if expected.is_none_or(|expected| found < expected) {
            emit::rewound(&self.settings.group, &place.topic);
            ("rewound", "found below the offset that was stored: a failover, a restore or lost commits")
        } else {
            ("moved", "found beyond the offset that was stored, although nobody else had claimed it")
        };
        let (old_offset, new_offset) = (expected, Some(found));
        let event = EventRow { place: place.clone(), kind, old_offset, new_offset, reason: reason.into() };
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            match tokio::time::timeout(NOTE_MAX, store.record(&event)).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => tracing::warn!("the event of a rewind could not be recorded: {failure}"),
                Err(_) => tracing::warn!("the event of a rewind could not be recorded in time"),
            }
        });
    }

    pub(super) fn halted(&mut self, place: &TopicPartition, halt: &Halt) {
        let running = self.partitions.iter().filter(|(_, partition)| partition.state() == "running").count();
        self.chronicle.halted(place, halt, self.partitions.get(place).and_then(|p| p.stored), running);
        let Some(fence) = self.partitions.get(place).and_then(|partition| partition.fence) else { return };
        let (store, place, reason) = (Arc::clone(&self.store), place.clone(), halt.reason.clone());
        let state = match halt.state {
            HaltState::Stopped => "stopped",
            HaltState::Refused => "refused",
            // It stands in the row already, with the person's reason.
            HaltState::Paused => return,
        };
        let Some(claim) = self.partitions.get(&place).map(|partition| partition.claim) else { return };
        let current = self.claimer.current.clone();
        // A halt in the middle of a claim has a number of its own.
        current.set(&place, claim);
        tokio::spawn(async move {
            let mut attempts = 0;
            // `resume` looks for it. Under another fence nothing is written.
            while current.is(&place, claim) {
                let noted = store.note_state(&place, fence, state, Some(&reason));
                match tokio::time::timeout(NOTE_MAX, noted).await {
                    Ok(Ok(())) => return,
                    Ok(Err(failure)) => tracing::debug!("{place}: its state could not be noted: {failure}"),
                    Err(_) => tracing::debug!("{place}: its state could not be noted in time"),
                }
                attempts += 1;
                tokio::time::sleep(back_off(attempts)).await;
            }
        });
    }

    /// Under the lock the claim found the fence that was there before: ours, or an older one, below the offset that was certain, means a rewind.
    pub(super) fn compare_with_memory(&self, place: &TopicPartition, claimed: &Claimed) {
        let Some(partition) = self.partitions.get(place) else { return };
        let (Some(fence), Some(stored)) = (partition.fence, partition.stored) else { return };
        let ours = claimed.previous.token == fence.token || claimed.previous.epoch < fence.epoch;
        if ours && claimed.offset < stored {
            self.rewound(place, Some(stored), claimed.offset);
        }
    }

    /// The brokers do not believe who we are. librdkafka goes on trying with what it was given; another secret needs another client.
    pub(super) fn login_refused(&mut self, reason: &str) {
        match self.logins.refused(self.settings.properties(), Instant::now()) {
            Verdict::Renew => {
                tracing::warn!(
                    "{}: Kafka refuses the login, and the secrets have changed: making a new client ({reason})",
                    self.settings.name
                );
                self.step(Event::ClientLost);
                self.joined = false;
                self.over.get_or_insert(Over::ClientLost);
            }
            Verdict::Say => tracing::warn!(
                "{}: Kafka refuses the login: {reason}; secrets from files are read again at each attempt",
                self.settings.name
            ),
            Verdict::Unreadable(error) => tracing::warn!("{}: {error}; trying again", self.settings.name),
            Verdict::Silence => {}
        }
    }

    pub(super) fn client_died(&mut self, kind: &FatalKind, reason: &str) {
        self.step(Event::ClientLost);
        self.joined = false;
        self.over = Some(match kind {
            FatalKind::FencedInstanceId => Over::Ended(Ended::Fatal(Failure::fatal(format!(
                "two processes bear one group.instance.id, and the other one pushed us out: give each its own ({reason})"
            )))),
            FatalKind::UnreleasedInstanceId => {
                tracing::warn!(
                    "the group keeps our group.instance.id until the session of its former bearer ends; trying again ({reason})"
                );
                Over::ClientLost
            }
            FatalKind::Other(name) => {
                tracing::warn!("the Kafka client ended with {name}: {reason}; making a new one");
                Over::ClientLost
            }
        });
    }
}
