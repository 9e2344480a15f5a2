//! The writer's thread: drains its queue, gathers, and carries out what the state machine decides.
//!
//! Invariants: instructions are taken between two drains, with everything popped already dispatched, so that no record of an earlier assignment is taken for
//! one of a later; a transaction runs beside the thread and is never raced against anything but its gate and its timers.

mod landing;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::batch::{Batch, Part};
use crate::config::OnBadRecord;
use crate::error::{BadRecord, Class, DataError, Failure, Reason};
use crate::kafka::{ClaimNumber, DrainQueue, Item, RawRecord};
use crate::metrics::emit::{self, Gap, TopicMeter};
use crate::record::TopicPartition;
use crate::sink::Sink;
use crate::store::{Fence, Settled, Step, Store};
use crate::writer::backlog::Backlog;
use crate::writer::flight::{ConfigSource, Connection, Flight, Landed, Opened, Prepared};
use crate::writer::gate::Gate;
use crate::writer::gathering::{BatchLimits, Gathering};
use crate::writer::holdings::{Buffered, Holdings};
use crate::writer::state::{BadDescription, Break, Effect, Event, Gone, Report, Taken, Verdict, Writer};
use crate::writer::told::Told;
use crate::writer::transaction::{Outcome, Took};
use crate::written::TopicBooks;

/// Items popped before the writer looks at anything else.
const DRAIN_MAX: usize = 512;
/// The writer looks at its queue this often even when nothing woke it.
const TICK: Duration = Duration::from_millis(200);
const BACK_OFF_FIRST: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// What the supervisor tells a writer.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// A claimed partition begins here; records below `waited` have waited for the rows that they refer to.
    HandOver { place: TopicPartition, claim: ClaimNumber, fence: Fence, start: i64, alone: bool, waited: i64 },
    /// A partition is taken away; with `finish`, a running transaction is waited for.
    Release { place: TopicPartition, claim: ClaimNumber, finish: bool },
    /// Drop the queue and end; a transaction that runs is waited for by nobody.
    End,
}

/// What a writer tells the supervisor.
#[derive(Debug)]
pub(crate) enum Said {
    /// Nothing of an earlier claim is taken any more.
    HandedOver { place: TopicPartition, claim: ClaimNumber },
    /// The partition is out of this writer.
    Released { place: TopicPartition, claim: ClaimNumber },
    /// See [`Report`].
    Report(Report),
    /// Why the partition that is reported next does not flow: for people.
    Sick { place: TopicPartition, reason: String },
    /// The sink cannot go on.
    Fatal(Failure),
}

/// A writer's settings.
#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    pub(crate) batch: BatchLimits,
    /// Bytes of payload in closed batches from which the queue is not drained.
    pub(crate) ahead: usize,
    /// Our own timer for a call, above the server's statement timeout.
    pub(crate) call_max: Duration,
    pub(crate) group: Arc<str>,
    /// What becomes of bad records.
    pub(crate) policy: OnBadRecord,
    /// Of the whole sink: tells of them in the log.
    pub(crate) told: Arc<Told>,
}

/// The supervisor's end.
pub(crate) struct WriterHandle {
    pub(crate) instructions: UnboundedSender<Instruction>,
    /// Milliseconds since `started` at the loop's last turn.
    last_turn: Arc<AtomicU64>,
    started: Instant,
    pub(crate) buffered: Buffered,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl WriterHandle {
    /// Time since the loop's last turn.
    pub(crate) fn idle_for(&self) -> Duration {
        let now = self.started.elapsed();
        now.saturating_sub(Duration::from_millis(self.last_turn.load(Ordering::Relaxed)))
    }

    /// Whether the thread has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(std::thread::JoinHandle::is_finished)
    }
}

/// Starts a writer's thread. Its transactions run on the runtime of the caller.
pub(crate) fn start<S: Store, K: Sink<S>>(
    index: usize,
    queue: DrainQueue,
    store: Arc<S>,
    config: ConfigSource<K::Config>,
    settings: WriterSettings,
    said: UnboundedSender<(usize, Said)>,
) -> Result<WriterHandle, Failure> {
    let (instructions, inbox) = unbounded_channel();
    let started = Instant::now();
    let last_turn = Arc::new(AtomicU64::new(0));
    let holdings = Holdings::default();
    let buffered = holdings.shared();
    let runtime = tokio::runtime::Handle::current();
    let ahead = settings.ahead;
    let lane: Lane<S, K> = Lane {
        index,
        store,
        config,
        gathering: Gathering::new(settings.batch),
        state: Writer::new(settings.policy),
        settings,
        said,
        runtime,
        backlog: Backlog::new(ahead),
        next: None,
        flight: None,
        settle: None,
        gate: Arc::new(Gate::default()),
        connection: None,
        sink: None,
        sinks_opened: 0,
        reread: false,
        settle_token: None,
        doubtful: None,
        wake_at: None,
        trouble: None,
        sick: String::new(),
        holdings,
        meters: HashMap::new(),
    };
    let turn = Turn { last: Arc::clone(&last_turn), started };
    let thread = std::thread::Builder::new()
        .name(format!("writer-{index}"))
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(lane.run(queue, inbox, turn)),
                Err(error) => lane.fatal(Failure::fatal(format!("a writer's runtime: {error}"))),
            }
        })
        .map_err(|error| Failure::fatal(format!("a writer's thread cannot be started: {error}")))?;
    Ok(WriterHandle { instructions, last_turn, started, buffered, thread: Some(thread) })
}

struct Turn {
    last: Arc<AtomicU64>,
    started: Instant,
}

impl Turn {
    fn tick(&self) {
        self.last.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

/// Everything that a writer's thread owns.
struct Lane<S: Store, K: Sink<S>> {
    index: usize,
    store: Arc<S>,
    config: ConfigSource<K::Config>,
    settings: WriterSettings,
    said: UnboundedSender<(usize, Said)>,
    runtime: tokio::runtime::Handle,
    state: Writer,
    gathering: Gathering,
    /// Full batches that were closed while their predecessors commit.
    backlog: Backlog,
    /// The one of them whose turn it is.
    next: Option<Prepared>,
    flight: Option<JoinHandle<Landed<S, K>>>,
    settle: Option<JoinHandle<Result<Vec<Settled>, Failure>>>,
    gate: Arc<Gate>,
    connection: Option<Connection<S, K>>,
    sink: Option<Opened<K>>,
    sinks_opened: u64,
    /// The sink of the connection at hand is to be opened again.
    reread: bool,
    /// The token that every attempt at the present settle writes.
    settle_token: Option<Uuid>,
    /// The books of the transaction in doubt, to be counted if it was applied.
    doubtful: Option<(Batch, Box<[TopicBooks]>)>,
    wake_at: Option<Instant>,
    /// The class of the failure that is being waited out, whether it is a refusal, and since when.
    trouble: Option<((Class, bool), Instant)>,
    /// The last failure of an object's own.
    sick: String,
    holdings: Holdings,
    meters: HashMap<Arc<str>, TopicMeter>,
}

/// What woke the loop.
enum Woke<S: Store, K> {
    Instruction(Option<Instruction>),
    Landed(Box<Result<Landed<S, K>, tokio::task::JoinError>>),
    Settled(Result<Result<Vec<Settled>, Failure>, tokio::task::JoinError>),
    Queue,
    Due,
}

impl<S: Store, K: Sink<S>> Lane<S, K> {
    async fn run(mut self, mut queue: DrainQueue, mut inbox: UnboundedReceiver<Instruction>, turn: Turn) {
        let fd = match queue.readiness() {
            Ok(fd) => fd,
            Err(error) => return self.fatal(Failure::fatal(format!("a writer's wake-up: {error}"))),
        };
        let mut not_empty = true;
        loop {
            turn.tick();
            self.settings.told.rest(Instant::now());
            let draining = not_empty && self.may_drain();
            match self.wait(&mut inbox, &fd, draining).await {
                Woke::Instruction(Some(Instruction::End) | None) => return,
                Woke::Instruction(Some(instruction)) => self.instruct(instruction),
                Woke::Landed(landed) => self.landed(*landed),
                Woke::Settled(answer) => self.settled(answer),
                Woke::Queue => {
                    queue.clear_wake();
                    not_empty = true;
                }
                Woke::Due => {
                    // The slow look at the queue, against a wake-up that never came.
                    not_empty = true;
                    self.due();
                }
            }
            if not_empty && self.may_drain() {
                not_empty = self.drain(&mut queue);
            }
            self.begin();
            self.publish();
        }
    }

    /// Waits for one thing. With records at hand it only looks, and does not sleep: a timer would, since its ticks are milliseconds.
    async fn wait(
        &mut self,
        inbox: &mut UnboundedReceiver<Instruction>,
        fd: &AsyncFd<std::os::fd::OwnedFd>,
        draining: bool,
    ) -> Woke<S, K> {
        let until = self.next_due();
        let may_drain = self.may_drain();
        let Self { flight, settle, .. } = self;
        tokio::select! {
            biased;
            instruction = inbox.recv() => Woke::Instruction(instruction),
            landed = join(flight), if flight.is_some() => Woke::Landed(Box::new(landed)),
            answer = join(settle), if settle.is_some() => Woke::Settled(answer),
            ready = fd.readable(), if may_drain => {
                if let Ok(mut ready) = ready {
                    ready.clear_ready();
                }
                Woke::Queue
            }
            () = tokio::task::yield_now(), if draining => Woke::Due,
            () = tokio::time::sleep_until(until.into()), if !draining => Woke::Due,
        }
    }

    fn next_due(&self) -> Instant {
        let tick = Instant::now() + TICK;
        let batch = if self.state.is_idle() { self.gathering.due() } else { None };
        [self.wake_at, batch].into_iter().flatten().fold(tick, Instant::min)
    }

    fn may_drain(&self) -> bool {
        self.backlog.may_drain() && !self.gathering.is_full()
    }

    fn instruct(&mut self, instruction: Instruction) {
        match instruction {
            Instruction::HandOver { place, claim, fence, start, alone, waited } => {
                let begins = place.clone();
                self.step(Event::HandedOver { place, claim, fence, start, alone, waited });
                self.holdings.hand_over(&begins);
            }
            Instruction::Release { place, claim, finish } => {
                self.step(Event::Released { place, claim, finish })
            }
            Instruction::End => {}
        }
    }

    fn due(&mut self) {
        if self.wake_at.is_some_and(|at| at <= Instant::now()) {
            self.wake_at = None;
            self.step(Event::BackedOff);
        }
    }

    /// Pops and dispatches; answers whether the queue may hold more.
    fn drain(&mut self, queue: &mut DrainQueue) -> bool {
        let now = Instant::now();
        for _ in 0..DRAIN_MAX {
            if self.gathering.is_full() {
                return true;
            }
            match queue.poll() {
                None => {
                    self.backlog.drained();
                    return false;
                }
                Some(Item::Record(record)) => self.record(&record, now),
                Some(Item::End { topic, partition, offset }) => self.end(&topic, partition, offset),
                Some(Item::Broken { topic, partition, out_of_range, truncated, reason, .. }) => {
                    let place = self.gathering.place(&topic, partition);
                    let why = match (truncated, out_of_range) {
                        (true, _) => Break::Truncated,
                        (false, true) => Break::OutOfRange,
                        (false, false) => Break::Error,
                    };
                    tracing::debug!(partition = %place, reason, "an event on the queue that is no record");
                    self.step(Event::Broken { place, why });
                }
                Some(Item::Other) => {}
            }
        }
        true
    }

    fn record(&mut self, record: &RawRecord<'_>, now: Instant) {
        let place = self.gathering.place(record.topic(), record.partition());
        match self.state.take(&place, record.offset()) {
            Taken::From(from) => {
                let builder = self.gathering.builder(&place, from);
                let (before, gap) = (builder.bytes(), builder.to() < record.offset());
                builder.push(
                    record.offset(),
                    record.timestamp(),
                    record.leader_epoch(),
                    record.key(),
                    record.value(),
                    record.headers(),
                );
                let bytes = builder.bytes() - before;
                self.gathering.pushed(bytes, now);
                self.holdings.touch();
                if gap {
                    self.meter(&place.topic).gap(Gap::Missing);
                }
            }
            Taken::Below => self.meter(&place.topic).gap(Gap::Below),
            Taken::Unwanted => self.meter(&place.topic).gap(Gap::Unwanted),
        }
    }

    fn end(&mut self, topic: &str, partition: i32, offset: i64) {
        let place = self.gathering.place(topic, partition);
        if let Taken::From(from) = self.state.pass(&place, offset) {
            self.gathering.builder(&place, from).pass_to(offset);
            self.meter(&place.topic).gap(Gap::Missing);
        }
    }

    /// Begins what can begin: the next run when idle, else the encoding of a full batch.
    fn begin(&mut self) {
        if !self.state.is_idle() {
            if self.gathering.is_full() && self.backlog.may_drain() {
                self.prepare();
            }
            return;
        }
        let now = Instant::now();
        self.next = self.backlog.pop();
        let parts = match &self.next {
            Some(prepared) => prepared.batch.parts().to_vec(),
            None if self.gathering.due().is_some_and(|due| due <= now) => self.gathering.close(now),
            None => return,
        };
        self.holdings.begin(&parts);
        self.step(Event::Gathered { parts });
        // What was prepared and not run belonged to partitions that have left.
        self.next = None;
        self.encode_ahead();
    }

    /// Closes a full batch while its predecessors run.
    fn prepare(&mut self) {
        let first = self.backlog.front_mut().is_none();
        self.backlog.push(Prepared::new(self.gathering.close(Instant::now())));
        if first {
            self.encode_ahead();
        }
    }

    /// Encodes the batch whose turn is next while its predecessor runs. Bad records show again, and are acted upon, when it runs.
    fn encode_ahead(&mut self) {
        if let (Some(prepared), Some(sink)) = (self.backlog.front_mut(), &self.sink) {
            let _ = prepared.encode::<S, K>(sink);
        }
    }

    fn publish(&mut self) {
        self.holdings.publish(&self.gathering, self.backlog.parts());
    }

    fn meter(&mut self, topic: &Arc<str>) -> &TopicMeter {
        let WriterSettings { group, policy, .. } = &self.settings;
        self.meters.entry(Arc::clone(topic)).or_insert_with(|| TopicMeter::new(group, topic, *policy))
    }

    fn step(&mut self, event: Event) {
        for effect in self.state.step(event) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::AcknowledgeHandOver { place, claim } => self.say(Said::HandedOver { place, claim }),
            Effect::AcknowledgeRelease { place, claim } => self.say(Said::Released { place, claim }),
            Effect::Discard { place } => self.discard(&place),
            Effect::Run { parts, steps } => self.take_off(parts, steps),
            Effect::Reopen => (self.connection, self.sink) = (None, None),
            Effect::Reread => (self.sink, self.reread) = (None, true),
            Effect::Withdraw => self.gate.withdraw(),
            Effect::BackOff { attempts } => self.wake_at = Some(Instant::now() + back_off(attempts)),
            Effect::Settle { steps } => self.settle(steps),
            Effect::Verdict(verdict) => self.verdict(verdict),
            Effect::Report(report) => self.report(report),
        }
    }

    fn say(&self, said: Said) {
        // The supervisor outlives its writers; when it is gone, nobody is left to tell.
        let _ = self.said.send((self.index, said));
    }

    fn fatal(&self, failure: Failure) {
        self.say(Said::Fatal(failure));
    }

    fn report(&mut self, report: Report) {
        match &report {
            Report::Stored { place, offset, records, .. } => {
                self.holdings.stored(place, *offset, *records);
            }
            Report::Gone { place, why: Gone::Sick, .. } => {
                self.say(Said::Sick { place: place.clone(), reason: self.sick.clone() });
            }
            _ => {}
        }
        self.say(Said::Report(report));
    }

    fn discard(&mut self, place: &TopicPartition) {
        self.gathering.discard(place);
        self.backlog.discard(place);
        self.holdings.discard(place);
    }

    fn take_off(&mut self, parts: Vec<Part>, steps: Vec<Step>) {
        self.holdings.run(&parts);
        // Whatever was in doubt before is settled, or left to others.
        (self.settle_token, self.doubtful) = (None, None);
        // What was prepared may be the batch behind a run that is tried again: that one stays.
        let ours = self.next.take_if(|next| next.batch.parts() == parts);
        let prepared = ours.unwrap_or_else(|| Prepared::new(parts));
        let mut flight = Flight {
            store: Arc::clone(&self.store),
            config: Arc::clone(&self.config),
            connection: self.connection.take(),
            prepared,
            steps,
            gate: Arc::new(Gate::default()),
            policy: self.settings.policy,
            reread: std::mem::take(&mut self.reread),
            call_max: self.settings.call_max,
            next_number: self.sinks_opened + 1,
        };
        self.sinks_opened += 1;
        self.gate = Arc::clone(&flight.gate);
        if let Some(sink) = &self.sink {
            // Errors show again in the flight, which gives them a place in the order of things.
            let _ = flight.prepared.encode::<S, K>(sink);
        }
        self.flight = Some(self.runtime.spawn(flight.fly()));
    }

    fn settle(&mut self, steps: Vec<Step>) {
        let token = *self.settle_token.get_or_insert_with(Uuid::new_v4);
        // The old connection is closed: its session is shut out by the settle.
        self.connection = None;
        let (store, call_max) = (Arc::clone(&self.store), self.settings.call_max);
        self.settle = Some(self.runtime.spawn(async move {
            match tokio::time::timeout(call_max, store.settle(&steps, token)).await {
                Ok(answer) => answer,
                Err(_) => Err(Failure::new(Class::Timeout, "settle: no answer in time")),
            }
        }));
    }

    fn settled(&mut self, answer: Result<Result<Vec<Settled>, Failure>, tokio::task::JoinError>) {
        self.settle = None;
        match answer {
            Ok(Ok(verdicts)) => {
                self.settle_token = None;
                self.step(Event::Settled { verdicts });
            }
            Ok(Err(failure)) => {
                self.ill(&failure);
                self.step(Event::SettleFailed);
            }
            Err(error) => {
                tracing::error!("the settle's task ended: {error}");
                self.step(Event::SettleFailed);
            }
        }
    }
}

async fn join<T>(handle: &mut Option<JoinHandle<T>>) -> Result<T, tokio::task::JoinError> {
    match handle {
        Some(handle) => handle.await,
        None => std::future::pending().await,
    }
}

fn back_off(attempts: u32) -> Duration {
    let full = BACK_OFF_FIRST.saturating_mul(1 << attempts.min(10)).min(BACK_OFF_MAX);
    full.mul_f64(rand::random_range(0.5..1.0))
}
