//! `run`: the sinks until a signal, or until the ends of their topics are stored.

use std::sync::Arc;

use oncesink::metrics::{Live, PartitionSeries};
use oncesink::{Ended, LiveSink};

use super::{Context, who};
use crate::exit::{Exit, Failed};
use crate::http::{self, Bound};
use crate::signals;

pub(crate) async fn run(context: Context, until_end: bool) -> Result<Exit, Failed> {
    let stopped = signals::listen()?;
    let recorded = http::recorder()?;
    let bound = Bound::bind(context.config.http.listen).await?;
    let mut tasks = Vec::new();
    for sink in &context.config.sinks {
        let kind = context.registry.of(sink)?;
        let task = kind.task(&context.config.kafka, sink, &who(), until_end);
        tasks.push(task.map_err(|failure| super::at(sink, failure))?);
    }
    let live = Arc::new(All(tasks.iter().map(oncesink::SinkTask::live).collect()));
    let serving = tokio::spawn(bound.serve(live, recorded, std::future::pending()));
    let ended = oncesink::run(tasks, signals::stopped(stopped)).await;
    serving.abort();
    Ok(exit(&ended))
}

/// The worst that happened decides, but a sink that ended by itself does not count as long as another one did its work.
fn exit(ended: &[(Arc<str>, Ended)]) -> Exit {
    let mut codes = Vec::new();
    for (name, ended) in ended {
        codes.push(match ended {
            Ended::Stopped | Ended::Reached => Exit::Done,
            Ended::Short(_) => Exit::Fatal,
            Ended::DrainPassed => {
                tracing::warn!(
                    "{name}: the drain deadline passed with a COMMIT unanswered; the next claim finds out"
                );
                Exit::DrainPassed
            }
            Ended::Refused(failure) => {
                tracing::error!("{name}: {failure}");
                Exit::Preflight
            }
            Ended::Fatal(failure) => {
                tracing::error!("{name}: ended: {failure}");
                Exit::Fatal
            }
        });
    }
    let failed = |code: &Exit| matches!(code, Exit::Fatal | Exit::Preflight);
    let short = ended.iter().any(|(_, ended)| matches!(ended, Ended::Short(_)));
    if codes.contains(&Exit::DrainPassed) {
        Exit::DrainPassed
    } else if short {
        Exit::Fatal
    } else if codes.iter().all(failed) {
        codes.into_iter().next().unwrap_or(Exit::Fatal)
    } else {
        Exit::Done
    }
}

/// All sinks of the process.
struct All(Vec<Arc<LiveSink>>);

impl Live for All {
    fn partition_series(&self) -> Vec<PartitionSeries> {
        self.0.iter().flat_map(|sink| sink.partition_series()).collect()
    }

    fn healthy(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|sink| sink.healthy())
    }

    fn ready(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|sink| sink.ready())
    }
}
