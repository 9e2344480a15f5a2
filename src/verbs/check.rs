//! `check`: what `run` looks at before it consumes anything, by itself, with a verdict a line.

use std::sync::Arc;

use oncesink::config::{KafkaSection, SinkSection};
use oncesink::kafka::{Monitor, MonitorError, TopicState};
use oncesink::{BadRecord, Promise, SinkError, TopicIds, Topics, remedy};
use serde::Serialize;

use super::{Context, cluster, sample, who};
use crate::exit::{Exit, Failed};
use crate::output::table;

/// Records of each topic that are looked at.
const SAMPLED: usize = 20;

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// `kafka`, `target`, `mapping` or `offsets`.
    what: &'static str,
    /// Brokers, database or table.
    place: String,
    ok: bool,
    says: String,
}

impl Finding {
    fn new(what: &'static str, place: impl Into<String>, verdict: Result<String, String>) -> Self {
        let ok = verdict.is_ok();
        let says = verdict.unwrap_or_else(|problem| problem);
        Self { what, place: place.into(), ok, says }
    }
}

/// What was found, and the promise of each sink for which all is well.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Findings {
    checks: Vec<Finding>,
    promises: Vec<String>,
}

impl Findings {
    pub(crate) fn ok(&self) -> bool {
        self.checks.iter().all(|finding| finding.ok)
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .checks
            .iter()
            .map(|finding| {
                let verdict = if finding.ok { "ok" } else { "FIX" };
                vec![finding.what.to_owned(), finding.place.clone(), verdict.to_owned(), finding.says.clone()]
            })
            .collect();
        format!("{}{}", table(&rows), self.promises.join("\n"))
    }
}

pub(crate) async fn run(context: &Context) -> Result<Exit, Failed> {
    let findings = look(context).await?;
    context.output.print(&findings, &findings.text());
    Ok(if findings.ok() { Exit::Done } else { Exit::Preflight })
}

/// Looks at everything; a problem of one part does not hide those of another.
pub(crate) async fn look(context: &Context) -> Result<Findings, Failed> {
    let mut findings = Findings::default();
    for sink in &context.config.sinks {
        let before = findings.checks.len();
        let (monitor, topics) = match cluster::monitor(&context.config.kafka) {
            Ok(monitor) => {
                let topics = cluster::topics(&monitor, sink).await;
                (Ok(monitor), topics)
            }
            Err(failed) => (Err(failed.message), Ok(Vec::new())),
        };
        let (brokers, ids) = kafka(&context.config.kafka, sink, monitor, &topics).await;
        let promised = brokers.ok.then_some(ids);
        findings.checks.push(brokers);
        // Without an answer about patterns, what is named can be looked at nevertheless.
        let topics = topics.unwrap_or_else(|_| {
            let named = sink.topics.iter().filter(|topic| !topic.starts_with('^'));
            named.map(|topic| topic.as_str().into()).collect()
        });
        database(context, sink, &topics, promised, &mut findings).await?;
        if findings.checks.iter().skip(before).all(|finding| finding.ok) {
            rehearse(context, sink, &mut findings).await?;
        }
    }
    Ok(findings)
}

/// Whatever else `run` would refuse: above all, to fill a table that has rows already.
async fn rehearse(context: &Context, sink: &SinkSection, findings: &mut Findings) -> Result<(), Failed> {
    let kind = context.registry.of(sink)?;
    if let Err(failure) = kind.rehearse(&context.config.kafka, sink, &who()).await {
        findings.checks.push(Finding::new("start", &sink.name, Err(failure.to_string())));
        findings.promises.retain(|promise| !promise.starts_with(&format!("{}: ", sink.name)));
    }
    Ok(())
}

/// What the brokers say, and whether topics have ids there.
async fn kafka(
    section: &KafkaSection,
    sink: &SinkSection,
    monitor: Result<Monitor, String>,
    topics: &Result<Vec<Arc<str>>, MonitorError>,
) -> (Finding, TopicIds) {
    let monitor = match monitor {
        Ok(monitor) => monitor,
        Err(flaw) => return (Finding::new("kafka", section.brokers(), Err(flaw)), TopicIds::Untold),
    };
    let mut ids = TopicIds::Told;
    let verdict = async {
        let topics = topics.as_ref().map_err(|error| error.with_remedy(section.brokers()))?;
        let cluster = monitor.cluster().await;
        let brokers = cluster.map_err(|error| error.with_remedy(section.brokers()))?.brokers;
        let mut said = vec![format!(
            "{brokers} broker{}; {}",
            if brokers == 1 { "" } else { "s" },
            if section.is_encrypted() { "TLS" } else { "not encrypted" }
        )];
        for facts in monitor.topics(topics).await.map_err(|error| error.to_string())? {
            let name = facts.name.clone();
            let count = match facts.state {
                TopicState::Exists { id, partitions } => {
                    if id.is_none() {
                        ids = TopicIds::Untold;
                    }
                    partitions
                }
                TopicState::Unknown => {
                    said.push(format!(
                        "topic {name}: does not exist yet, it will be read from its beginning"
                    ));
                    continue;
                }
                TopicState::Error(reason) => return Err(format!("topic {name}: {reason}")),
            };
            let places = cluster::partitions(&name, count);
            let ends = monitor.ends(&places).await.map_err(|error| error.to_string())?;
            let mut records = 0;
            for (place, ends) in places.iter().zip(ends) {
                let ends = ends.map_err(|reason| format!("{place}: {reason}"))?;
                records += ends.high_watermark - ends.log_start;
            }
            said.push(format!("topic {name}: {count} partitions, up to {records} records"));
        }
        let patterns = sink.topics.iter().filter(|topic| topic.starts_with('^'));
        for pattern in patterns.filter_map(|text| Topics::parse([text]).ok()?.patterns().first().cloned()) {
            if !topics.iter().any(|topic| pattern.matches(topic)) {
                said.push(format!("no topic matches {} yet", pattern.text()));
            }
        }
        Ok(said.join("; "))
    };
    let verdict = verdict.await;
    (Finding::new("kafka", section.brokers(), verdict), ids)
}

/// Stopped partitions are no reason against a start, which tries them again; but whoever checks wants to know.
async fn stopped(context: &Context, sink: &SinkSection) -> String {
    let Ok(store) = context.store(sink) else { return String::new() };
    let rows = store.status(&sink.group).await.unwrap_or_default();
    match rows.iter().filter(|row| row.state.as_deref() == Some("stopped")).count() {
        0 => String::new(),
        1 => format!("; 1 partition is stopped: {}", remedy::command("status")),
        more => format!("; {more} partitions are stopped: {}", remedy::command("status")),
    }
}

/// `promised` is what the brokers have to do with the promise; none when it may not be given.
async fn database(
    context: &Context,
    sink: &SinkSection,
    topics: &[Arc<str>],
    promised: Option<TopicIds>,
    findings: &mut Findings,
) -> Result<(), Failed> {
    let shown = sink.target.shown();
    let preflight = match context.store(sink) {
        Ok(store) => store.preflight().await.map_err(|failure| failure.to_string()),
        Err(failed) => Err(failed.message),
    };
    let preflight = match preflight {
        Ok(preflight) => preflight,
        Err(problem) => {
            findings.checks.push(Finding::new("target", shown, Err(problem)));
            return Ok(());
        }
    };
    let targets =
        context.registry.of(sink)?.targets(sink, topics, &who()).await.map_err(|error| match error {
            SinkError::Failed(failure) => SinkError::Failed(failure.of_sink(&sink.name)),
            bad => bad,
        });
    findings.checks.push(Finding::new(
        "target",
        shown,
        match &targets {
            Ok(targets) => {
                let rows: Vec<String> =
                    targets.iter().map(|(topic, target)| format!("{topic} -> {target}")).collect();
                let encryption = preflight.encryption.map(|how| format!("; {how}")).unwrap_or_default();
                let role = preflight.role.map(|role| format!("; role {role}")).unwrap_or_default();
                Ok(format!("{}{encryption}{role}; {}", preflight.server_version, rows.join(", ")))
            }
            Err(error) => Err(error.to_string()),
        },
    ));
    if promised.is_some() && targets.is_ok() {
        for topic in topics {
            findings.checks.extend(mapping(context, sink, topic).await);
        }
    }
    let offsets = preflight.offsets.clone();
    let verdict = match preflight.problems.as_slice() {
        [] => Ok(format!("group {}{}", sink.group, stopped(context, sink).await)),
        problems => {
            // The table's name stands in front already.
            let named = format!("{offsets}: ");
            let told = problems.iter().map(|problem| problem.strip_prefix(&named).unwrap_or(problem));
            Err(told.collect::<Vec<_>>().join("; "))
        }
    };
    let promised = promised.filter(|_| verdict.is_ok());
    findings.checks.push(Finding::new("offsets", offsets.clone(), verdict));
    if let (Some(ids), Ok(targets)) = (promised.filter(|_| !topics.is_empty()), targets) {
        let tables: Vec<&str> = targets.iter().map(|(_, target)| target.as_str()).collect();
        let promise = Promise {
            sink: &sink.name,
            group: &sink.group,
            offsets: &offsets,
            targets: &tables,
            policy: sink.on_bad_record,
            ids,
        };
        findings.promises.push(promise.to_string());
    }
    Ok(())
}

/// What the first records of a topic would become; none without records, or where the sink cannot say.
async fn mapping(context: &Context, sink: &SinkSection, topic: &str) -> Option<Finding> {
    let kafka = &context.config.kafka;
    let parts = async {
        let monitor = cluster::monitor(kafka)?;
        sample::first_records(&monitor, kafka, sink, topic, SAMPLED).await
    };
    let parts = match parts.await {
        Ok(parts) => parts?,
        Err(failed) => return Some(Finding::new("mapping", topic, Err(failed.message))),
    };
    let records = sample::in_turn(&parts, SAMPLED);
    let (fields, previewed) = match sample::previewed(context, sink, topic, records).await {
        Ok(previewed) => previewed,
        // A connector that cannot show what a record becomes.
        Err(_) => return None,
    };
    let outlook = previewed.outlook?;
    let place = format!("{topic} -> {}", previewed.target);
    let bad: Vec<&BadRecord> =
        previewed.becomes.iter().filter_map(|becomes| becomes.as_ref().err()).collect();
    let sampled = previewed.becomes.len();
    let records = match sampled {
        0 => {
            return Some(Finding::new(
                "mapping",
                place,
                Ok(format!("no record to look at yet; {}", outlook.way)),
            ));
        }
        1 => "1 record".to_owned(),
        more => format!("{more} records"),
    };
    let known = outlook.known;
    let said = match bad.first() {
        None => format!("{records} sampled; {known} of {fields} fields have a column; {}", outlook.way),
        Some(first) => {
            let count = bad.len();
            format!("{records} sampled, {count} of them bad (oncesink preview shows them); first {first}")
        }
    };
    // Old records that are bad may long be passed; where all are, the keys do not fit the records.
    let verdict = if bad.len() == sampled { Err(said) } else { Ok(said) };
    Some(Finding::new("mapping", place, verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_marked_and_listed() {
        let findings = Findings {
            checks: vec![
                Finding::new("kafka", "b:9092", Ok("1 broker".into())),
                Finding::new("offsets", "public.kafka_offsets", Err("no such table".into())),
            ],
            promises: vec!["orders: exactly once".into()],
        };
        assert!(!findings.ok());
        assert_eq!(
            findings.text(),
            "kafka    b:9092                ok   1 broker\noffsets  public.kafka_offsets  FIX  no such table\norders: exactly once"
        );
    }
}
