//! What must hold before anything is consumed: brokers and database answer, topics exist, the sink opens.
//!
//! What answers and refuses stops the start; what does not answer is waited for, with one line at the begin of the wait and one at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Secret;
use crate::error::{Class, Failure, SinkError};
use crate::kafka::{Monitor, TopicFacts, TopicState};
use crate::position::StartPolicy;
use crate::record::TopicPartition;
use crate::sink::Sink;
use crate::store::{Identity, Starts, Store, TopicIdentity};
use crate::supervisor::claimer::{TopicSet, back_off};
use crate::supervisor::promise::{Promise, TopicIds};
use crate::supervisor::reading::Reading;
use crate::supervisor::settings::SinkSettings;
use crate::supervisor::starts;
use crate::topics::Topics;
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
    /// Target of each topic, those that match a pattern now among them.
    pub targets: BTreeMap<Arc<str>, Arc<str>>,
    /// Partition count of each topic that exists.
    pub partitions: BTreeMap<Arc<str>, i32>,
    /// With `until_end`: the last stable offsets at the start.
    pub ends: BTreeMap<TopicPartition, i64>,
    pub(crate) begun: TopicSet,
    pub(crate) unidentified: TopicSet,
    pub(crate) reading: Reading,
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
    let topics = settings.selection()?;
    let source = settings.clone();
    let monitor = Monitor::renewing(Arc::new(move || source.properties()))
        .map_err(|error| Failure::fatal(error.to_string()))?;
    let cluster_id = patiently(wait, "Kafka", || cluster_id(&monitor, settings)).await?;
    let Existing { mut partitions, unknown, ids } =
        patiently(wait, "Kafka", || existing(&monitor, topics.names())).await?;
    let matching =
        patiently(wait, "Kafka", || async { monitor.matching(&topics).await.map_err(starts::from_kafka) })
            .await?;
    partitions.extend(matching.iter().cloned());
    let named = topics.names().iter();
    let names: BTreeSet<String> =
        named.chain(matching.iter().map(|(name, _)| name)).map(|name| name.to_string()).collect();
    let opened = patiently(wait, "the database", || opened::<S, K>(settings, store, config, &names)).await?;
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
    if wait && !opened.tables.is_empty() {
        let names: Vec<&str> = opened.tables.iter().map(|(_, table)| table.as_str()).collect();
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
    patiently(wait, "the database", || async {
        let past = claimed_from_the_past(settings, store, &topics, &opened.tables).await?;
        first_claims(settings, store, opened.sink.as_ref(), &partitions, &opened.tables, &past).await
    })
    .await?;
    let targets: BTreeMap<Arc<str>, Arc<str>> =
        opened.tables.into_iter().map(|(topic, table)| (topic, settings.with_name(&table))).collect();
    if wait {
        patiently(wait, "the database", || absent(settings, store, &identity, &unknown, &targets)).await?;
        let first = First { settings, store, monitor: &monitor, identity: &identity, targets: &targets };
        patiently(wait, "the database", || first.matches(&topics, &matching)).await?;
    }
    let ends = if settings.until_end {
        patiently(wait, "Kafka", || ends(&monitor, &partitions)).await?
    } else {
        BTreeMap::new()
    };
    let reading = Reading::new(targets.clone());
    Ok(Checked {
        monitor,
        identity,
        targets,
        partitions,
        ends,
        begun: TopicSet::default(),
        unidentified: TopicSet::default(),
        reading,
    })
}

/// Opens the sink for topics that have come, which begin at their beginning whatever the policy says, and looks whether their targets may be filled; gives the target
/// of each.
pub(crate) async fn look_at_targets<S: Store, K: Sink<S>>(
    settings: &SinkSettings,
    store: &Arc<S>,
    config: &ConfigSource<K::Config>,
    partitions: &BTreeMap<Arc<str>, i32>,
    reading: &Reading,
) -> Result<Vec<(Arc<str>, String)>, Failure> {
    let names: BTreeSet<String> = partitions.keys().map(|name| name.to_string()).collect();
    let opened = opened::<S, K>(settings, store, config, &names).await?;
    // A table that a topic of this sink fills already may have rows.
    let known = reading.topics().into_iter().filter_map(|topic| {
        let target = reading.target(&topic)?;
        Some((topic, settings.without_name(&target).to_owned()))
    });
    let tables: Vec<(Arc<str>, String)> = known.chain(opened.tables.iter().cloned()).collect();
    let past = partitions.keys().cloned().collect();
    first_claims(settings, store, opened.sink.as_ref(), partitions, &tables, &past).await?;
    Ok(opened.tables)
}

/// The first start of a pattern.
struct First<'c, S> {
    settings: &'c SinkSettings,
    store: &'c Arc<S>,
    monitor: &'c Monitor,
    identity: &'c Identity,
    targets: &'c BTreeMap<Arc<str>, Arc<str>>,
}

impl<S: Store> First<'_, S> {
    /// Records the topics that match a pattern at its first start by the policy, and then the pattern itself, with no partitions: a match without a record that is
    /// found later, also after a time in which no process ran, begins at its beginning. In this order, so that a start that is cut short is begun again.
    async fn matches(&self, topics: &Topics, matching: &[(Arc<str>, i32)]) -> Result<(), Failure> {
        let patterns: Vec<Arc<str>> = topics.patterns().iter().map(|one| Arc::clone(one.text())).collect();
        if patterns.is_empty() {
            return Ok(());
        }
        let recorded = self.store.recorded(&patterns).await?;
        for (pattern, _) in topics.patterns().iter().zip(recorded).filter(|(_, known)| known.is_none()) {
            let names: Vec<Arc<str>> =
                matching.iter().map(|(name, _)| name).filter(|name| pattern.matches(name)).cloned().collect();
            let recorded = self.store.recorded(&names).await?;
            let new: Vec<Arc<str>> = names
                .into_iter()
                .zip(recorded)
                .filter(|(_, known)| known.is_none())
                .map(|(name, _)| name)
                .collect();
            for facts in self.monitor.topics(&new).await.map_err(starts::from_kafka)? {
                self.record(facts).await?;
            }
            let name = Arc::clone(pattern.text());
            let topic = TopicIdentity { target: Arc::clone(&name), name, id: "".into() };
            let starts =
                Starts { topic, policy: self.settings.start, first: Vec::new(), beginning: Vec::new() };
            self.store.register(self.identity, &starts).await?;
        }
        Ok(())
    }

    async fn record(&self, facts: TopicFacts) -> Result<(), Failure> {
        // Gone again since it was listed: it comes later, if it comes.
        let TopicState::Exists { id, partitions } = facts.state else { return Ok(()) };
        let target = self.targets.get(&facts.name).cloned();
        let target = target.unwrap_or_else(|| Arc::clone(&self.settings.name));
        let topic = TopicIdentity { name: facts.name, id: id.unwrap_or_default().into(), target };
        let starts = starts::of_topic(self.monitor, &topic, partitions, self.settings.start, true).await?;
        self.store.register(self.identity, &starts).await
    }
}

/// The first question to Kafka: here an address that is wrong shows.
async fn cluster_id(monitor: &Monitor, settings: &SinkSettings) -> Result<String, Failure> {
    monitor.cluster_id().await.map_err(|error| {
        let brokers = settings.kafka.get("bootstrap.servers").map(Secret::expose).unwrap_or_default();
        let message = error.with_remedy(brokers);
        Failure { message, ..starts::from_kafka(error) }
    })
}

/// The sink, none when there is no topic yet, and the target of each topic.
struct Opened<K> {
    sink: Option<K>,
    tables: Vec<(Arc<str>, String)>,
}

async fn opened<S: Store, K: Sink<S>>(
    settings: &SinkSettings,
    store: &Arc<S>,
    config: &ConfigSource<K::Config>,
    names: &BTreeSet<String>,
) -> Result<Opened<K>, Failure> {
    if names.is_empty() {
        return Ok(Opened { sink: None, tables: Vec::new() });
    }
    let session = store.connect().await?;
    let sink = open_on::<S, K>(store, session, config()?, names).await;
    let (session, sink) = sink.map_err(|failure| failure.of_sink(&settings.name))?;
    drop(session);
    let tables = names.iter().map(|topic| (topic.as_str().into(), sink.target(topic))).collect();
    Ok(Opened { sink: Some(sink), tables })
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

/// The topics whose first claim would begin before the end: all of them, but for the policy `latest` only matches that came later than their pattern.
async fn claimed_from_the_past<S: Store>(
    settings: &SinkSettings,
    store: &Arc<S>,
    topics: &Topics,
    tables: &[(Arc<str>, String)],
) -> Result<BTreeSet<Arc<str>>, Failure> {
    let names = tables.iter().map(|(topic, _)| topic);
    if settings.start != StartPolicy::Latest {
        return Ok(names.cloned().collect());
    }
    let mut past = BTreeSet::new();
    for pattern in topics.patterns() {
        if store.recorded(&[Arc::clone(pattern.text())]).await?.iter().all(Option::is_none) {
            continue;
        }
        let matches = |topic: &&Arc<str>| !topics.is_named(topic) && pattern.matches(topic);
        past.extend(names.clone().filter(matches).cloned());
    }
    Ok(past)
}

/// A first claim that does not begin at the end must not fill a target that has rows already: after a group was renamed, or another database was named,
/// everything would be there twice. `tables` is where the topics go, `past` those whose first claim would not begin at the end.
async fn first_claims<S: Store, K: Sink<S>>(
    settings: &SinkSettings,
    store: &Arc<S>,
    sink: Option<&K>,
    partitions: &BTreeMap<Arc<str>, i32>,
    tables: &[(Arc<str>, String)],
    past: &BTreeSet<Arc<str>>,
) -> Result<(), Failure> {
    let Some(sink) = sink.filter(|_| !settings.into_rows) else { return Ok(()) };
    let mut topics: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
    for (topic, table) in tables {
        topics.entry(table).or_default().push(Arc::clone(topic));
    }
    // Opened when a table has to be looked at, and dropped, which is a rollback.
    let mut looking = None;
    for (table, topics) in topics {
        if !topics.iter().any(|topic| past.contains(topic)) || begun(store, partitions, &topics).await? {
            continue;
        }
        let Some(topic) = topics.first() else { continue };
        let tx = match &mut looking {
            Some(tx) => tx,
            None => looking.insert(store.begin(store.connect().await?, K::STATEMENTS).await?),
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
