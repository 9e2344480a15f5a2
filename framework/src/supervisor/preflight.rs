//! What must hold before anything is consumed: brokers and database answer, topics exist, the sink opens.
//!
//! What answers and refuses stops the start; what does not answer is waited for, with one line at the begin of the wait and one at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Secret;
use crate::error::{Class, Failure, SinkError};
use crate::kafka::{Monitor, TopicState};
use crate::position::StartPolicy;
use crate::record::TopicPartition;
use crate::sink::Sink;
use crate::store::{Identity, Starts, Store, TopicIdentity};
use crate::supervisor::claimer::{Topics, back_off};
use crate::supervisor::promise::{Promise, TopicIds};
use crate::supervisor::settings::SinkSettings;
use crate::supervisor::starts;
use crate::writer::{ConfigSource, open_on};

/// How often an unknown topic is asked for before it counts as missing: right after it was made, brokers differ about it for tens of milliseconds.
const UNKNOWN_CONFIRMED: u32 = 3;

/// How long one look may take; far above the limits that the server keeps.
const ATTEMPT_MAX: Duration = Duration::from_secs(60);

/// What the checks found out.
pub struct Checked {
    /// The group-less client.
    pub monitor: Monitor,
    /// Whose rows these will be.
    pub identity: Identity,
    /// Target of each topic.
    pub targets: BTreeMap<Arc<str>, Arc<str>>,
    /// Partition count of each topic that exists.
    pub partitions: BTreeMap<Arc<str>, i32>,
    /// With `until_end`: the last stable offsets at the start.
    pub ends: BTreeMap<TopicPartition, i64>,
    pub(crate) begun: Topics,
    pub(crate) unidentified: Topics,
}

/// Checks a sink's surroundings, in the order in which people can mend them. With `wait`, what does not answer is waited for.
///
/// # Errors
/// The first thing that a person must mend; without `wait` also what does not answer.
pub async fn check<S: Store, K: Sink<S>>(
    settings: &SinkSettings,
    store: &Arc<S>,
    config: &ConfigSource<K::Config>,
    wait: bool,
) -> Result<Checked, Failure> {
    let properties = settings.properties().map_err(Failure::fatal)?;
    let monitor = Monitor::new(&properties).map_err(|error| Failure::fatal(error.to_string()))?;
    let cluster_id = patiently(wait, "Kafka", || cluster_id(&monitor, settings)).await?;
    let Existing { partitions, unknown, ids } =
        patiently(wait, "Kafka", || existing(&monitor, &settings.topics)).await?;
    let names: BTreeSet<String> = settings.topics.iter().map(|topic| topic.to_string()).collect();
    let sink = patiently(wait, "the database", || opened::<S, K>(store, config, &names))
        .await
        .map_err(|failure| failure.of_sink(&settings.name))?;
    let offsets = patiently(wait, "the database", || store.verify()).await?;
    if wait {
        patiently(wait, "the database", || store.take_possession()).await?;
    }
    let identity = Identity {
        group: Arc::clone(&settings.group),
        sink: Arc::clone(&settings.name),
        cluster_id: cluster_id.into(),
        owner: Arc::clone(&settings.owner),
    };
    let tables: Vec<(Arc<str>, String)> =
        settings.topics.iter().map(|topic| (Arc::clone(topic), sink.target(topic))).collect();
    let names: Vec<&str> = tables.iter().map(|(_, table)| table.as_str()).collect();
    if wait {
        let promise = Promise {
            sink: &settings.name,
            group: &settings.group,
            offsets: &offsets,
            targets: &names,
            policy: settings.on_bad_record,
            ids,
        };
        tracing::info!("{promise}");
    }
    patiently(wait, "the database", || first_claims(settings, store, &sink, &partitions, &tables)).await?;
    let targets: BTreeMap<Arc<str>, Arc<str>> = tables
        .into_iter()
        .map(|(topic, table)| (topic, format!("{}: {table}", settings.name).into()))
        .collect();
    if wait {
        patiently(wait, "the database", || absent(settings, store, &identity, &unknown, &targets)).await?;
    }
    let ends = if settings.until_end {
        patiently(wait, "Kafka", || ends(&monitor, &partitions)).await?
    } else {
        BTreeMap::new()
    };
    Ok(Checked {
        monitor,
        identity,
        targets,
        partitions,
        ends,
        begun: Topics::default(),
        unidentified: Topics::default(),
    })
}

/// The first question to Kafka: here an address that is wrong shows.
async fn cluster_id(monitor: &Monitor, settings: &SinkSettings) -> Result<String, Failure> {
    monitor.cluster_id().await.map_err(|error| {
        let brokers = settings.kafka.get("bootstrap.servers").map(Secret::expose).unwrap_or_default();
        let message = error.with_remedy(brokers);
        Failure { message, ..starts::from_kafka(error) }
    })
}

async fn opened<S: Store, K: Sink<S>>(
    store: &Arc<S>,
    config: &ConfigSource<K::Config>,
    names: &BTreeSet<String>,
) -> Result<K, Failure> {
    let session = store.connect().await?;
    let (session, sink) = open_on::<S, K>(store, session, config()?, names).await?;
    drop(session);
    Ok(sink)
}

/// Records topics that do not exist yet with no partitions: once they are made, they are read from their beginning, whatever the policy.
async fn absent<S: Store>(
    settings: &SinkSettings,
    store: &Arc<S>,
    identity: &Identity,
    unknown: &[Arc<str>],
    targets: &BTreeMap<Arc<str>, Arc<str>>,
) -> Result<(), Failure> {
    for name in unknown {
        let target = targets.get(name).cloned().unwrap_or_else(|| Arc::clone(&settings.name));
        let topic = TopicIdentity { name: Arc::clone(name), id: "".into(), target };
        let starts = Starts { topic, policy: settings.start, first: Vec::new(), beginning: Vec::new() };
        store.register(identity, &starts).await?;
    }
    Ok(())
}

/// A first claim that does not begin at the end must not fill a target that has rows already: after a group was renamed, or another database was named,
/// everything would be there twice.
async fn first_claims<S: Store, K: Sink<S>>(
    settings: &SinkSettings,
    store: &Arc<S>,
    sink: &K,
    partitions: &BTreeMap<Arc<str>, i32>,
    tables: &[(Arc<str>, String)],
) -> Result<(), Failure> {
    if settings.into_rows || settings.start == StartPolicy::Latest {
        return Ok(());
    }
    let mut topics: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
    for (topic, table) in tables {
        topics.entry(table).or_default().push(Arc::clone(topic));
    }
    // Opened when a table has to be looked at, and dropped, which is a rollback.
    let mut looking = None;
    for (table, topics) in topics {
        if begun(store, partitions, &topics).await? {
            continue;
        }
        let Some(topic) = topics.first() else { continue };
        let tx = match &mut looking {
            Some(tx) => tx,
            None => looking.insert(store.begin(store.connect().await?).await?),
        };
        let holds = sink.holds_rows(tx, topic).await;
        let name = &settings.name;
        let holds = holds.map_err(|error| {
            let failure = match error {
                SinkError::Failed(failure) => failure,
                SinkError::Bad(_) => Failure::fatal("the connector calls records bad while it looks"),
            };
            failure.context(&format!(
                "sinks.{name}: whether {table} holds rows cannot be seen (GRANT SELECT on it, or write into_rows = \"accept\")"
            ))
        })?;
        if holds {
            return Err(Failure::fatal(format!(
                "sinks.{name}: {table} holds rows already, and group {:?} has no stored offset for it: reading from {} would write again what another group \
                 may have written. If the group or the database was renamed, name the old one. If the rows come from elsewhere, write \
                 sinks.{name}.into_rows = \"accept\"; to begin with new records only, sinks.{name}.start = \"latest\"",
                settings.group, settings.start
            )));
        }
    }
    Ok(())
}

/// Whether any of these topics was claimed before in this group, or taken over from the old recipe.
async fn begun<S: Store>(
    store: &Arc<S>,
    partitions: &BTreeMap<Arc<str>, i32>,
    topics: &[Arc<str>],
) -> Result<bool, Failure> {
    if store.recorded(topics).await?.iter().any(|count| count.is_some_and(|count| count > 0)) {
        return Ok(true);
    }
    let places: Vec<TopicPartition> = topics
        .iter()
        .flat_map(|topic| {
            let count = partitions.get(topic).copied().unwrap_or(0);
            (0..count).map(|partition| TopicPartition::new(Arc::clone(topic), partition))
        })
        .collect();
    Ok(!store.rows(&places).await?.is_empty())
}

/// The topics as they are at the start.
struct Existing {
    /// Those that exist, with their partition counts.
    partitions: BTreeMap<Arc<str>, i32>,
    /// Those that do not exist yet: they are waited for while the sink runs, and their partitions then begin at their beginning.
    unknown: Vec<Arc<str>>,
    ids: TopicIds,
}

async fn existing(monitor: &Monitor, topics: &[Arc<str>]) -> Result<Existing, Failure> {
    let mut asked = 0;
    loop {
        asked += 1;
        let facts = monitor.topics(topics).await.map_err(starts::from_kafka)?;
        let mut partitions = BTreeMap::new();
        let mut unknown = Vec::new();
        let mut ids = TopicIds::Told;
        for fact in facts {
            match fact.state {
                TopicState::Exists { id, partitions: count } => {
                    partitions.insert(fact.name, count);
                    if id.is_none() {
                        ids = TopicIds::Untold;
                    }
                }
                TopicState::Unknown => unknown.push(fact.name),
                TopicState::Error(reason) => {
                    return Err(Failure::new(Class::Transient, format!("topic {:?}: {reason}", &*fact.name)));
                }
            }
        }
        if unknown.is_empty() || asked >= UNKNOWN_CONFIRMED {
            for topic in &unknown {
                tracing::warn!(
                    "topic {topic:?} does not exist; it is waited for, and will be read from its beginning"
                );
            }
            return Ok(Existing { partitions, unknown, ids });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn ends(
    monitor: &Monitor,
    partitions: &BTreeMap<Arc<str>, i32>,
) -> Result<BTreeMap<TopicPartition, i64>, Failure> {
    let places: Vec<TopicPartition> = partitions
        .iter()
        .flat_map(|(topic, count)| {
            (0..*count).map(|partition| TopicPartition::new(Arc::clone(topic), partition))
        })
        .collect();
    let ends = starts::all_ends(monitor, &places).await?;
    Ok(places.into_iter().zip(ends).map(|(place, ends)| (place, ends.last_stable)).collect())
}

/// Tries until it answers; a refusal ends the wait at once.
async fn patiently<T, F>(wait: bool, whom: &str, mut attempt: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let began = Instant::now();
    let mut attempts = 0;
    loop {
        // A peer that takes the question and falls silent would be waited for without a word.
        let answer = tokio::time::timeout(ATTEMPT_MAX, attempt()).await.unwrap_or_else(|_| {
            Err(Failure::new(Class::Timeout, format!("no answer within {} s", ATTEMPT_MAX.as_secs())))
        });
        match answer {
            Ok(answer) => {
                if attempts > 0 {
                    tracing::info!("{whom} answers after {:.1} s", began.elapsed().as_secs_f64());
                }
                return Ok(answer);
            }
            Err(failure) if !wait || !answers_later(failure.class) => return Err(failure),
            Err(failure) => {
                attempts += 1;
                if attempts == 1 {
                    tracing::warn!("waiting for {whom}: {failure}");
                }
                tokio::time::sleep(back_off(attempts)).await;
            }
        }
    }
}

fn answers_later(class: Class) -> bool {
    matches!(class, Class::Transient | Class::Timeout | Class::WrongServer)
}
