//! What metrics and health checks see of a running sink: only partitions that are here now.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::kafka::Ends;
use crate::metrics::{Live, PartitionSeries};
use crate::record::TopicPartition;
use crate::writer::{Buffered, First};

/// A loop that took no turn for this long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(30);

/// One partition as the supervisor last saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) state: &'static str,
    pub(crate) stored: Option<i64>,
    /// The ends, and the offset that was stored before they were read, if one was known.
    pub(crate) ends: Option<(Option<i64>, Ends)>,
}

/// Shared between a sink's supervisor and those who look at it.
pub struct LiveSink {
    group: Arc<str>,
    partitions: Mutex<BTreeMap<TopicPartition, Shown>>,
    buffered: Mutex<Vec<Buffered>>,
    /// None while no loop runs: before the start, between two clients, after the end.
    pulse: Mutex<Option<Pulse>>,
    joined: AtomicBool,
    ended: AtomicBool,
}

/// The supervisor's last turn, and the longest silence of the loops below it at that time.
#[derive(Clone, Copy, Debug)]
struct Pulse {
    at: Instant,
    slowest: Duration,
}

impl LiveSink {
    pub(crate) fn new(group: Arc<str>) -> Self {
        Self {
            group,
            partitions: Mutex::default(),
            buffered: Mutex::default(),
            pulse: Mutex::new(None),
            joined: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn partitions(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, Shown>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_buffered(&self, buffered: Vec<Buffered>) {
        *self.buffered.lock().unwrap_or_else(PoisonError::into_inner) = buffered;
    }

    pub(crate) fn beat(&self, slowest: Duration) {
        *self.pulse.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Pulse { at: Instant::now(), slowest });
    }

    /// The loops have ended: nothing is expected of them.
    pub(crate) fn rest(&self) {
        *self.pulse.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn set_joined(&self, joined: bool) {
        self.joined.store(joined, Ordering::Relaxed);
    }

    /// A sink that has ended is neither unhealthy nor waited for.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.rest();
        self.partitions().clear();
    }

    /// Records held of a partition, and its first record that is not stored.
    fn held(&self, place: &TopicPartition, stored: Option<i64>) -> (u64, Option<First>) {
        let lanes = self.buffered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = (0, None);
        for lane in lanes.iter() {
            let lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(here) = lane.get(place) {
                held.0 += here.records as u64;
                held.1 = held.1.or_else(|| here.first_at(stored?));
            }
        }
        held
    }

    fn series(&self, place: &TopicPartition, shown: &Shown) -> PartitionSeries {
        let (buffered_records, first) = self.held(place, shown.stored);
        let ends = shown.ends.map(|(_, ends)| ends);
        let before =
            |end: fn(&Ends) -> i64| shown.ends.and_then(|(stored, ends)| Some((end(&ends) - stored?).max(0)));
        PartitionSeries {
            group: self.group.to_string(),
            topic: place.topic.to_string(),
            partition: place.partition,
            lag_records: before(|ends| ends.high_watermark),
            lag_readable_records: before(|ends| ends.last_stable),
            lag_seconds: lag_seconds(shown, first, now()),
            stored_offset: shown.stored,
            high_watermark: ends.map(|ends| ends.high_watermark),
            last_stable_offset: ends.map(|ends| ends.last_stable),
            log_start_offset: ends.map(|ends| ends.log_start),
            buffered_records,
            state: shown.state,
        }
    }

    fn healthy_at(&self, now: Instant) -> Result<(), String> {
        let pulse = *self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pulse) = pulse else { return Ok(()) };
        let slowest = pulse.slowest.max(now.saturating_duration_since(pulse.at));
        if slowest > HANGS_AFTER {
            return Err(format!("group {}: a loop took no turn for {} s", self.group, slowest.as_secs()));
        }
        Ok(())
    }
}

/// From facts: the age of the first record that is not stored, nothing at the end of what can be read, else unknown. `now` in milliseconds.
fn lag_seconds(shown: &Shown, first: Option<First>, now: i64) -> Option<f64> {
    match (first, shown.stored, shown.ends) {
        (Some(first), ..) => first.timestamp.map(|then| now.saturating_sub(then).max(0) as f64 / 1000.0),
        (None, Some(stored), Some((_, ends))) if stored >= ends.last_stable => Some(0.0),
        _ => None,
    }
}

impl Live for LiveSink {
    fn partition_series(&self) -> Vec<PartitionSeries> {
        self.partitions().iter().map(|(place, shown)| self.series(place, shown)).collect()
    }

    fn healthy(&self) -> Result<(), String> {
        self.healthy_at(Instant::now())
    }

    fn ready(&self) -> Result<(), String> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !self.joined.load(Ordering::Relaxed) {
            return Err(format!("group {}: not joined yet", self.group));
        }
        match self.partitions().iter().find(|(_, shown)| shown.state == "claiming") {
            Some((place, _)) => Err(format!("group {}: {place} is not claimed yet", self.group)),
            None => Ok(()),
        }
    }
}

/// Milliseconds since the epoch.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(now).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
