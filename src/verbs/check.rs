//! `check`: what `run` looks at before it consumes anything, by itself, with a verdict a line.

use std::sync::Arc;

use oncesink::config::{KafkaSection, SinkSection};
use oncesink::kafka::{Monitor, MonitorError, TopicFacts, TopicState};
use oncesink::{Class, Failure, SinkError};
use serde::Serialize;

use super::{Context, cluster, who};
use crate::exit::{Exit, Failed};
use crate::output::table;
use crate::promise::promise;

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// `kafka`, `target` or `offsets`.
    what: &'static str,
    /// Brokers, database or table.
    place: String,
    ok: bool,
    /// What does not answer may answer later; what refuses will go on refusing until somebody mends it.
    may_pass: bool,
    says: String,
}

/// What is wrong, and whether waiting may help.
struct Problem {
    says: String,
    may_pass: bool,
}

impl Problem {
    fn lasting(says: impl Into<String>) -> Self {
        Self { says: says.into(), may_pass: false }
    }
}

impl From<MonitorError> for Problem {
    fn from(error: MonitorError) -> Self {
        Self { may_pass: matches!(error, MonitorError::Transient(_)), says: error.to_string() }
    }
}

impl From<&Failure> for Problem {
    fn from(failure: &Failure) -> Self {
        let may_pass = matches!(
            failure.class,
            Class::Transient | Class::WrongServer | Class::Timeout | Class::SickObject
        );
        Self { may_pass, says: failure.to_string() }
    }
}

impl From<&SinkError> for Problem {
    fn from(error: &SinkError) -> Self {
        match error {
            SinkError::Failed(failure) => failure.into(),
            SinkError::Bad(_) => Self::lasting(error.to_string()),
        }
    }
}

impl Finding {
    fn new(what: &'static str, place: impl Into<String>, verdict: Result<String, Problem>) -> Self {
        let (ok, may_pass, says) = match verdict {
            Ok(says) => (true, false, says),
            Err(problem) => (false, problem.may_pass, problem.says),
        };
        Self { what, place: place.into(), ok, may_pass, says }
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

    /// Whether all that is wrong is that something does not answer.
    pub(crate) fn may_pass(&self) -> bool {
        self.checks.iter().all(|finding| finding.ok || finding.may_pass)
    }

    pub(crate) fn promises(&self) -> &[String] {
        &self.promises
    }

    /// What must be mended, a line each.
    pub(crate) fn problems(&self) -> String {
        let bad = self.checks.iter().filter(|finding| !finding.ok);
        bad.map(|finding| format!("{} {}: {}", finding.what, finding.place, finding.says))
            .collect::<Vec<_>>()
            .join("\n")
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
        findings.checks.push(kafka(&context.config.kafka, sink).await?);
        database(context, sink, &mut findings).await?;
    }
    Ok(findings)
}

async fn kafka(section: &KafkaSection, sink: &SinkSection) -> Result<Finding, Failed> {
    let monitor = cluster::monitor(section)?;
    let topics: Vec<Arc<str>> = sink.topics.iter().map(|topic| topic.as_str().into()).collect();
    let verdict = async {
        let brokers = monitor.cluster().await?.brokers;
        let mut said = vec![format!("{brokers} broker{}", if brokers == 1 { "" } else { "s" })];
        for facts in monitor.topics(&topics).await? {
            said.push(topic(&monitor, facts).await?);
        }
        Ok(said.join("; "))
    };
    Ok(Finding::new("kafka", section.brokers(), verdict.await))
}

async fn topic(monitor: &Monitor, facts: TopicFacts) -> Result<String, Problem> {
    let name = facts.name.clone();
    let count = match facts.state {
        TopicState::Exists { partitions, .. } => partitions,
        TopicState::Unknown => {
            return Ok(format!(
                "topic {name}: does not exist yet, when it does it is read from its beginning"
            ));
        }
        TopicState::Error(reason) => return Err(Problem::lasting(format!("topic {name}: {reason}"))),
    };
    let places = cluster::partitions(&name, count);
    let mut records = 0;
    for (place, ends) in places.iter().zip(monitor.ends(&places).await?) {
        let ends = ends.map_err(|reason| Problem { says: format!("{place}: {reason}"), may_pass: true })?;
        records += ends.high_watermark - ends.log_start;
    }
    Ok(format!("topic {name}: {count} partitions, up to {records} records"))
}

async fn database(context: &Context, sink: &SinkSection, findings: &mut Findings) -> Result<(), Failed> {
    let shown = sink.target.shown();
    let preflight = match context.store(sink)?.preflight().await {
        Ok(preflight) => preflight,
        Err(failure) => {
            findings.checks.push(Finding::new("target", shown, Err(Problem::from(&failure))));
            return Ok(());
        }
    };
    let targets = context.registry.of(sink)?.targets(sink, &who()).await;
    findings.checks.push(Finding::new(
        "target",
        shown,
        match &targets {
            Ok(targets) => {
                let rows: Vec<String> =
                    targets.iter().map(|(topic, target)| format!("{topic} -> {target}")).collect();
                Ok(format!("{}; role {}; {}", preflight.server_version, preflight.role, rows.join(", ")))
            }
            Err(error) => Err(error.into()),
        },
    ));
    let offsets = preflight.offsets.clone();
    let verdict = match preflight.problems.as_slice() {
        [] => Ok(format!("group {}", sink.group)),
        problems => Err(Problem::lasting(problems.join("; "))),
    };
    let well = verdict.is_ok();
    findings.checks.push(Finding::new("offsets", offsets.clone(), verdict));
    if let (true, Ok(targets)) = (well, targets) {
        findings.promises.push(promise(sink, &offsets, &targets));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_marked_and_listed() {
        let findings = Findings {
            checks: vec![
                Finding::new("kafka", "b:9092", Ok("1 broker".into())),
                Finding::new("offsets", "public.kafka_offsets", Err(Problem::lasting("no such table"))),
            ],
            promises: vec!["orders: exactly once".into()],
        };
        assert!(!findings.ok() && !findings.may_pass());
        assert_eq!(findings.problems(), "offsets public.kafka_offsets: no such table");
        assert_eq!(
            findings.text(),
            "kafka    b:9092                ok   1 broker\noffsets  public.kafka_offsets  FIX  no such table\norders: exactly once"
        );
    }
    #[test]
    fn only_silence_is_waited_for() {
        let finding = |problem| Finding::new("kafka", "b:9092", Err(problem));
        let silent = || Problem::from(MonitorError::Transient("timed out".into()));
        let refused = Problem::from(MonitorError::Authentication("wrong password".into()));
        let mut findings = Findings { checks: vec![finding(silent())], promises: Vec::new() };
        assert!(!findings.ok() && findings.may_pass());
        findings.checks.push(finding(refused));
        assert!(!findings.may_pass());
        assert!(Problem::from(&Failure::new(Class::WrongServer, "read-only")).may_pass);
        assert!(!Problem::from(&Failure::fatal("no such role")).may_pass);
    }
}
