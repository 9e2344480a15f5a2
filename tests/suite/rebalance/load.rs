//! Records that keep coming while a test does its damage.
//!
//! Invariant: what was sent is counted only when the broker has acknowledged it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oncesink_test_support::kafka::Record;
use tokio::task::JoinHandle;

use crate::rig::{Rig, row};

/// A producer that goes on until it is told to stop.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<i64>,
}

impl Load {
    /// Sends `step` records to each partition every `pause`, behind those that the rig has sent.
    pub(crate) fn start(rig: &Rig, step: i64, pause: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, topic, kafka) = (Arc::clone(&stop), rig.topic.clone(), rig.kafka);
        let first = rig.produced_each();
        let task = tokio::spawn(async move {
            let mut sent = 0;
            while !stopped.load(Ordering::Relaxed) {
                let records: Vec<Record> = first
                    .iter()
                    .zip(0..)
                    .flat_map(|(first, partition)| {
                        let begin = first + sent;
                        (begin..begin + step).map(move |seq| Record::to(partition).value(row(partition, seq)))
                    })
                    .collect();
                kafka.produce(&topic, records).await;
                sent += step;
                tokio::time::sleep(pause).await;
            }
            sent
        });
        Self { stop, task }
    }

    /// Stops, and tells the rig how much there is.
    pub(crate) async fn stop(self, rig: &mut Rig) {
        self.stop.store(true, Ordering::Relaxed);
        let each = self.task.await.expect("the load");
        rig.add_produced(each);
    }
}
