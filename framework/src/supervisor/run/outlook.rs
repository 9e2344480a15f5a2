//! What was seen by the look around: ends, topic ids, rows that were changed from outside, and whether the ends are reached.

use super::*;

impl<S: Store> Supervisor<S> {
    /// Tells the watcher what to look at next.
    pub(super) fn look(&mut self) {
        let mut look = Look { topics: self.settings.topics.clone(), ..Look::default() };
        for (place, partition) in self.partitions.iter() {
            look.places.insert(place.clone(), partition.stored);
            if !self.active.remove(place) && partition.is_settled() {
                let known = Known { fence: partition.seen, stored: partition.stored };
                look.quiet.insert(place.clone(), known);
            }
        }
        self.active.clear();
        self.looked.set(look);
    }

    pub(super) fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Ends(ends) => self.chronicle.ends(&ends, &self.live),
            Seen::Rows(rows) => rows.iter().for_each(|(row, known)| self.row(row, *known)),
            Seen::Absent(absent) => absent.into_iter().for_each(|(place, known)| self.no_row(&place, known)),
            Seen::Topics(topics) => {
                for topic in topics {
                    // An id that is not told for once says nothing.
                    if let TopicState::Exists { id: Some(id), .. } = topic.state {
                        self.topic_is(&topic.name, &id);
                    }
                }
            }
            Seen::Reached(Some(rows)) => self.reached(&rows),
            Seen::Reached(None) => self.reading_ends = false,
        }
    }

    /// An epoch or a token other than the last one that was read or written is a word from outside, and so is an offset that went back under my own fence, as
    /// after a failover that lost the last commits: claim again.
    pub(super) fn row(&mut self, row: &Row, known: Known) {
        let Some(partition) = self.partitions.get(&row.place) else { return };
        // What was claimed or stored since then is newer than this look.
        if partition.seen != known.fence || !partition.is_settled() {
            return;
        }
        let went_back = known.stored.is_some_and(|stored| row.offset < stored);
        if known.fence != Some(row.fence) || went_back {
            tracing::info!("{}: its row was changed from outside; claiming again", row.place);
            self.step(Event::OutsideWord(row.place.clone()));
        }
    }

    /// A row that was there is gone: said at once by the claim, not when the next record comes.
    pub(super) fn no_row(&mut self, place: &TopicPartition, known: Known) {
        let Some(partition) = self.partitions.get(place) else { return };
        if known.fence.is_some() && partition.seen == known.fence && partition.is_settled() {
            tracing::info!("{place}: its row is gone; claiming again");
            self.step(Event::OutsideWord(place.clone()));
        }
    }

    /// A topic's id differs from the one that was claimed: it was created again, and none of its offsets means what is stored.
    pub(super) fn topic_is(&mut self, name: &Arc<str>, id: &str) {
        let Some(known) = self.topic_ids.get_mut(name) else { return };
        let Some(known) = known else {
            // Brokers that were upgraded. The next claim stores it.
            *known = Some(id.to_owned());
            return;
        };
        if known == id {
            return;
        }
        let reason = format!("the topic was deleted and created again: its id was {known} and is {id}");
        let places: Vec<TopicPartition> = self
            .partitions
            .iter()
            .map(|(place, _)| place)
            .filter(|place| place.topic == *name)
            .cloned()
            .collect();
        self.topic_ids.remove(name);
        for place in places {
            let halt = Halt::stopped(reason.clone());
            self.step(Event::Halt { place, halt });
        }
    }

    /// Whoever wrote them: the stored offsets in the database decide whether the ends are reached.
    pub(super) fn read_ends(&mut self) {
        self.reading_ends = true;
        let places: Vec<TopicPartition> = self.ends.keys().cloned().collect();
        let (store, seen) = (Arc::clone(&self.store), self.seen.clone());
        tokio::spawn(async move {
            let rows = tokio::time::timeout(NOTE_MAX, store.rows(&places)).await;
            let _ = seen.send(Seen::Reached(rows.ok().and_then(Result::ok)));
        });
    }

    pub(super) fn reached(&mut self, rows: &[Row]) {
        self.reading_ends = false;
        let stored: HashMap<&TopicPartition, i64> = rows.iter().map(|row| (&row.place, row.offset)).collect();
        let short: Vec<TopicPartition> = self
            .ends
            .iter()
            .filter(|(place, end)| **end > 0 && stored.get(place).is_none_or(|offset| offset < end))
            .map(|(place, _)| place.clone())
            .collect();
        let halted = |place: &TopicPartition| {
            self.partitions.get(place).is_some_and(|partition| partition.is_halted())
        };
        let ended = if short.is_empty() {
            Ended::Reached
        } else if short.iter().all(halted) {
            Ended::Short(short)
        } else {
            return;
        };
        self.chronicle.reached(&ended);
        self.ends.clear();
        self.settings.until_end = false;
        self.stop_as(ended);
    }
}
