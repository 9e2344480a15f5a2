//! SIGTERM and SIGINT: the first asks for a graceful stop, the second ends the process at once.
//!
//! Ending at once is safe for the rows: what was not answered is settled by the next claim.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{Exit, Failed};

/// Listens from now on. The receiver turns true at the first signal.
pub(crate) fn listen() -> Result<watch::Receiver<bool>, Failed> {
    let open = |kind| {
        signal(kind)
            .map_err(|error| Failed::new(Exit::Preflight, format!("cannot listen for signals: {error}")))
    };
    let mut terminate = open(SignalKind::terminate())?;
    let mut interrupt = open(SignalKind::interrupt())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        let name = next(&mut terminate, &mut interrupt).await;
        tracing::info!("{name}: stopping; what is in flight may finish within the sinks' drain time");
        let _ = stop.send(true);
        let name = next(&mut terminate, &mut interrupt).await;
        tracing::warn!("{name} again: ending at once");
        // No destructors, no exit handlers: they could wait for the very thing that hangs.
        std::process::abort();
    });
    Ok(stopped)
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

/// Waits for the first signal.
pub(crate) async fn stopped(mut stopped: watch::Receiver<bool>) {
    // A dropped sender means that the listener ended with its runtime; then there is nothing to wait for.
    let _ = stopped.wait_for(|stop| *stop).await;
}
