//! Bad records: found by the connector with their coordinates, or by the server without, and then looked for.
//!
//! Invariants: nothing commits beyond a record that is undecided; a record that the server refuses is bad only when it fails by itself on top of everything
//! before it; each verdict takes a record out of what is run, so that no record is judged twice. Must not: be reached by a failure of any other class.

use super::*;
use crate::error::{BadRecord, Reason};

impl Writer {
    /// Known bad records. The catalog is read once more before any is believed.
    pub(super) fn bad(&mut self, mut run: Run, records: Vec<BadRecord>, effects: &mut Vec<Effect>) {
        if !run.reopened {
            return self.reopen(run, Effect::Reread, effects);
        }
        let mut of_place: BTreeMap<TopicPartition, Vec<BadRecord>> = BTreeMap::new();
        for bad in records {
            of_place.entry(bad.place.clone()).or_default().push(bad);
        }
        let mut is_news = false;
        for held in std::mem::take(&mut run.held) {
            let bad = of_place.remove(held.place()).unwrap_or_default();
            is_news |= bad.iter().any(|bad| held.part.holds(bad.offset));
            run.held.extend(self.decide(held, bad, effects));
        }
        if is_news {
            self.queue.push_front(run);
        } else {
            // A verdict on nothing that runs here: believed, it would come again for ever.
            self.sick(run, effects);
        }
    }

    /// Some record is bad: halves, the left one first, until one record stands alone on top of everything before it.
    pub(super) fn search(&mut self, mut run: Run, description: BadDescription, effects: &mut Vec<Effect>) {
        if !run.reopened {
            return self.reopen(run, Effect::Reread, effects);
        }
        if let Some((left, right)) = split(&run) {
            self.queue.push_front(right);
            self.queue.push_front(left);
            return;
        }
        let Some(held) = run.held.pop() else { return };
        let only = held.part.records().next().map(|record| record.offset());
        match only {
            Some(offset) => {
                let bad = description.of(held.place().clone(), offset);
                run.held.extend(self.decide(held, vec![bad], effects));
                self.queue.push_front(run);
            }
            // No record at all: our own tables refuse, which no record can mend.
            None => self.give_up(held, Gone::Sick, effects),
        }
    }

    /// What becomes of the bad records of a part: set aside in it; or, by the policy or because a record has yet to wait for another row, the partition
    /// leaves before the first of them. Answers what is still to be run.
    fn decide(
        &mut self,
        mut held: Held,
        mut records: Vec<BadRecord>,
        effects: &mut Vec<Effect>,
    ) -> Option<Held> {
        records.sort_by_key(|bad| bad.offset);
        for bad in records {
            let offset = bad.offset;
            if !held.part.holds(offset) {
                continue;
            }
            if bad.reason == Reason::ForeignKey && offset >= held.waited {
                let read = self.waits_with(&held, offset);
                return self.leave_before(held, offset, Gone::Orphan { bad, read }, effects);
            }
            match self.policy {
                OnBadRecord::Stop => return self.leave_before(held, offset, Gone::Stopped(bad), effects),
                // One that is new is set aside; `holds` said so.
                OnBadRecord::DeadLetter | OnBadRecord::Skip => {
                    let _ = held.part.set_aside(bad);
                }
            }
        }
        Some(held)
    }

    /// The end of the records that wait together with the one at `offset`. Everything that was read by now has been here as long as it by the end of its wait,
    /// so that a partition with many such records waits once for all of them. Where a person would have to come, each has a wait of its own.
    fn waits_with(&self, held: &Held, offset: i64) -> i64 {
        let read = self.intakes.get(held.place()).filter(|intake| intake.claim == held.claim);
        match self.policy {
            OnBadRecord::Stop => after(offset),
            OnBadRecord::DeadLetter | OnBadRecord::Skip => {
                read.map_or_else(|| held.part.interval().to, |intake| intake.next)
            }
        }
    }

    /// Cuts a part before a record at which its partition leaves; answers what is still to be run before that.
    fn leave_before(
        &mut self,
        held: Held,
        offset: i64,
        why: Gone,
        effects: &mut Vec<Effect>,
    ) -> Option<Held> {
        let Some((before, _)) = held.part.before(offset) else { return Some(held) };
        self.forget(held.place(), held.claim, effects);
        if before.interval().is_empty() {
            let (place, claim) = (held.place().clone(), held.claim);
            effects.push(Effect::Report(Report::Gone { place, claim, why }));
            return None;
        }
        Some(Held { part: before, behind: Some(why), ..held })
    }
}

impl BadDescription {
    /// The record that was found.
    fn of(self, place: TopicPartition, offset: i64) -> BadRecord {
        let Self { reason, message, sql_state, table, column } = self;
        BadRecord { place, offset, reason, message, sql_state, table, column }
    }
}
