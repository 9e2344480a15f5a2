//! `run`: the sinks until a signal, or until the ends of their topics are stored.
//!
//! SEAM: everything up to the hand-over to the framework's runtime is here; the hand-over itself is [`hand_over`].

use std::sync::Arc;
use std::time::Duration;

use oncesink::metrics::Live;
use tokio::sync::watch;

use super::Context;
use super::check::{self, Findings};
use crate::exit::{Exit, Failed};
use crate::http::{self, Bound};
use crate::signals;

pub(crate) async fn run(context: Context, until_end: bool) -> Result<Exit, Failed> {
    let stopped = signals::listen()?;
    let recorded = http::recorder()?;
    let bound = Bound::bind(context.config.http.listen).await?;
    let Some(findings) = ready(&context, stopped.clone()).await? else { return Ok(Exit::Done) };
    for promise in findings.promises() {
        tracing::info!("{promise}");
    }
    let (live, running) = hand_over(context, until_end, stopped.clone())?;
    let serving = tokio::spawn(bound.serve(live, recorded, signals::stopped(stopped)));
    let exit = running.await;
    serving.abort();
    exit
}

const WAIT_LEAST: Duration = Duration::from_millis(500);
const WAIT_MOST: Duration = Duration::from_secs(5);

/// Looks until all is well: what refuses ends the start, what does not answer is waited for. None when a signal came first.
async fn ready(context: &Context, stopped: watch::Receiver<bool>) -> Result<Option<Findings>, Failed> {
    let mut pause = WAIT_LEAST;
    let mut waiting = false;
    loop {
        let findings = tokio::select! {
            findings = check::look(context) => findings?,
            () = signals::stopped(stopped.clone()) => return Ok(None),
        };
        if findings.ok() {
            if waiting {
                tracing::info!("all answer now");
            }
            return Ok(Some(findings));
        }
        if !findings.may_pass() {
            return Err(Failed::preflight(findings.problems()));
        }
        if !waiting {
            tracing::warn!("waiting for what does not answer: {}", findings.problems());
            waiting = true;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = signals::stopped(stopped.clone()) => return Ok(None),
        }
        pause = (pause * 2).min(WAIT_MOST);
    }
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
