//! What runs beside the writer's thread: connect, open the sink, encode when that was not done before, one transaction.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::batch::{Batch, Part};
use crate::config::OnBadRecord;
use crate::error::{BadRecord, Class, Failure, SinkError};
use crate::sink::Sink;
use crate::store::{Step, Store};
use crate::writer::gate::Gate;
use crate::writer::transaction::{Outcome, Took, Work, transaction};

/// Makes a sink's configuration anew for every connection: secrets are read again.
pub type ConfigSource<C> = Arc<dyn Fn() -> Result<C, Failure> + Send + Sync>;

/// A session with the sink that was opened on it.
pub(crate) struct Connection<S: Store, K> {
    session: S::Session,
    sink: Opened<K>,
}

/// A sink, the topics that it was opened for, and a number that tells it from its predecessors.
pub(crate) struct Opened<K> {
    pub(crate) sink: Arc<K>,
    pub(crate) topics: Arc<BTreeSet<String>>,
    pub(crate) number: u64,
}

impl<K> Clone for Opened<K> {
    fn clone(&self) -> Self {
        Self { sink: Arc::clone(&self.sink), topics: Arc::clone(&self.topics), number: self.number }
    }
}

/// A batch, and what the sink of this number made of it: its encoding, or bad records.
pub(crate) struct Prepared {
    pub(crate) batch: Batch,
    encoded: Option<(u64, Result<(), Vec<BadRecord>>)>,
}

impl Prepared {
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        Self { batch: Batch::new(parts), encoded: None }
    }

    /// Encodes with this sink, unless it did so already: its verdict on the batch stands.
    pub(crate) fn encode<S: Store, K: Sink<S>>(&mut self, sink: &Opened<K>) -> Result<(), SinkError> {
        if let Some((_, verdict)) = self.encoded.as_ref().filter(|(by, _)| *by == sink.number) {
            return verdict.clone().map_err(SinkError::Bad);
        }
        // On the writer's own thread a panic would end more than this connector's sink, and name nobody.
        let encoding = AssertUnwindSafe(|| sink.sink.encode(&self.batch));
        let encoded = catch_unwind(encoding).unwrap_or_else(|_| {
            Err(Failure::fatal(format!("the connector {:?} panicked while it encoded", K::KIND)).into())
        });
        let verdict = match encoded {
            Ok(encoded) => {
                self.batch.set_encoded(encoded);
                Ok(())
            }
            Err(SinkError::Bad(records)) => Err(records),
            Err(failed) => return Err(failed),
        };
        self.encoded = Some((sink.number, verdict.clone()));
        verdict.map_err(SinkError::Bad)
    }

    fn topics(&self) -> BTreeSet<String> {
        self.batch.parts().iter().map(|part| part.topic_partition().topic.to_string()).collect()
    }
}

/// What a flight takes with it.
pub(crate) struct Flight<S: Store, K: Sink<S>> {
    pub(crate) store: Arc<S>,
    pub(crate) config: ConfigSource<K::Config>,
    pub(crate) connection: Option<Connection<S, K>>,
    pub(crate) prepared: Prepared,
    pub(crate) steps: Vec<Step>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) policy: OnBadRecord,
    /// The sink of the connection at hand is not to be used again.
    pub(crate) reread: bool,
    pub(crate) call_max: Duration,
    /// For a sink opened on the way.
    pub(crate) next_number: u64,
}

/// What a flight brings back.
pub(crate) struct Landed<S: Store, K> {
    pub(crate) outcome: Outcome,
    pub(crate) connection: Option<Connection<S, K>>,
    /// The sink that was used, to encode the next batch with.
    pub(crate) sink: Option<Opened<K>>,
    pub(crate) prepared: Prepared,
    pub(crate) took: Took,
}

impl<S: Store, K: Sink<S>> Flight<S, K> {
    pub(crate) async fn fly(mut self) -> Landed<S, K> {
        let mut took = Took::default();
        let gate = Arc::clone(&self.gate);
        let connected = tokio::select! {
            biased;
            connected = self.connected() => connected.map_err(Outcome::RolledBack),
            () = gate.withdrawn() => Err(Outcome::Withdrawn),
        };
        let connection = match connected {
            Ok(connection) => connection,
            Err(outcome) => return self.landed(outcome, None, None, took),
        };
        let opened = connection.sink.clone();
        match self.prepared.encode::<S, K>(&opened) {
            Ok(()) => {}
            Err(SinkError::Bad(records)) => {
                return self.landed(Outcome::Bad(records), Some(connection), Some(opened), took);
            }
            Err(SinkError::Failed(failure)) => {
                return self.landed(Outcome::RolledBack(failure.context("encode")), None, Some(opened), took);
            }
        }
        let work = Work {
            store: &self.store,
            sink: &*opened.sink,
            batch: &self.prepared.batch,
            steps: &self.steps,
            gate: &self.gate,
            policy: self.policy,
            call_max: self.call_max,
        };
        let (outcome, session) = transaction(&work, connection.session, &mut took).await;
        let connection = session.map(|session| Connection { session, sink: opened.clone() });
        self.landed(outcome, connection, Some(opened), took)
    }

    fn landed(
        self,
        outcome: Outcome,
        connection: Option<Connection<S, K>>,
        sink: Option<Opened<K>>,
        took: Took,
    ) -> Landed<S, K> {
        Landed { outcome, connection, sink, prepared: self.prepared, took }
    }

    /// The connection at hand, or a new one, with the sink opened for all topics of the batch.
    async fn connected(&mut self) -> Result<Connection<S, K>, Failure> {
        let mut wanted = self.prepared.topics();
        if let Some(connection) = self.connection.take() {
            if !self.reread && wanted.is_subset(&connection.sink.topics) {
                return Ok(connection);
            }
            wanted.extend(connection.sink.topics.iter().cloned());
            if self.reread
                && let Ok(connection) = self.open(Some(connection.session), &wanted).await
            {
                return Ok(connection);
            }
        }
        match self.open(None, &wanted).await {
            // One table that is missing must not hold back the topics of another.
            Err(failure)
                if failure.class == Class::SickObject && wanted.len() > self.prepared.topics().len() =>
            {
                self.open(None, &self.prepared.topics()).await
            }
            answer => answer,
        }
    }

    /// Opens the sink on this session, or on a new one.
    async fn open(
        &self,
        session: Option<S::Session>,
        topics: &BTreeSet<String>,
    ) -> Result<Connection<S, K>, Failure> {
        let attempt = async {
            let session = match session {
                Some(session) => session,
                None => self.store.connect().await.map_err(refused_while_running)?,
            };
            let config = (self.config)().map_err(refused_while_running)?;
            open_on::<S, K>(&self.store, session, config, topics).await.map_err(sick_while_running)
        };
        let (session, sink) = match tokio::time::timeout(self.call_max, attempt).await {
            Ok(answer) => answer?,
            Err(_) => return Err(Failure::new(Class::Timeout, "connect: no answer in time")),
        };
        let sink =
            Opened { sink: Arc::new(sink), topics: Arc::new(topics.clone()), number: self.next_number };
        Ok(Connection { session, sink })
    }
}

/// Opens a sink within a transaction that is rolled back.
pub(crate) async fn open_on<S: Store, K: Sink<S>>(
    store: &Arc<S>,
    session: S::Session,
    config: K::Config,
    topics: &BTreeSet<String>,
) -> Result<(S::Session, K), Failure> {
    let mut tx = store.begin(session, K::STATEMENTS).await?;
    let topics: Vec<String> = topics.iter().cloned().collect();
    let opened = K::open(config, &topics, &mut tx).await;
    let session = store.rollback(tx).await;
    let sink = opened.map_err(|error| match error {
        SinkError::Failed(failure) => failure,
        SinkError::Bad(_) => Failure::fatal("the connector calls records bad while it opens"),
    })?;
    let session = session
        .ok_or_else(|| Failure::new(Class::Transient, "the connection was lost while the sink opened"))?;
    Ok((session, sink))
}

/// At run time a server that refuses us, or a secret that cannot be read, is waited for: the start has proved that both are there.
fn refused_while_running(failure: Failure) -> Failure {
    match failure.class {
        Class::Fatal => Failure { class: Class::Transient, refused: true, ..failure },
        _ => failure,
    }
}

/// What stops a start is a sick object once the sink runs: it is waited for, and other tables flow on.
fn sick_while_running(failure: Failure) -> Failure {
    match failure.class {
        Class::Fatal | Class::StaleCatalog | Class::BadRecord => {
            Failure { class: Class::SickObject, ..failure }
        }
        _ => failure,
    }
}
