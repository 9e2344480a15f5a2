//! How long each partition's stored offset stands still, watched from the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oncesink_test_support::postgres::Schema;
use tokio::task::JoinHandle;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A watch over the stored offsets.
pub(crate) struct Flow {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Vec<Duration>>,
}

impl Flow {
    /// Watches from now on.
    pub(crate) fn watch(schema: &Schema) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, schema) = (Arc::clone(&stop), schema.clone());
        let task = tokio::spawn(async move {
            let mut last: Vec<(i64, Instant)> = Vec::new();
            let mut longest: Vec<Duration> = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let offsets: Vec<i64> =
                    schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
                let now = Instant::now();
                last.resize(offsets.len(), (-1, now));
                longest.resize(offsets.len(), Duration::ZERO);
                for ((offset, last), longest) in offsets.into_iter().zip(&mut last).zip(&mut longest) {
                    *longest = now.duration_since(last.1).max(*longest);
                    if offset != last.0 {
                        *last = (offset, now);
                    }
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            longest
        });
        Self { stop, task }
    }

    /// The longest time that each partition stood still, by partition; it cannot be finer than the records that come.
    pub(crate) async fn longest(self) -> Vec<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("the watch")
    }
}
