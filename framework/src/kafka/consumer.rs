//! The consumer thread: it turns rebalances into events, carries out commands, and never handles a record.
//!
//! Invariants: the group's callbacks are answered here and nowhere else; the thread sleeps on one descriptor, which librdkafka and the senders of
//! commands write to, so that it neither spins nor lets a command wait; no call it makes may block for more than some milliseconds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use tokio::sync::mpsc::UnboundedSender;

use super::context::{Context, Note};
use super::events::{Command, Event, FatalKind};
use super::ffi::{ConsumerQueue, DrainQueue, EventFd, SharedClient, SharedQueue};
use super::membership::{Action, Input, Membership};
use super::settings::ConsumerSettings;
use super::{ErrorCode, starts};
use crate::record::TopicPartition;

/// How long the thread sleeps at most; the wake-ups do the work, this is against the unknown.
const TURN: Duration = Duration::from_millis(100);
/// For a thread whose handle was dropped without a stop.
const ABANDONED: Duration = Duration::from_secs(30);

/// A client that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the Kafka client cannot be made: {0}")]
pub struct ClientError(pub(super) String);

impl ClientError {
    pub(super) fn new(cause: &dyn std::fmt::Display) -> Self {
        Self(cause.to_string())
    }
}

/// The way to the consumer thread. Dropping it stops the thread, but does not wait.
#[derive(Debug)]
pub struct ConsumerHandle {
    commands: mpsc::Sender<Command>,
    wake: Arc<EventFd>,
    clock: Arc<Clock>,
    thread: Option<JoinHandle<()>>,
}

impl ConsumerHandle {
    /// Hands a command to the thread and wakes it. A thread that has ended takes no more: [`Event::Stopped`] said so.
    pub fn send(&self, command: Command) {
        let _ = self.commands.send(command);
        self.wake.notify();
    }

    /// Time since the thread's last turn; more than a second means that it hangs.
    pub fn last_tick(&self) -> Duration {
        self.clock.since_last()
    }

    /// Waits for the thread to end; blocks, and for ever unless it was told to stop.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic was reported as a fatal event.
            let _ = thread.join();
        }
    }
}

impl Drop for ConsumerHandle {
    fn drop(&mut self) {
        self.send(Command::Stop { deadline: ABANDONED });
    }
}

/// When the thread last took a turn.
#[derive(Debug)]
struct Clock {
    begin: Instant,
    last: AtomicU64,
}

impl Clock {
    fn tick(&self) {
        self.last.store(self.begin.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn since_last(&self) -> Duration {
        self.begin.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

/// Makes the client, subscribes unless the list of topics is still empty, and starts its thread; gives one drain queue for each writer. Returns before the broker was asked anything: whether
/// it can be reached is told by events.
///
/// # Errors
/// When librdkafka refuses the settings, or the system gives no thread or descriptor.
pub fn start(
    settings: &ConsumerSettings,
    writers: usize,
    events: UnboundedSender<Event>,
) -> Result<(ConsumerHandle, Vec<DrainQueue>), ClientError> {
    let client: BaseConsumer<Context> = settings
        .client_config()
        .create_with_context(Context::default())
        .map_err(|error| ClientError::new(&error))?;
    let client: SharedClient = Arc::new(std::mem::ManuallyDrop::new(client));
    let wake = Arc::new(EventFd::new().map_err(|error| ClientError::new(&error))?);
    let queue = ConsumerQueue::of(&client, Arc::clone(&wake))
        .ok_or_else(|| ClientError("the consumer has no queue".into()))?;
    let queues: Result<Vec<_>, _> = (0..writers).map(|_| SharedQueue::new(&client).map(Arc::new)).collect();
    let queues = queues.map_err(|error| ClientError::new(&error))?;
    let drains = queues.iter().map(|shared| DrainQueue::new(Arc::clone(shared), Arc::clone(&wake))).collect();
    if !settings.topics.is_empty() {
        subscribe(&client, &settings.topics).map_err(|error| ClientError::new(&error))?;
    }

    let (commands, received) = mpsc::channel();
    let clock = Arc::new(Clock { begin: Instant::now(), last: AtomicU64::new(0) });
    let membership = Membership::new(settings.revoke_deadline);
    let wakeup = Arc::clone(&wake);
    let turner = Turner {
        client,
        queue,
        queues,
        wake: wakeup,
        clock: Arc::clone(&clock),
        membership,
        commands: received,
        events,
    };
    let thread = std::thread::Builder::new()
        .name("oncesink-consumer".into())
        .spawn(move || run(turner))
        .map_err(|error| ClientError::new(&error))?;
    Ok((ConsumerHandle { commands, wake, clock, thread: Some(thread) }, drains))
}

fn run(turner: Turner) {
    let events = turner.events.clone();
    // The client is never dropped by unwinding, so a panic leaves it behind, whole and unused.
    if catch_unwind(AssertUnwindSafe(|| turner.run())).is_err() {
        let kind = FatalKind::Other("panic".into());
        let _ = events.send(Event::Fatal { kind, reason: "the consumer thread panicked".into() });
        let _ = events.send(Event::Stopped { clean: false });
    }
}

/// Why the loop ends.
pub(super) enum End {
    Stop(Duration),
    Fatal,
}

/// All that the thread has.
pub(super) struct Turner {
    pub(super) client: SharedClient,
    pub(super) queue: ConsumerQueue,
    pub(super) queues: Vec<Arc<SharedQueue>>,
    pub(super) wake: Arc<EventFd>,
    clock: Arc<Clock>,
    membership: Membership,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) events: UnboundedSender<Event>,
}

impl Turner {
    fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn() {
                break end;
            }
            self.sleep();
        };
        match end {
            End::Stop(deadline) => self.close(Instant::now() + deadline),
            // The writers see the fatal event and leave; a stop may shorten the wait for them.
            End::Fatal => self.close(Instant::now() + ABANDONED),
        }
    }

    fn turn(&mut self) -> Result<(), End> {
        self.clock.tick();
        self.serve()?;
        while let Some(command) = self.next_command()? {
            let input = Input::from_command(command).map_err(End::Stop)?;
            self.step(input);
            // A rebalance that arrived meanwhile is looked at before the next command acts on the state before it.
            self.serve()?;
        }
        self.step(Input::Tick);
        Ok(())
    }

    fn next_command(&self) -> Result<Option<Command>, End> {
        match self.commands.try_recv() {
            Ok(command) => Ok(Some(command)),
            Err(mpsc::TryRecvError::Empty) => Ok(None),
            Err(mpsc::TryRecvError::Disconnected) => Err(End::Stop(ABANDONED)),
        }
    }

    pub(super) fn sleep(&self) {
        let until =
            self.membership.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.wake.wait(until.unwrap_or(TURN).min(TURN));
        self.wake.clear();
        self.clock.tick();
    }

    /// Serves the consumer's queue until it is empty.
    fn serve(&mut self) -> Result<(), End> {
        loop {
            let polled = self.poll();
            while let Some(note) = self.client.context().take() {
                self.handle(note);
            }
            if let Some((code, reason)) = self.client.client().fatal_error() {
                self.send(Event::Fatal { kind: fatal_kind(code), reason });
                return Err(End::Fatal);
            }
            // A poll that served a callback gives nothing, too.
            if !polled && self.queue.is_empty() {
                return Ok(());
            }
        }
    }

    /// One poll of the consumer's queue; gives whether it yielded anything.
    pub(super) fn poll(&self) -> bool {
        match self.client.poll(Duration::ZERO) {
            None => false,
            // Errors were noted by the context, with their reasons.
            Some(Err(_)) => true,
            Some(Ok(message)) => {
                // Every partition is forwarded to a writer, so this must not happen. The writer would take what is missing for an ordinary gap.
                use rdkafka::Message as _;
                let place = TopicPartition::new(message.topic(), message.partition());
                let offset = message.offset();
                tracing::error!("{place}@{offset}: a record outside the writers' queues");
                self.send(Event::Stray { place, offset });
                true
            }
        }
    }

    fn handle(&mut self, note: Note) {
        match note {
            Note::Assigned(places) => self.step(Input::Assigned(places)),
            Note::Revoked(places) => self.step(Input::Revoked(places)),
            Note::Lost(places) => self.step(Input::Lost(places)),
            Note::Error { code, reason } => self.send(Event::Error { code, reason }),
            Note::Panicked => {
                // The list is unknown, so everything goes; the next assignment begins anew.
                let places = starts::assigned(&self.client);
                self.step(Input::Lost(places));
            }
        }
    }

    fn step(&mut self, input: Input) {
        for action in self.membership.step(input, Instant::now()) {
            self.act(action);
        }
    }

    fn act(&self, action: Action) {
        match action {
            Action::AnswerAssign => starts::answer_assign(&self.client),
            Action::AnswerRevoke(places) => starts::answer_revoke(&self.client, &places),
            Action::Unassign(places) => starts::unassign(&self.client, &places),
            Action::Assign(list) => {
                for answer in starts::assign(&self.client, &self.queues, list) {
                    self.send(answer);
                }
            }
            Action::Subscribe(topics) => {
                if let Err(error) = subscribe(&self.client, &topics) {
                    tracing::warn!(%error, "the subscription could not be changed");
                }
            }
            Action::Send(event) => self.send(event),
        }
    }

    /// The supervisor may be gone already; then nobody needs to know.
    pub(super) fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// Names only, so that the group consumes what we know and nothing else.
fn subscribe(client: &SharedClient, topics: &[String]) -> KafkaResult<()> {
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    client.subscribe(&topics)
}

fn fatal_kind(code: ErrorCode) -> FatalKind {
    match code {
        ErrorCode::FencedInstanceId => FatalKind::FencedInstanceId,
        ErrorCode::UnreleasedInstanceId => FatalKind::UnreleasedInstanceId,
        other => FatalKind::Other(format!("{other:?}")),
    }
}
