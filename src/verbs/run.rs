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

/// The worst that happened decides, but a sink that ended by itself does not count as long as another one did its work. Each said why when it ended.
fn exit(ended: &[(Arc<str>, Ended)]) -> Exit {
    let codes: Vec<Exit> = ended
        .iter()
        .map(|(_, ended)| match ended {
            Ended::Stopped | Ended::Reached => Exit::Done,
            Ended::DrainPassed => Exit::DrainPassed,
            Ended::Refused(_) => Exit::Preflight,
            Ended::Short(_) | Ended::Fatal(_) => Exit::Fatal,
        })
        .collect();
    let short = ended.iter().any(|(_, ended)| matches!(ended, Ended::Short(_)));
    if codes.contains(&Exit::DrainPassed) {
        Exit::DrainPassed
    } else if short {
        Exit::Fatal
    } else if codes.contains(&Exit::Done) {
        Exit::Done
    } else if codes.contains(&Exit::Preflight) {
        // Not every one ran until something fatal came.
        Exit::Preflight
    } else {
        Exit::Fatal
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

#[cfg(test)]
mod tests {
    use oncesink::Failure;

    use super::*;

    #[test]
    fn a_sink_that_ended_by_itself_does_not_count_beside_one_that_did_its_work() {
        let refused = || Ended::Refused(Failure::fatal("no table"));
        let fatal = || Ended::Fatal(Failure::fatal("fenced"));
        let short = || Ended::Short(Vec::new());
        for (ended, expected) in [
            (vec![Ended::Stopped, Ended::Reached], Exit::Done),
            (vec![refused(), Ended::Stopped], Exit::Done),
            (vec![Ended::Stopped, fatal(), fatal()], Exit::Done),
            (vec![refused()], Exit::Preflight),
            (vec![fatal(), fatal()], Exit::Fatal),
            (vec![fatal(), refused()], Exit::Preflight),
            (vec![refused(), fatal()], Exit::Preflight),
            (vec![Ended::Reached, short()], Exit::Fatal),
            (vec![Ended::Stopped, Ended::DrainPassed, fatal()], Exit::DrainPassed),
        ] {
            let words = format!("{ended:?}");
            let ended: Vec<(Arc<str>, Ended)> = ended.into_iter().map(|ended| ("s".into(), ended)).collect();
            assert_eq!(exit(&ended), expected, "{words}");
        }
    }
}
