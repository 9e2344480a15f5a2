//! A sink's loop: it waits for one thing that happened, lets the state machine decide, and carries out the effects.
//!
//! Must not: decide over a partition itself, or wait for a broker or a database.

mod outlook;
mod trouble;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch::Receiver;

use crate::error::{BadRecord, Failure};
use crate::kafka::{self, Command, ConsumerHandle, FatalKind, TopicState};
use crate::metrics::emit;
use crate::record::TopicPartition;
use crate::sink::Sink;
use crate::store::{Claimed, EventRow, Row, Store};
use crate::supervisor::chronicle::Chronicle;
use crate::supervisor::claimer::{Brought, Claimer, Current, Waiting, back_off};
use crate::supervisor::live::{LiveSink, Shown};
use crate::supervisor::orphans::Orphans;
use crate::supervisor::preflight::{Checked, check};
use crate::supervisor::settings::SinkSettings;
use crate::supervisor::sinks::Ended;
use crate::supervisor::stalls::Stalls;
use crate::supervisor::state::{Effect, Event, Halt, HaltState, Partition, Partitions, Start};
use crate::supervisor::watch::{Known, Look, Looked, Seen, watch};
use crate::writer::{self, ConfigSource, Gone, Instruction, Report, Said, WriterHandle, WriterSettings};

/// How long a revoke waits for a COMMIT that was sent.
const REVOKE_MAX: Duration = Duration::from_secs(1);
/// How long closing the client may take.
const CLOSE_MAX: Duration = Duration::from_secs(6);
/// After the drain deadline: time for writers to withdraw what can be withdrawn.
const WITHDRAW_MAX: Duration = Duration::from_secs(1);
/// How long noting a state or an event, or a look at the stored offsets, may take.
const NOTE_MAX: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(250);

/// Runs a sink to its end: a client that dies is replaced, with back-off.
pub(crate) async fn supervise<S: Store, K: Sink<S>>(
    settings: SinkSettings,
    store: Arc<S>,
    config: ConfigSource<K::Config>,
    live: Arc<LiveSink>,
    mut shutdown: Receiver<bool>,
) -> Ended {
    emit::begin(&settings.group, &settings.owner);
    let checked = tokio::select! {
        checked = check::<S, K>(&settings, &store, &config, true) => checked,
        () = told(&mut shutdown) => return Ended::Stopped,
    };
    let checked = match checked {
        Ok(checked) => Arc::new(checked),
        Err(failure) => return Ended::Refused(failure),
    };
    let mut attempts = 0;
    loop {
        let began = Instant::now();
        let session =
            Supervisor::<S>::start::<K>(&settings, &store, &config, &live, &checked, shutdown.clone());
        let session = match session {
            Ok(session) => session,
            Err(failure) => return Ended::Fatal(failure),
        };
        match session.run().await {
            Over::Ended(ended) => return ended,
            Over::ClientLost => {
                attempts = if began.elapsed() > Duration::from_secs(60) { 1 } else { attempts + 1 };
                tokio::select! {
                    () = tokio::time::sleep(back_off(attempts)) => {}
                    () = told(&mut shutdown) => return Ended::Stopped,
                }
            }
        }
    }
}

async fn told(shutdown: &mut Receiver<bool>) {
    // A sender that is gone tells nothing: the sink runs until it ends by itself.
    if shutdown.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// How the life of one client ended.
enum Over {
    Ended(Ended),
    ClientLost,
}

/// A stop that is under way.
enum Stopping {
    /// Transactions are finished until the deadline.
    Draining { until: Instant },
    /// What can be withdrawn is withdrawn.
    Withdrawing { until: Instant },
}

struct Inboxes {
    kafka: UnboundedReceiver<kafka::Event>,
    said: UnboundedReceiver<(usize, Said)>,
    brought: UnboundedReceiver<Brought>,
    seen: UnboundedReceiver<Seen>,
}

/// Everything about one client's life.
struct Supervisor<S: Store> {
    settings: SinkSettings,
    store: Arc<S>,
    live: Arc<LiveSink>,
    shutdown: Receiver<bool>,
    inboxes: Option<Inboxes>,
    seen: UnboundedSender<Seen>,
    consumer: ConsumerHandle,
    writers: Vec<WriterHandle>,
    claimer: Arc<Claimer<S>>,
    looked: Looked,
    watcher: tokio::task::AbortHandle,
    partitions: Partitions,
    /// Partitions with a transaction since the last look.
    active: HashSet<TopicPartition>,
    /// Ids of the topics that were claimed; none where the brokers told none.
    topic_ids: HashMap<Arc<str>, Option<String>>,
    /// Records that wait for the rows that they refer to.
    orphans: Orphans,
    /// When a revoke that waits is answered at the latest.
    revoke: Option<Instant>,
    stalls: Stalls,
    joined: bool,
    stopping: Option<Stopping>,
    over: Option<Over>,
    chronicle: Chronicle,
    began: Instant,
    /// Ends still to be reached, with `until_end`.
    ends: BTreeMap<TopicPartition, i64>,
    reading_ends: bool,
    dirty: bool,
    /// For the consumer, until the event at hand, or a burst of them, is dealt with.
    starts: Vec<kafka::Start>,
    unassigns: Vec<TopicPartition>,
}

impl<S: Store> Supervisor<S> {
    fn start<K: Sink<S>>(
        settings: &SinkSettings,
        store: &Arc<S>,
        config: &ConfigSource<K::Config>,
        live: &Arc<LiveSink>,
        checked: &Arc<Checked>,
        shutdown: Receiver<bool>,
    ) -> Result<Self, Failure> {
        let (events, kafka) = unbounded_channel();
        let (brought_tx, brought) = unbounded_channel();
        let (said_tx, said) = unbounded_channel();
        let (seen_tx, seen) = unbounded_channel();
        let partitions = checked.partitions.values().map(|count| usize::try_from(*count).unwrap_or(0)).sum();
        let consumer = settings.consumer(partitions).map_err(Failure::fatal)?;
        let (consumer, queues) = kafka::start(&consumer, settings.writers, events)
            .map_err(|error| Failure::fatal(error.to_string()))?;
        let writer_settings = WriterSettings {
            batch: settings.batch,
            ahead: settings.payload_share(),
            call_max: settings.call_max(),
            group: Arc::clone(&settings.group),
            policy: settings.on_bad_record,
            told: Arc::default(),
        };
        let mut writers = Vec::new();
        for (index, queue) in queues.into_iter().enumerate() {
            let (store, config) = (Arc::clone(store), Arc::clone(config));
            writers.push(writer::start::<S, K>(
                index,
                queue,
                store,
                config,
                writer_settings.clone(),
                said_tx.clone(),
            )?);
        }
        live.set_buffered(writers.iter().map(|writer| Arc::clone(&writer.buffered)).collect());
        let claimer = Arc::new(Claimer {
            store: Arc::clone(store),
            monitor: checked.monitor.clone(),
            identity: checked.identity.clone(),
            start: settings.start,
            on_expired: settings.on_expired,
            targets: checked.targets.clone(),
            begun: checked.begun.clone(),
            unidentified: checked.unidentified.clone(),
            waiting: Waiting::default(),
            current: Current::default(),
            brought: brought_tx,
            call_max: settings.call_max(),
        });
        let looked = Looked::default();
        let watcher = watch(Arc::clone(store), checked.monitor.clone(), looked.clone(), seen_tx.clone());
        let watcher = tokio::spawn(watcher).abort_handle();
        Ok(Self {
            store: Arc::clone(store),
            live: Arc::clone(live),
            shutdown,
            inboxes: Some(Inboxes { kafka, said, brought, seen }),
            seen: seen_tx,
            consumer,
            partitions: Partitions::new(writers.len()),
            writers,
            claimer,
            looked,
            watcher,
            active: HashSet::new(),
            topic_ids: HashMap::new(),
            orphans: Orphans::new(settings.foreign_key_wait),
            revoke: None,
            stalls: Stalls::default(),
            joined: false,
            stopping: None,
            over: None,
            chronicle: Chronicle::new(settings, checked),
            began: Instant::now(),
            ends: checked.ends.clone(),
            reading_ends: false,
            dirty: false,
            starts: Vec::new(),
            unassigns: Vec::new(),
            settings: settings.clone(),
        })
    }

    async fn run(mut self) -> Over {
        let Some(mut inboxes) = self.inboxes.take() else { return Over::ClientLost };
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut shutdown = self.shutdown.clone();
        while self.over.is_none() {
            let revoke_at = self.revoke;
            let stopping = self.stopping.is_some();
            tokio::select! {
                Some(event) = inboxes.kafka.recv() => self.kafka(event),
                Some((writer, said)) = inboxes.said.recv() => {
                    self.said(writer, said);
                    // A burst is taken whole, so that what follows from it is told once.
                    while let Ok((writer, said)) = inboxes.said.try_recv() {
                        self.said(writer, said);
                    }
                }
                Some(brought) = inboxes.brought.recv() => self.brought(brought),
                Some(seen) = inboxes.seen.recv() => self.seen(seen),
                () = sleep_until(revoke_at) => {
                    self.revoke = None;
                    self.step(Event::RevokeOverdue);
                }
                () = told(&mut shutdown), if !stopping => self.stop(),
                _ = tick.tick() => self.tick(),
            }
            self.tell_consumer();
            self.show();
        }
        self.close(inboxes.kafka).await
    }

    fn step(&mut self, event: Event) {
        let stored = matches!(event, Event::Stored { .. });
        let effects = self.partitions.step(event);
        self.dirty = true;
        if stored {
            // By far the most frequent event, and it has no effects.
            return;
        }
        let mut claims: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for effect in effects {
            match effect {
                Effect::Claim { place, claim, attempts } => {
                    self.claimer.current.set(&place, claim);
                    claims.entry(attempts).or_default().push((place, claim));
                }
                other => self.carry_out(other),
            }
        }
        let partitions = &self.partitions;
        self.claimer.current.retain(|place, claim| partitions.is_current(place, claim));
        for (attempts, wanted) in claims {
            tokio::spawn(Arc::clone(&self.claimer).claim(wanted, attempts));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Claim { .. } => {}
            Effect::HandOver { writer, place, claim, fence, start, alone } => {
                let waited = self.orphans.waited(&place, Instant::now());
                self.instruct(
                    writer,
                    Instruction::HandOver { place, claim, fence, start: start.offset, alone, waited },
                );
            }
            Effect::Release { writer, place, claim, finish } => {
                self.instruct(writer, Instruction::Release { place, claim, finish });
            }
            Effect::Assign { writer, place, tenure, claim, start } => {
                let Start { offset, leader_epoch } = start;
                self.starts.push(kafka::Start { place, tenure, claim, offset, leader_epoch, writer });
            }
            Effect::Unassign { place } => {
                // Assigned and taken out within one burst: in this order, or it would stay assigned with nobody knowing.
                if self.starts.iter().any(|start| start.place == place) {
                    self.tell_consumer();
                }
                self.unassigns.push(place);
            }
            Effect::AwaitRevoke => {
                self.revoke = Some(Instant::now() + REVOKE_MAX);
            }
            Effect::AnswerRevoke { places } => {
                self.revoke = None;
                if let Some(lasted) = self.stalls.answered(Instant::now()) {
                    emit::stall(&self.settings.group, "revoke", lasted);
                }
                self.consumer.send(Command::Unassign { places, revoke: true });
            }
            Effect::Halted { place, halt } => self.halted(&place, &halt),
            Effect::Drained => self.over = Some(Over::Ended(Ended::Stopped)),
        }
    }

    /// One command for a burst. A partition is never in both lists: between its unassign and its assign lies a claim, and one that was just assigned is told
    /// before it is unassigned.
    fn tell_consumer(&mut self) {
        if !self.unassigns.is_empty() {
            let places = std::mem::take(&mut self.unassigns);
            self.consumer.send(Command::Unassign { places, revoke: false });
        }
        if !self.starts.is_empty() {
            self.consumer.send(Command::Assign(std::mem::take(&mut self.starts)));
        }
    }

    fn instruct(&self, writer: usize, instruction: Instruction) {
        if let Some(writer) = self.writers.get(writer) {
            // A writer that has ended said why.
            let _ = writer.instructions.send(instruction);
        }
    }

    fn kafka(&mut self, event: kafka::Event) {
        let group = Arc::clone(&self.settings.group);
        match event {
            kafka::Event::Joined => {
                (self.joined, self.dirty) = (true, true);
                self.chronicle.joined();
            }
            kafka::Event::Assigned { places, tenure } => {
                emit::rebalance(&group, "assign");
                self.stalls.assigned(&places, Instant::now());
                self.joined = true;
                self.chronicle.assigned(places.len());
                self.step(Event::Assigned { places, tenure });
            }
            kafka::Event::Revoked(places) => {
                emit::rebalance(&group, "revoke");
                self.stalls.revoked(Instant::now());
                self.step(Event::Revoked(places));
            }
            kafka::Event::Lost(places) => {
                emit::rebalance(&group, "lost");
                tracing::warn!(group = &*group, "lost {} partitions to the group", places.len());
                self.revoke = None;
                self.stalls.lost(Instant::now());
                self.step(Event::Lost(places));
            }
            kafka::Event::Positioned { place, claim } => self.step(Event::Positioned { place, claim }),
            kafka::Event::Refused { place, claim, reason } => {
                tracing::debug!("{place} was not assigned: {reason}");
                self.step(Event::NotPositioned { place, claim });
            }
            kafka::Event::Unassigned { places } => self.step(Event::Unassigned(places)),
            kafka::Event::Stray { place, offset } => self.step(Event::Stray { place, offset }),
            kafka::Event::Error { code, reason } => tracing::debug!(?code, "librdkafka: {reason}"),
            kafka::Event::Fatal { kind, reason } => self.client_died(&kind, &reason),
            kafka::Event::Stopped { .. } => {
                self.step(Event::ClientLost);
                self.over.get_or_insert(Over::ClientLost);
            }
        }
    }

    fn said(&mut self, writer: usize, said: Said) {
        match said {
            Said::HandedOver { place, claim } => self.step(Event::HandedOver { place, claim }),
            Said::Released { place, claim } => self.step(Event::Released { place, claim }),
            Said::Report(report) => self.report(report),
            Said::Sick { place, reason } => {
                self.chronicle.sick(&place, &format!("{reason}; trying again, the others flow on"));
            }
            Said::Fatal(failure) => {
                tracing::error!(writer, "{failure}");
                self.step(Event::ClientLost);
                self.over = Some(Over::Ended(Ended::Fatal(failure)));
            }
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Stored { place, claim, offset, fence, records } => {
                self.active.insert(place.clone());
                self.chronicle.stored(&place, records);
                self.orphans.stored(&place, offset);
                self.step(Event::Stored { place, claim, offset, fence });
            }
            Report::Refenced { place, claim, fence } => self.step(Event::Refenced { place, claim, fence }),
            Report::Gone { place, claim, why } => {
                self.gone(&place, &why);
                self.step(Event::Gone { place, claim, why });
            }
            // The failure itself came as a word of its own.
            Report::Fatal => {}
        }
    }

    fn brought(&mut self, brought: Brought) {
        match brought {
            Brought::Claimed { place, topic_id, claim, claimed } => {
                if !self.partitions.is_current(&place, claim) {
                    return;
                }
                self.compare_with_memory(&place, &claimed);
                if claimed.owner.as_deref() != Some(&*self.settings.owner) {
                    self.partitions.name_other(&place, claimed.owner.as_deref());
                }
                self.chronicle.claimed(&place, claimed.offset);
                let topic_id = (!topic_id.is_empty()).then(|| topic_id.to_string());
                self.topic_ids.insert(Arc::clone(&place.topic), topic_id);
                let start = Start { offset: claimed.offset, leader_epoch: claimed.leader_epoch };
                self.step(Event::Claimed { place, claim, fence: claimed.fence, start });
            }
            Brought::Halted { place, claim, halt, found } => {
                self.partitions.learn(&place, claim, found);
                self.step(Event::ClaimHalted { place, claim, halt });
            }
        }
    }

    fn tick(&mut self) {
        self.step(Event::Tick(self.began.elapsed()));
        self.look();
        self.watchdog();
        self.chronicle.tick();
        if self.settings.until_end && !self.reading_ends && self.stopping.is_none() {
            self.read_ends();
        }
        let now = Instant::now();
        match self.stopping {
            Some(Stopping::Draining { until }) if until <= now => self.withdraw(),
            Some(Stopping::Withdrawing { until }) if until <= now => {
                self.over = Some(Over::Ended(Ended::DrainPassed));
            }
            _ => {}
        }
    }

    fn watchdog(&mut self) {
        let slowest =
            self.writers.iter().map(WriterHandle::idle_for).fold(self.consumer.last_tick(), Duration::max);
        self.live.beat(slowest);
        if self.writers.iter().any(WriterHandle::is_finished) && self.over.is_none() {
            let failure = Failure::fatal("a writer's thread ended by itself; this is a bug");
            self.over = Some(Over::Ended(Ended::Fatal(failure)));
        }
    }

    fn stop(&mut self) {
        tracing::info!("{}: stopping: the transactions in flight are finished", self.settings.name);
        self.stop_as(Ended::Stopped);
    }

    fn stop_as(&mut self, ended: Ended) {
        self.stopping = Some(Stopping::Draining { until: Instant::now() + self.settings.drain });
        self.step(Event::Shutdown);
        // Drained at once when nothing was open.
        if let Some(Over::Ended(over @ Ended::Stopped)) = &mut self.over {
            *over = ended;
        } else {
            self.chronicle.ending = Some(ended);
        }
    }

    fn withdraw(&mut self) {
        self.stopping = Some(Stopping::Withdrawing { until: Instant::now() + WITHDRAW_MAX });
        self.step(Event::DrainOverdue);
    }

    /// Brings what metrics see up to date.
    fn show(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let mut shown = self.live.partitions();
        let here = |partition: &Partition| !partition.is_leaving();
        shown.retain(|place, _| self.partitions.get(place).is_some_and(here));
        for (place, partition) in self.partitions.iter().filter(|(_, partition)| here(partition)) {
            let ends = shown.get(place).and_then(|shown| shown.ends);
            shown.insert(place.clone(), Shown { state: partition.state(), stored: partition.stored, ends });
        }
        drop(shown);
        self.live.set_joined(self.joined);
        let has_settled =
            |place: &TopicPartition| self.partitions.get(place).is_none_or(Partition::is_settled);
        for (kind, lasted) in self.stalls.settled(has_settled, Instant::now()) {
            emit::stall(&self.settings.group, kind, lasted);
        }
        let settled = self.partitions.iter().all(|(_, partition)| partition.is_settled());
        self.chronicle.settled(settled, &self.partitions);
    }

    /// Writers first: their queues must be gone before the client closes.
    async fn close(mut self, mut events: UnboundedReceiver<kafka::Event>) -> Over {
        self.watcher.abort();
        for writer in &self.writers {
            let _ = writer.instructions.send(Instruction::End);
        }
        self.consumer.send(Command::Stop { deadline: CLOSE_MAX });
        let stopped = async {
            while let Some(event) = events.recv().await {
                if matches!(event, kafka::Event::Stopped { .. }) {
                    return;
                }
            }
        };
        if tokio::time::timeout(CLOSE_MAX + WITHDRAW_MAX, stopped).await.is_err() {
            tracing::warn!("the Kafka client did not close in time; it is left behind");
        }
        self.live.set_joined(false);
        self.live.rest();
        self.live.partitions().clear();
        match self.over.take() {
            Some(Over::Ended(Ended::Stopped)) => {
                self.chronicle.ended();
                Over::Ended(self.chronicle.ending.take().unwrap_or(Ended::Stopped))
            }
            Some(over) => over,
            None => Over::ClientLost,
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn shown(offset: Option<i64>) -> String {
    offset.map_or_else(|| "unknown".to_owned(), |offset| offset.to_string())
}
