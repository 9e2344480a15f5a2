//! What people read of a running sink: one line for each change of state, none per record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kafka::Ends;
use crate::record::TopicPartition;
use crate::remedy;
use crate::supervisor::live::LiveSink;
use crate::supervisor::preflight::Checked;
use crate::supervisor::settings::SinkSettings;
use crate::supervisor::sinks::Ended;
use crate::supervisor::state::{Halt, HaltState, Partitions};

/// After this long without an assignment we say what is waited for.
const GROUP_SLOW: Duration = Duration::from_secs(2);

/// The counts between two lines.
pub(crate) struct Chronicle {
    name: Arc<str>,
    group: Arc<str>,
    writers: usize,
    targets: String,
    started: Instant,
    joined: bool,
    waited: bool,
    claimed: BTreeMap<TopicPartition, i64>,
    /// Partitions that do not flow while others do, and since when.
    sick: BTreeMap<TopicPartition, Instant>,
    rows: u64,
    transactions: u64,
    busy_since: Option<Instant>,
    /// How the sink is to end when it has drained.
    pub(crate) ending: Option<Ended>,
}

impl Chronicle {
    pub(crate) fn new(settings: &SinkSettings, checked: &Checked) -> Self {
        let prefix = format!("{}: ", settings.name);
        let mut targets: Vec<&str> =
            checked.targets.values().map(|target| target.strip_prefix(&prefix).unwrap_or(target)).collect();
        targets.sort_unstable();
        targets.dedup();
        Self {
            name: Arc::clone(&settings.name),
            group: Arc::clone(&settings.group),
            writers: settings.writers,
            targets: targets.join(", "),
            started: Instant::now(),
            joined: false,
            waited: false,
            claimed: BTreeMap::new(),
            sick: BTreeMap::new(),
            rows: 0,
            transactions: 0,
            busy_since: None,
            ending: None,
        }
    }

    pub(crate) fn joined(&mut self) {
        self.joined = true;
    }

    pub(crate) fn assigned(&mut self, partitions: usize) {
        self.joined = true;
        tracing::debug!(sink = &*self.name, "{partitions} partitions assigned");
    }

    pub(crate) fn tick(&mut self) {
        if !self.joined && !self.waited && self.started.elapsed() > GROUP_SLOW {
            self.waited = true;
            tracing::info!(
                "{}: waiting for the group to share out its partitions; a member that was killed holds them until its session timeout, 10 s by default",
                self.name
            );
        }
    }

    pub(crate) fn claimed(&mut self, place: &TopicPartition, offset: i64) {
        tracing::debug!("{place} claimed at offset {offset}");
        // One that is tried again and again is told once.
        if !self.sick.contains_key(place) {
            self.claimed.insert(place.clone(), offset);
        }
    }

    /// A partition does not flow while others do: one line at the begin, none per attempt.
    pub(crate) fn sick(&mut self, place: &TopicPartition, reason: &str) {
        if !self.sick.contains_key(place) {
            tracing::warn!("{place}: {reason}");
            self.sick.insert(place.clone(), Instant::now());
        }
    }

    /// One line for a burst of claims, when all have ended.
    pub(crate) fn settled(&mut self, settled: bool, partitions: &Partitions) {
        if !settled || self.claimed.is_empty() {
            return;
        }
        let claimed = std::mem::take(&mut self.claimed);
        let still = claimed.keys().filter(|place| partitions.get(place).is_some()).count();
        let from = match (claimed.values().min(), claimed.values().max()) {
            (Some(0), Some(0)) => "from offset 0".to_owned(),
            _ => "from stored offsets".to_owned(),
        };
        tracing::info!(
            "{}: {still} partitions claimed {from}, into {}, {} writers, group {}",
            self.name,
            self.targets,
            self.writers,
            self.group
        );
    }

    pub(crate) fn stored(&mut self, place: &TopicPartition, records: usize) {
        if let Some(since) = self.sick.remove(place) {
            tracing::info!("{place}: flows again after {:.1} s", since.elapsed().as_secs_f64());
        }
        self.busy_since.get_or_insert_with(Instant::now);
        self.rows += records as u64;
        self.transactions += 1;
    }

    /// Takes the ends into what metrics show, and says when everything here is caught up.
    pub(crate) fn ends(&mut self, ends: &[(TopicPartition, Option<i64>, Ends)], live: &LiveSink) {
        let mut shown = live.partitions();
        for (place, stored, ends) in ends {
            if let Some(shown) = shown.get_mut(place) {
                shown.ends = Some((*stored, *ends));
            }
        }
        let caught_up = shown.values().filter(|shown| shown.state == "running").all(|shown| {
            shown.ends.zip(shown.stored).is_some_and(|((_, ends), stored)| stored >= ends.last_stable)
        });
        drop(shown);
        if let Some(since) = self.busy_since.filter(|_| caught_up) {
            tracing::info!(
                "{}: caught up: {} records in {:.1} s",
                self.name,
                self.rows,
                since.elapsed().as_secs_f64()
            );
            (self.rows, self.transactions, self.busy_since) = (0, 0, None);
        }
    }

    /// The line that decides whether people stay: what stopped, what flows on, and the command that helps.
    pub(crate) fn halted(
        &mut self,
        place: &TopicPartition,
        halt: &Halt,
        stored: Option<i64>,
        running: usize,
    ) {
        self.sick.remove(place);
        let name = &self.name;
        let at = stored.map(|offset| format!("@{offset}")).unwrap_or_default();
        let flow = match running {
            0 => "no other partition is running here".to_owned(),
            1 => "1 partition flows on".to_owned(),
            more => format!("{more} partitions flow on"),
        };
        let to_reset = |place: &dyn std::fmt::Display| {
            remedy::command(format_args!("reset {name} {place} --to earliest --reason \"...\""))
        };
        let to_resume = remedy::command(format_args!("resume {name} {place}"));
        match halt.state {
            HaltState::Refused => tracing::error!(
                "{place} refused: {}. Nothing was touched; {flow}. To start over in this topic: {}",
                halt.reason,
                to_reset(&place.topic)
            ),
            HaltState::Paused => {
                tracing::warn!("{place}{at} paused: {}. {flow}. To go on: {to_resume}", halt.reason);
            }
            HaltState::Stopped if halt.bad_record => {
                let offset = stored.unwrap_or(0);
                let to_skip = format_args!("skip {name} {place} --expect {offset} --reason \"...\"");
                let to_skip = remedy::command(to_skip);
                tracing::error!(
                    "{place}{at} stopped: {}. {flow}. Nothing of {offset} or later is written. \
                     Fix the table or the producer, then: {to_resume}\n      or leave it out: {to_skip}",
                    halt.reason
                );
            }
            HaltState::Stopped => tracing::error!(
                "{place}{at} stopped: {}. {flow}. To start over: {}",
                halt.reason,
                to_reset(place)
            ),
        }
    }

    /// The last line.
    pub(crate) fn ended(&self) {
        tracing::info!("{}: stopped; every offset that was reached is stored", self.name);
    }

    pub(crate) fn reached(&mut self, ended: &Ended) {
        match ended {
            Ended::Short(places) => {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                tracing::error!(
                    "{}: the end is not reached: stopped short are {}",
                    self.name,
                    places.join(", ")
                );
            }
            _ => tracing::info!("{}: the end is reached", self.name),
        }
    }
}
