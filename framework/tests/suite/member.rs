//! A member of a group as the tests drive it: the real consumer thread, with the test in the supervisor's and the writers' place.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use oncesink::TopicPartition;
use oncesink::kafka::{
    ClaimNumber, Command, ConsumerHandle, ConsumerSettings, DrainQueue, ErrorCode, Event, Item, Start, Tenure,
};
use oncesink_test_support::kafka::Kafka;
use tokio::sync::mpsc::UnboundedReceiver;

/// Ten times what the slowest of these waits was seen to take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);

/// What came out of a writer's queue, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Record { partition: i32, offset: i64, value: Option<Vec<u8>>, epoch: Option<i32> },
    End { partition: i32, offset: i64 },
    Broken { partition: i32, code: ErrorCode, truncated: bool, out_of_range: bool, reason: String },
}

impl Seen {
    fn of(item: Item<'_>) -> Option<Self> {
        match item {
            Item::Record(record) => Some(Self::Record {
                partition: record.partition(),
                offset: record.offset(),
                value: record.value().map(Into::into),
                epoch: record.leader_epoch(),
            }),
            Item::End { partition, offset, .. } => Some(Self::End { partition, offset }),
            Item::Broken { partition, code, truncated, out_of_range, reason, .. } => {
                Some(Self::Broken { partition, code, truncated, out_of_range, reason })
            }
            Item::Other => None,
        }
    }

    /// Whether it is the end of this partition, at this offset.
    pub(crate) fn is_end(&self, of: i32, at: i64) -> bool {
        matches!(self, Self::End { partition, offset } if (*partition, *offset) == (of, at))
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken { .. })
    }
}

/// The offsets of a partition's records, in the order seen.
pub(crate) fn offsets(seen: &[Seen], of: i32) -> Vec<i64> {
    let offset = |seen: &Seen| match seen {
        Seen::Record { partition, offset, .. } if *partition == of => Some(*offset),
        _ => None,
    };
    seen.iter().filter_map(offset).collect()
}

/// One member.
pub(crate) struct Member {
    pub(crate) handle: ConsumerHandle,
    pub(crate) queues: Vec<DrainQueue>,
    pub(crate) topic: String,
    events: UnboundedReceiver<Event>,
    passed: Vec<Event>,
    tenures: HashMap<TopicPartition, Tenure>,
    claims: u64,
}

impl Member {
    /// Joins with one writer and quick heartbeats.
    pub(crate) fn join(kafka: &Kafka, topic: &str, group: &str) -> Self {
        Self::join_with(kafka.bootstrap(), topic, group, 1, |_| {})
    }

    pub(crate) fn join_with(
        bootstrap: &str,
        topic: &str,
        group: &str,
        writers: usize,
        tune: impl FnOnce(&mut ConsumerSettings),
    ) -> Self {
        let mut settings = ConsumerSettings::new(bootstrap, group, vec![topic.to_owned()]);
        // A join is noticed with the next heartbeat, which comes four times in a session's timeout.
        settings.session_timeout = Duration::from_secs(2);
        settings.properties.insert("reconnect.backoff.max.ms".into(), "500".into());
        tune(&mut settings);
        let (sender, events) = tokio::sync::mpsc::unbounded_channel();
        let (handle, queues) =
            oncesink::kafka::start(&settings, writers, sender).expect("starting a consumer");
        let topic = topic.to_owned();
        Self { handle, queues, topic, events, passed: Vec::new(), tenures: HashMap::new(), claims: 0 }
    }

    pub(crate) fn place(&self, partition: i32) -> TopicPartition {
        TopicPartition::new(self.topic.as_str(), partition)
    }

    pub(crate) fn places(&self, partitions: impl IntoIterator<Item = i32>) -> Vec<TopicPartition> {
        partitions.into_iter().map(|partition| self.place(partition)).collect()
    }

    /// The next event that is not for information only.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            let next = tokio::time::timeout(DEADLINE, self.events.recv()).await;
            let event = next.unwrap_or_else(|_| {
                panic!("no event, last turn {:?} ago; before: {:?}", self.handle.last_tick(), self.passed)
            });
            let event = event.expect("the thread ended without a word");
            self.passed.push(event.clone());
            match &event {
                Event::Error { .. } | Event::Joined => continue,
                Event::Assigned { places, tenure } => {
                    self.tenures.extend(places.iter().map(|place| (place.clone(), *tenure)));
                }
                _ => {}
            }
            return event;
        }
    }

    /// An event that has come already.
    pub(crate) fn ready(&mut self) -> Option<Event> {
        loop {
            let event = self.events.try_recv().ok()?;
            self.passed.push(event.clone());
            if event != Event::Joined {
                return Some(event);
            }
        }
    }

    /// What librdkafka said for information so far.
    pub(crate) fn errors(&mut self) -> Vec<(ErrorCode, String)> {
        while let Some(event) = self.ready() {
            assert!(matches!(event, Event::Error { .. }), "an event that was not waited for: {event:?}");
        }
        let error = |event: &Event| match event {
            Event::Error { code, reason } => Some((*code, reason.clone())),
            _ => None,
        };
        self.passed.iter().filter_map(error).collect()
    }

    /// Waits until the group has given this many partitions; a member that is alone may get them in several parts.
    pub(crate) async fn assigned(&mut self, count: usize) -> Vec<TopicPartition> {
        let mut all = Vec::new();
        while all.len() < count {
            match self.next().await {
                Event::Assigned { places, .. } => all.extend(places),
                other => panic!("expected an assignment, got {other:?}"),
            }
        }
        all.sort();
        all
    }

    pub(crate) async fn revoked(&mut self) -> Vec<TopicPartition> {
        match self.next().await {
            Event::Revoked(places) => places,
            other => panic!("expected a revoke, got {other:?}"),
        }
    }

    pub(crate) fn start(&mut self, partition: i32, offset: i64) -> Start {
        let place = self.place(partition);
        self.claims += 1;
        let tenure = self.tenures.get(&place).copied().expect("a start for a partition that was given");
        Start { place, tenure, claim: ClaimNumber(self.claims), offset, leader_epoch: None, writer: 0 }
    }

    /// Starts these partitions and waits until that is done.
    pub(crate) async fn begin(&mut self, starts: Vec<Start>) {
        let mut open: Vec<ClaimNumber> = starts.iter().map(|start| start.claim).collect();
        self.handle.send(Command::Assign(starts));
        while !open.is_empty() {
            match self.next().await {
                Event::Positioned { claim, .. } => open.retain(|waited| *waited != claim),
                other => panic!("expected a position, got {other:?}"),
            }
        }
    }

    pub(crate) async fn begin_at(&mut self, partition: i32, offset: i64) {
        let start = self.start(partition, offset);
        self.begin(vec![start]).await;
    }

    pub(crate) async fn unassign(&mut self, partitions: impl IntoIterator<Item = i32>, revoke: bool) {
        let places = self.places(partitions);
        self.answer(places, revoke).await;
    }

    pub(crate) async fn answer(&mut self, places: Vec<TopicPartition>, revoke: bool) {
        self.handle.send(Command::Unassign { places: places.clone(), revoke });
        assert_eq!(self.next().await, Event::Unassigned { places });
    }

    /// Whatever is in the queues now.
    pub(crate) fn drain(&mut self) -> Vec<Seen> {
        (0..self.queues.len()).flat_map(|writer| self.drain_writer(writer)).collect()
    }

    pub(crate) fn drain_writer(&mut self, writer: usize) -> Vec<Seen> {
        let queue = &mut self.queues[writer];
        let mut seen = Vec::new();
        while let Some(item) = queue.poll() {
            seen.extend(Seen::of(item));
        }
        seen
    }

    /// Drains all queues until something is seen of which `last` holds; gives all up to then.
    pub(crate) async fn read_until(&mut self, last: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let (begin, mut all) = (Instant::now(), Vec::new());
        loop {
            all.extend(self.drain());
            if all.iter().any(&last) {
                return all;
            }
            assert!(begin.elapsed() < DEADLINE, "not seen; seen: {}, last {:?}", all.len(), all.last());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Drops the queues, stops the thread and gives whether it closed its client in time.
    pub(crate) async fn stop(mut self) -> bool {
        self.queues.clear();
        self.handle.send(Command::Stop { deadline: Duration::from_secs(30) });
        loop {
            if let Event::Stopped { clean } = self.next().await {
                self.handle.join();
                return clean;
            }
        }
    }
}
