//! `run`: the sinks until a signal, or until the ends of their topics are stored.
//!
//! SEAM: everything up to the hand-over to the framework's runtime is here; the hand-over itself is [`hand_over`].

use std::sync::Arc;

use oncesink::metrics::Live;
use tokio::sync::watch;

use super::{Context, check};
use crate::exit::{Exit, Failed};
use crate::http::{self, Bound};
use crate::signals;

pub(crate) async fn run(context: Context, until_end: bool) -> Result<Exit, Failed> {
    let stopped = signals::listen()?;
    let recorded = http::recorder()?;
    let bound = Bound::bind(context.config.http.listen).await?;
    let findings = check::look(&context).await?;
    if !findings.ok() {
        return Err(Failed::preflight(findings.problems()));
    }
    for promise in findings.promises() {
        tracing::info!("{promise}");
    }
    let (live, running) = hand_over(context, until_end, stopped.clone())?;
    let serving = tokio::spawn(bound.serve(live, recorded, signals::stopped(stopped)));
    let exit = running.await;
    serving.abort();
    exit
}

type Running = std::pin::Pin<Box<dyn Future<Output = Result<Exit, Failed>> + Send>>;

/// SEAM for `oncesink::run(sinks, shutdown)`: what answers probes, and the future that ends with the sinks.
fn hand_over(
    context: Context,
    until_end: bool,
    stopped: watch::Receiver<bool>,
) -> Result<(Arc<dyn Live>, Running), Failed> {
    let _ = (context, until_end, stopped);
    Err(Failed::new(Exit::Fatal, "run: the runtime is not part of this build; nothing was consumed"))
}
