//! Sink kinds by name: typed where an author adds one, erased where a verb uses one.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use oncesink::config::{Config, ConfigError, KafkaSection, Kind, SinkSection};
use oncesink::store::operate::{Meaning, Moved, Preflight, Reset, StatusRow, VerbError};
use oncesink::{ConfigSource, Failure, Sink, SinkError, SinkSettings, SinkTask, TopicPartition};

use crate::exit::Failed;
use crate::operated::Operated;

/// The kinds in the order in which they were added.
#[derive(Default)]
pub(crate) struct Registry(Vec<Box<dyn AnyKind>>);

impl Registry {
    pub(crate) fn add<S: Operated, K: Sink<S>>(&mut self) {
        self.0.retain(|kind| kind.kind().name != K::KIND);
        self.0.push(Box::new(Typed::<S, K>(PhantomData)));
    }

    /// For the reading of the file.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.0.iter().map(|kind| kind.kind()).collect()
    }

    /// Reads each sink's own keys, so that their mistakes are found before anything is contacted.
    pub(crate) fn check(&self, config: &Config) -> Result<(), Failed> {
        let mut lines = Vec::new();
        for sink in &config.sinks {
            if let Err(error) = self.of(sink)?.check_keys(sink) {
                lines.extend(error.lines());
            }
        }
        if lines.is_empty() { Ok(()) } else { Err(Failed::configuration(lines.join("\n"))) }
    }

    /// The kind of a sink.
    pub(crate) fn of(&self, sink: &SinkSection) -> Result<&dyn AnyKind, Failed> {
        self.0.iter().find(|kind| kind.kind().name == sink.target.kind).map(AsRef::as_ref).ok_or_else(|| {
            let known: Vec<&str> = self.0.iter().map(|kind| kind.kind().name).collect();
            Failed::configuration(format!(
                "sinks.{}.target.kind: unknown kind {:?}; known here: {}",
                sink.name,
                sink.target.kind,
                known.join(", ")
            ))
        })
    }
}

/// A kind without its types.
#[async_trait]
pub(crate) trait AnyKind: Send + Sync {
    fn kind(&self) -> Kind;

    fn check_keys(&self, sink: &SinkSection) -> Result<(), ConfigError>;

    /// The store of this sink, or of another group in the same database.
    fn store(&self, sink: &SinkSection, group: &str, who: &str) -> Result<Box<dyn AnyStore>, Failure>;

    /// The sink, ready to run.
    fn task(
        &self,
        kafka: &KafkaSection,
        sink: &SinkSection,
        who: &str,
        until_end: bool,
    ) -> Result<SinkTask, Failure>;

    /// What `run` does before it consumes anything, without waiting for what does not answer.
    async fn rehearse(&self, kafka: &KafkaSection, sink: &SinkSection, who: &str) -> Result<(), Failure>;

    /// Opens the sink in a transaction that is rolled back, and says where each of these topics' rows would go.
    async fn targets(
        &self,
        sink: &SinkSection,
        topics: &[Arc<str>],
        who: &str,
    ) -> Result<Vec<(Arc<str>, String)>, SinkError>;
}

struct Typed<S, K>(PhantomData<fn() -> (S, K)>);

#[async_trait]
impl<S: Operated, K: Sink<S>> AnyKind for Typed<S, K> {
    fn kind(&self) -> Kind {
        Kind {
            name: K::KIND,
            schemes: S::SCHEMES,
            example: S::EXAMPLE,
            check_url: S::check_url,
            one_writer: S::ONE_WRITER,
        }
    }

    fn check_keys(&self, sink: &SinkSection) -> Result<(), ConfigError> {
        sink.sink_config::<K::Config>().map(drop)
    }

    fn store(&self, sink: &SinkSection, group: &str, who: &str) -> Result<Box<dyn AnyStore>, Failure> {
        Ok(Box::new(Erased(S::of(sink, group, who)?)))
    }

    fn task(
        &self,
        kafka: &KafkaSection,
        sink: &SinkSection,
        who: &str,
        until_end: bool,
    ) -> Result<SinkTask, Failure> {
        let store = Arc::new(S::of(sink, &sink.group, who)?);
        let mut settings = SinkSettings::new(kafka, sink);
        settings.until_end = until_end;
        Ok(SinkTask::new::<S, K>(settings, store, config_of::<S, K>(sink)))
    }

    async fn rehearse(&self, kafka: &KafkaSection, sink: &SinkSection, who: &str) -> Result<(), Failure> {
        let store = Arc::new(S::of(sink, &sink.group, who)?);
        let settings = SinkSettings::new(kafka, sink);
        oncesink::check::<S, K>(&settings, &store, &config_of::<S, K>(sink), false).await.map(drop)
    }

    async fn targets(
        &self,
        sink: &SinkSection,
        topics: &[Arc<str>],
        who: &str,
    ) -> Result<Vec<(Arc<str>, String)>, SinkError> {
        let config = sink.sink_config::<K::Config>().map_err(|error| Failure::fatal(error.to_string()))?;
        let store = S::of(sink, &sink.group, who)?;
        let session = store.connect().await?;
        let mut tx = store.begin(session).await?;
        let names: Vec<String> = topics.iter().map(|topic| topic.to_string()).collect();
        let opened = K::open(config, &names, &mut tx).await;
        let targets = opened
            .map(|opened| topics.iter().map(|topic| (Arc::clone(topic), opened.target(topic))).collect());
        store.rollback(tx).await;
        targets
    }
}

/// The sink's own keys, read anew for each connection.
fn config_of<S: Operated, K: Sink<S>>(sink: &SinkSection) -> ConfigSource<K::Config> {
    let section = sink.clone();
    Arc::new(move || section.sink_config::<K::Config>().map_err(|error| Failure::fatal(error.to_string())))
}

/// A store without its types; the methods are those of [`Operated`].
#[async_trait]
pub(crate) trait AnyStore: Send + Sync {
    async fn preflight(&self) -> Result<Preflight, Failure>;
    async fn migrate(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure>;
    async fn migration_text(&self) -> Result<String, Failure>;
    async fn status(&self, group: &str) -> Result<Vec<StatusRow>, Failure>;
    async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError>;
    async fn resume(&self, place: &TopicPartition, reason: Option<&str>) -> Result<Moved, VerbError>;
    async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError>;
}

struct Erased<S>(S);

#[async_trait]
impl<S: Operated> AnyStore for Erased<S> {
    async fn preflight(&self) -> Result<Preflight, Failure> {
        self.0.preflight().await
    }

    async fn migrate(&self, adopt: Option<Meaning>) -> Result<Vec<String>, Failure> {
        self.0.migrate(adopt).await
    }

    async fn migration_text(&self) -> Result<String, Failure> {
        self.0.migration_text().await
    }

    async fn status(&self, group: &str) -> Result<Vec<StatusRow>, Failure> {
        self.0.status(group).await
    }

    async fn skip(&self, place: &TopicPartition, expect: i64, reason: &str) -> Result<Moved, VerbError> {
        self.0.skip(place, expect, reason).await
    }

    async fn resume(&self, place: &TopicPartition, reason: Option<&str>) -> Result<Moved, VerbError> {
        self.0.resume(place, reason).await
    }

    async fn reset(&self, reset: &Reset<'_>) -> Result<Vec<Moved>, VerbError> {
        self.0.reset(reset).await
    }
}
