//! Sink kinds by name: typed where an author adds one, erased where a verb uses one.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use oncesink::config::{Config, ConfigError, KafkaSection, Kind, SinkSection};
use oncesink::plan::{Outlook, Preview};
use oncesink::store::operate::{Meaning, Moved, Preflight, Reset, StatusRow, VerbError};
use oncesink::{
    BadRecord, ConfigSource, Failure, Record, Sink, SinkError, SinkSettings, SinkTask, TopicPartition,
};

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

    /// Opens the sink for one topic in the same way, and says what records of it would become.
    async fn preview(
        &self,
        sink: &SinkSection,
        who: &str,
        topic: &str,
        sampled: &Sampled<'_>,
    ) -> Result<Previewed, SinkError>;
}

/// Some records of a topic, and the top-level fields that their values have.
pub(crate) struct Sampled<'r> {
    pub(crate) records: Vec<Record<'r>>,
    pub(crate) fields: Vec<String>,
}

/// What records of a topic become.
pub(crate) struct Previewed {
    pub(crate) target: String,
    /// None from a sink that cannot say.
    pub(crate) outlook: Option<Outlook>,
    /// In the order of the records: a row, a delete, nothing, or why it is bad.
    pub(crate) becomes: Vec<Result<Option<Preview>, BadRecord>>,
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
        let mut tx = store.begin(session, K::STATEMENTS).await?;
        let names: Vec<String> = topics.iter().map(|topic| topic.to_string()).collect();
        let opened = K::open(config, &names, &mut tx).await;
        let targets = opened
            .map(|opened| topics.iter().map(|topic| (Arc::clone(topic), opened.target(topic))).collect());
        store.rollback(tx).await;
        targets
    }

    async fn preview(
        &self,
        sink: &SinkSection,
        who: &str,
        topic: &str,
        sampled: &Sampled<'_>,
    ) -> Result<Previewed, SinkError> {
        let config = sink.sink_config::<K::Config>().map_err(|error| Failure::fatal(error.to_string()))?;
        let store = S::of(sink, &sink.group, who)?;
        let session = store.connect().await?;
        let mut tx = store.begin(session, K::STATEMENTS).await?;
        let opened = K::open(config, &[topic.to_owned()], &mut tx).await;
        store.rollback(tx).await;
        let opened = opened?;
        let fields: Vec<&str> = sampled.fields.iter().map(String::as_str).collect();
        let becomes = sampled.records.iter().map(|record| match opened.preview(record) {
            Ok(becomes) => Ok(Ok(becomes)),
            Err(SinkError::Bad(bad)) => match bad.into_iter().next() {
                Some(bad) => Ok(Err(bad)),
                None => Err(Failure::fatal("the connector calls a record bad and does not say why").into()),
            },
            Err(failed) => Err(failed),
        });
        Ok(Previewed {
            target: opened.target(topic),
            outlook: opened.outlook(topic, &fields),
            becomes: becomes.collect::<Result<_, SinkError>>()?,
        })
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
