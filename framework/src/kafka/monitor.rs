//! Questions about the cluster, asked on a client of its own without a group.
//!
//! A consumer's connection answers in order, so a question would wait behind a fetch that itself waits for records; here it takes milliseconds.
//! Invariants: each question blocks a thread of the pool for that purpose, never the caller, and no longer than its timeout; offsets are read with a named
//! isolation level. A client that keeps answering "unknown partition" is replaced: one was seen to do so for minutes after a broker had come back.

mod sample;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::KafkaError;

use super::consumer::ClientError;
use super::ffi::{self, AdminError, OffsetAnswer, OffsetQuery, Patience};
use super::trouble::LastWords;
use super::{ErrorCode, context, trouble};
use crate::record::TopicPartition;

const TIMEOUT: Duration = Duration::from_secs(5);
/// Topics are asked about at the broker that the metadata call the controller. When that one dies, a client that reads no topic learns of another only by the
/// periodic refresh, which by default comes after five minutes; until then no topic could be claimed and no re-creation be noticed.
const METADATA_EVERY_MS: &str = "2000";
/// How long a client may know no partition before it is replaced.
const UNKNOWN_LASTS: Duration = Duration::from_secs(10);

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MonitorError {
    /// No broker answered in time, or it could not; another time may do.
    #[error("Kafka does not answer: {0}")]
    Transient(String),
    /// They and we do not come to terms: TLS, certificate, user or password. Has the address, the cause and the key to mend.
    #[error("no connection to Kafka: {0}")]
    Authentication(String),
    /// The brokers know who we are and do not allow the question.
    #[error("Kafka does not allow it: {0}")]
    Authorization(String),
}

impl MonitorError {
    /// The error of the first question, with what helps; a refusal says that itself.
    pub fn with_remedy(&self, brokers: &str) -> String {
        match self {
            Self::Transient(_) => {
                format!("{self}. Check brokers = {brokers:?} and security.protocol in [kafka]")
            }
            Self::Authentication(_) | Self::Authorization(_) => self.to_string(),
        }
    }
}

/// What a topic is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFacts {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is there.
    pub state: TopicState,
}

/// Whether a topic is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicState {
    /// It is.
    Exists {
        /// Its id in base64. Never used again once the topic is deleted. None when the brokers tell none, as before Kafka 2.8; that they do not answer is
        /// never told in this way.
        id: Option<String>,
        /// How many partitions it has.
        partitions: i32,
    },
    /// The broker does not know it. So it says for some tens of milliseconds after a topic was made, too: no proof of deletion.
    Unknown,
    /// It could not be asked about, or we may not.
    Error(String),
}

/// The ends of a partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The first offset that is still there.
    pub log_start: i64,
    /// The offset that the next record gets, records of open transactions counted.
    pub high_watermark: i64,
    /// Where the first open transaction begins, or the high watermark: a consumer gets no further.
    pub last_stable: i64,
    /// Leader epoch of the high watermark.
    pub leader_epoch: Option<i32>,
}

/// What a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Its id.
    pub id: String,
    /// How many brokers are up.
    pub brokers: usize,
}

/// Keeps what librdkafka says about connections, for the error of the question that then fails; not a line of it is logged before that.
#[derive(Debug, Default)]
struct Listener {
    words: LastWords,
    /// Whether a question was ever answered: from then on every question is worth waiting for.
    answered: AtomicBool,
}

impl ClientContext for Listener {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if context::is_connection(facility) {
            self.words.note(message);
            tracing::debug!(target: "librdkafka", facility, "{message}");
        } else {
            context::log(level, facility, message);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() != Some(ErrorCode::AllBrokersDown) {
            self.words.note(reason);
        }
    }
}

impl ConsumerContext for Listener {}

impl Patience for Listener {
    fn hopeless(&self, asked: Instant) -> bool {
        !self.answered.load(Ordering::Relaxed) && self.words.hopeless(asked)
    }
}

type Client = BaseConsumer<Listener>;

struct Inner {
    config: ClientConfig,
    client: Mutex<Arc<Client>>,
    unknown_since: Mutex<Option<Instant>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The monitor; cheap to clone.
#[derive(Clone)]
pub struct Monitor(Arc<Inner>);

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Monitor")
    }
}

impl Monitor {
    /// A monitor with librdkafka's properties; what is about groups is left out. Nothing is contacted yet.
    ///
    /// # Errors
    /// When librdkafka refuses the properties.
    pub fn new(properties: &BTreeMap<String, String>) -> Result<Self, ClientError> {
        let mut config = ClientConfig::new();
        config.set("client.id", "oncesink");
        for (key, value) in properties {
            config.set(key, value);
        }
        for key in super::FORCED_PROPERTIES {
            config.remove(key);
        }
        config.set("allow.auto.create.topics", "false");
        config.set("topic.metadata.refresh.interval.ms", METADATA_EVERY_MS);
        // Some of what a broker's closing of a connection may mean is said at this level only.
        config.set_log_level(RDKafkaLogLevel::Info);
        // Before librdkafka looks, which names neither file nor cause.
        if let Some(flaw) = trouble::flaw_of_files(&config) {
            return Err(ClientError(flaw));
        }
        let client = Mutex::new(Arc::new(create(&config)?));
        Ok(Self(Arc::new(Inner { config, client, unknown_since: Mutex::new(None) })))
    }

    /// The cluster's id.
    ///
    /// # Errors
    /// As [`MonitorError`] says.
    pub async fn cluster_id(&self) -> Result<String, MonitorError> {
        self.cluster().await.map(|cluster| cluster.id)
    }

    /// The cluster's id and size.
    ///
    /// # Errors
    /// As [`MonitorError`] says.
    pub async fn cluster(&self) -> Result<ClusterFacts, MonitorError> {
        let (id, brokers) = self.ask(|client| ffi::describe_cluster(client, TIMEOUT)).await?;
        Ok(ClusterFacts { id, brokers })
    }

    /// What these topics are, in their order, in one request.
    ///
    /// # Errors
    /// As [`MonitorError`] says, when there is no answer at all.
    pub async fn topics(&self, names: &[Arc<str>]) -> Result<Vec<TopicFacts>, MonitorError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let asked = names.to_vec();
        let answers = self
            .ask(move |client| {
                let names: Vec<&str> = asked.iter().map(|name| &**name).collect();
                ffi::describe_topics(client, &names, TIMEOUT)
            })
            .await?;
        let mut found: HashMap<String, Result<(Option<String>, i32), AdminError>> =
            answers.into_iter().map(|answer| (answer.name, answer.found)).collect();
        Ok(names.iter().map(|name| topic_facts(name, found.remove(&**name))).collect())
    }

    /// The ends of these partitions, in their order.
    ///
    /// # Errors
    /// As [`MonitorError`] says, when there is no answer at all; for a single partition, the reason.
    pub async fn ends(&self, places: &[TopicPartition]) -> Result<Vec<Result<Ends, String>>, MonitorError> {
        let queries = [OffsetQuery::LogStart, OffsetQuery::HighWatermark, OffsetQuery::LastStable];
        let answers = self.offsets(places, queries.to_vec()).await?;
        Ok(places.iter().map(|place| ends_of(place, &answers)).collect())
    }

    /// The offset of the first record at or after this time (milliseconds since the epoch), records of open transactions counted; none when there is no
    /// record that late. In the order of the partitions.
    ///
    /// # Errors
    /// As [`MonitorError`] says, also when it fails for a single partition: a start must not be guessed.
    pub async fn at_time(
        &self,
        places: &[TopicPartition],
        timestamp_ms: i64,
    ) -> Result<Vec<Option<i64>>, MonitorError> {
        let answers = self.offsets(places, vec![OffsetQuery::AtTime(timestamp_ms.max(0))]).await?;
        let offset_of = |place: &TopicPartition| {
            let (offset, _) = answers
                .first()
                .and_then(|found| found.get(place))
                .cloned()
                .unwrap_or_else(missing)
                .map_err(|error| {
                    MonitorError::from(AdminError { reason: format!("{place}: {}", error.reason), ..error })
                })?;
            Ok((offset >= 0).then_some(offset))
        };
        places.iter().map(offset_of).collect()
    }

    async fn offsets(
        &self,
        places: &[TopicPartition],
        queries: Vec<OffsetQuery>,
    ) -> Result<Vec<Found>, MonitorError> {
        if places.is_empty() {
            return Ok(queries.iter().map(|_| Found::new()).collect());
        }
        let asked = places.to_vec();
        let answers = self.ask(move |client| ffi::list_offsets(client, &asked, &queries, TIMEOUT)).await?;
        self.note_unknown(answers.iter().flatten().any(is_unknown));
        let by_place = |list: Vec<OffsetAnswer>| list.into_iter().map(|a| (a.place, a.found)).collect();
        Ok(answers.into_iter().map(by_place).collect())
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, MonitorError> {
        let inner = Arc::clone(&self.0);
        let asked = tokio::task::spawn_blocking(move || inner.ask(question));
        asked.await.unwrap_or_else(|_| Err(MonitorError::Transient("the question was abandoned".into())))
    }

    /// Replaces the client when it has known no partition for long.
    fn note_unknown(&self, unknown: bool) {
        let mut since = locked(&self.0.unknown_since);
        match (unknown, *since) {
            (false, _) => *since = None,
            (true, None) => *since = Some(Instant::now()),
            (true, Some(first)) if first.elapsed() >= UNKNOWN_LASTS => {
                *since = None;
                self.0.replace_client();
            }
            (true, Some(_)) => {}
        }
    }
}

fn create(config: &ClientConfig) -> Result<Client, ClientError> {
    config.create_with_context(Listener::default()).map_err(|error| ClientError::new(&error))
}

impl Inner {
    fn ask<T>(&self, question: impl FnOnce(&Client) -> Result<T, AdminError>) -> Result<T, MonitorError> {
        let client = Arc::clone(&locked(&self.client));
        let answer = question(&client);
        ffi::serve(&client);
        let listener = rdkafka::consumer::Consumer::context(&*client);
        answer
            .inspect(|_| {
                listener.answered.store(true, Ordering::Relaxed);
                listener.words.forget();
            })
            .map_err(|error| self.explained(MonitorError::from(error), listener))
    }

    /// A question without an answer, by what was said about the connections meanwhile.
    fn explained(&self, error: MonitorError, listener: &Listener) -> MonitorError {
        let MonitorError::Transient(said) = &error else { return error };
        let words = listener.words.get();
        // While a sink runs, brokers are waited for whatever they say, and asked every second.
        let refusal = if listener.answered.load(Ordering::Relaxed) {
            None
        } else {
            trouble::refusal(words.as_deref(), &self.config)
        };
        match refusal {
            Some(refusal) => MonitorError::Authentication(refusal),
            None => MonitorError::Transient(trouble::plain(words.as_ref().unwrap_or(said)).to_owned()),
        }
    }

    fn replace_client(&self) {
        match create(&self.config) {
            Ok(fresh) => {
                tracing::warn!("the monitor knows no partition, its client is replaced");
                let old = std::mem::replace(&mut *locked(&self.client), Arc::new(fresh));
                // Destroying a client may wait for its connections.
                std::thread::spawn(move || drop(old));
            }
            Err(error) => tracing::warn!(%error, "the monitor's client could not be replaced"),
        }
    }
}

type Found = HashMap<TopicPartition, Result<(i64, Option<i32>), AdminError>>;

fn missing<T>() -> Result<T, AdminError> {
    Err(AdminError { code: ErrorCode::Fail, reason: "the answer leaves it out".into() })
}

fn is_unknown(answer: &OffsetAnswer) -> bool {
    use ErrorCode::{UnknownPartition, UnknownTopic, UnknownTopicOrPartition};
    let code = answer.found.as_ref().err().map(|error| error.code);
    matches!(code, Some(UnknownPartition | UnknownTopic | UnknownTopicOrPartition))
}

fn topic_facts(name: &Arc<str>, found: Option<Result<(Option<String>, i32), AdminError>>) -> TopicFacts {
    let state = match found.unwrap_or_else(missing) {
        Ok((id, partitions)) => TopicState::Exists { id, partitions },
        Err(AdminError { code: ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopic, .. }) => {
            TopicState::Unknown
        }
        Err(error) => TopicState::Error(error.reason),
    };
    TopicFacts { name: Arc::clone(name), state }
}

fn ends_of(place: &TopicPartition, answers: &[Found]) -> Result<Ends, String> {
    let of = |index: usize| {
        let found = answers.get(index).and_then(|found| found.get(place)).cloned();
        found.unwrap_or_else(missing).map_err(|error| error.reason)
    };
    let ((log_start, _), (high_watermark, leader_epoch), (last_stable, _)) = (of(0)?, of(1)?, of(2)?);
    Ok(Ends { log_start, high_watermark, last_stable, leader_epoch })
}

impl From<AdminError> for MonitorError {
    fn from(error: AdminError) -> Self {
        use ErrorCode::{ClusterAuthorizationFailed, GroupAuthorizationFailed, TopicAuthorizationFailed};
        match error.code {
            ClusterAuthorizationFailed | GroupAuthorizationFailed | TopicAuthorizationFailed => {
                Self::Authorization(error.reason)
            }
            _ => Self::Transient(error.reason),
        }
    }
}
