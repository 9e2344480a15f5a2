//! What a flight brought back: counted, told to people, and turned into the machine's words.

use super::*;

impl<S: Store, K: Sink<S>> Lane<S, K> {
    pub(super) fn landed(&mut self, landed: Result<Landed<S, K>, tokio::task::JoinError>) {
        self.flight = None;
        let landed = match landed {
            Ok(landed) => landed,
            Err(error) if self.gate.passed() => {
                tracing::error!("the transaction's task ended after COMMIT was sent: {error}");
                return self.step(Event::InDoubt);
            }
            Err(error) => {
                let failure =
                    Failure::fatal(format!("the connector {:?} panicked or was cancelled: {error}", K::KIND));
                self.fatal(failure);
                return self.step(Event::RolledBack { class: Class::Fatal });
            }
        };
        self.connection = landed.connection;
        if landed.sink.is_some() {
            self.sink = landed.sink;
        }
        self.count_outcome(&landed.outcome, &landed.prepared, &landed.took);
        let batch = landed.prepared.batch;
        let event = match landed.outcome {
            Outcome::InDoubt(failure, books) => {
                tracing::warn!("in doubt: {failure}; the stored offset will tell");
                self.doubtful = books.map(|books| (batch, books));
                Event::InDoubt
            }
            Outcome::Bad(records) => self.bad(records, &batch),
            outcome => self.event_of(outcome),
        };
        self.step(event);
    }

    pub(super) fn count_outcome(&mut self, outcome: &Outcome, prepared: &Prepared, took: &Took) {
        let group = Arc::clone(&self.settings.group);
        match outcome {
            Outcome::Committed(books) => {
                emit::transaction(&group, "committed");
                for (phase, lasted) in took.phases() {
                    emit::took(&group, phase, lasted);
                }
                self.count_written(&prepared.batch, books);
            }
            Outcome::InDoubt(..) => emit::transaction(&group, "in_doubt"),
            Outcome::Bad(records) => {
                emit::transaction(&group, "rolled_back");
                if self.settings.policy == OnBadRecord::Stop {
                    self.holdings.bad(prepared.batch.parts(), records);
                    self.publish();
                }
            }
            _ => emit::transaction(&group, "rolled_back"),
        }
    }

    pub(super) fn count_written(&mut self, batch: &Batch, books: &[TopicBooks]) {
        emit::batch(&self.settings.group, batch);
        self.count_records(batch, books);
        let bad = batch.parts().iter().flat_map(|part| part.bad_records().map(|(_, bad)| bad));
        self.settings.told.aside(self.settings.policy, bad, Instant::now());
        self.well();
    }

    pub(super) fn verdict(&mut self, verdict: Verdict) {
        emit::settled(&self.settings.group, verdict.label());
        tracing::info!("settled: {}", verdict.label().replace('_', " "));
        if let Some((batch, books)) = self.doubtful.take()
            && verdict == Verdict::Applied
        {
            self.count_written(&batch, &books);
        }
    }

    /// The books by topic.
    pub(super) fn count_records(&mut self, batch: &Batch, books: &[TopicBooks]) {
        for part in batch.parts() {
            self.meter(&part.topic_partition().topic).latency(part);
        }
        for of_topic in books {
            self.meter(&of_topic.topic).committed(of_topic);
        }
    }

    /// Coordinates that the connector was never given would be looked for again and again.
    pub(super) fn bad(&mut self, records: Vec<BadRecord>, batch: &Batch) -> Event {
        let known = |bad: &BadRecord| {
            batch.parts().iter().any(|part| *part.topic_partition() == bad.place && part.holds(bad.offset))
        };
        if records.iter().any(known) {
            return Event::Bad { records };
        }
        let named = records.first().map_or_else(|| "none".to_owned(), ToString::to_string);
        self.fatal(Failure::fatal(format!(
            "the connector {:?} calls records bad that it was not given: {named}",
            K::KIND
        )));
        Event::RolledBack { class: Class::Fatal }
    }

    pub(super) fn event_of(&mut self, outcome: Outcome) -> Event {
        match outcome {
            Outcome::Committed(_) => Event::Committed,
            Outcome::NotMine(matched) => Event::NotMine { matched },
            Outcome::Contended(locked) => Event::Contended { locked },
            Outcome::Bad(records) => Event::Bad { records },
            Outcome::Withdrawn => Event::Withdrawn,
            // Taken care of by the caller, which has the batch.
            Outcome::InDoubt(..) => Event::InDoubt,
            Outcome::RolledBack(failure) => self.rolled_back(failure),
        }
    }

    pub(super) fn rolled_back(&mut self, failure: Failure) -> Event {
        let class = failure.class;
        if class != Class::Fatal {
            emit::retry(&self.settings.group, class);
        }
        match class {
            Class::BadRecord => Event::BadSomewhere { description: describe(failure) },
            Class::Fatal => {
                self.fatal(failure);
                Event::RolledBack { class }
            }
            // Not the server is ill but an object: told of its partitions, once they stand alone.
            Class::SickObject | Class::StaleCatalog => {
                tracing::debug!(class = class.label(), "{failure}");
                self.sick = failure.to_string();
                Event::RolledBack { class }
            }
            Class::Transient | Class::WrongServer | Class::Timeout => {
                self.ill(&failure);
                Event::RolledBack { class }
            }
        }
    }

    /// One line when trouble of a kind begins, none per attempt. A refusal, which a person must mend, is a kind of its own.
    pub(super) fn ill(&mut self, failure: &Failure) {
        let kind = (failure.class, failure.refused);
        if self.trouble.is_none_or(|(known, _)| known != kind) {
            tracing::warn!(class = failure.class.label(), "{failure}; rolled back, trying again");
            self.trouble = Some((kind, Instant::now()));
        }
    }

    pub(super) fn well(&mut self) {
        if let Some(((class, _), since)) = self.trouble.take() {
            tracing::info!(
                class = class.label(),
                "committing again after {:.1} s",
                since.elapsed().as_secs_f64()
            );
        }
    }
}

/// A server's refusal as a bad record in waiting.
fn describe(failure: Failure) -> BadDescription {
    let Failure { message, sql_state, data, .. } = failure;
    let unknown = || DataError { reason: Reason::ServerData, table: None, column: None };
    let DataError { reason, table, column } = data.map_or_else(unknown, |data| *data);
    BadDescription { reason, message, sql_state, table, column }
}
