//! `/metrics`, `/healthz`, `/readyz` of the real command on real servers: values against the brokers' and the database's own answers.

mod accounting;
mod closed_list;
mod health;
mod instances;
mod outcomes;
mod values;

use oncesink_test_support::process::Process;

use crate::rig::{PATIENCE, Rig};
use crate::scrape::{Http, Scrape};

/// Scrapes until `wanted` holds.
async fn scraped(http: &Http, wanted: impl Fn(&Scrape) -> bool) -> Scrape {
    oncesink_test_support::eventually(PATIENCE, || async {
        let scrape = http.scrape().await;
        wanted(&scrape).then_some(scrape)
    })
    .await
}

/// A running sink and its listener.
async fn running(rig: &Rig) -> (Process, Http) {
    let process = rig.run();
    let http = Http::of(&process).await;
    (process, http)
}

/// All partitions of the rig run, and nothing is left to read.
fn caught_up(rig: &Rig, scrape: &Scrape) -> bool {
    (0..rig.partitions).all(|partition| {
        scrape.state(&rig.topic, partition).as_deref() == Some("running")
            && scrape.partition("oncesink_lag_readable_records", &rig.topic, partition) == Some(0.0)
            && scrape.partition("oncesink_lag_seconds", &rig.topic, partition) == Some(0.0)
    })
}
