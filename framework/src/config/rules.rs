//! Rules over several keys: what each alone may say and both together may not.

use std::collections::BTreeMap;

use super::error::Problems;
use super::sink::{self, SinkSection};
use super::units::show_bytes;

/// A writer must be able to hold one record of Kafka's default limit.
const LEAST_PAYLOAD: u64 = 1 << 20;

pub(crate) fn check(sinks: &[SinkSection], problems: &mut Problems) {
    let mut groups: BTreeMap<&str, &str> = BTreeMap::new();
    for sink in sinks {
        if let Some(other) = groups.insert(&sink.group, &sink.name) {
            problems.add(
                &sink.places.group,
                format!(
                    "sinks.{}.group: {:?} is the group of [sinks.{other}] too; each sink needs a group of its own",
                    sink.name, sink.group
                ),
            );
        }
        memory(sink, problems);
    }
}

fn memory(sink: &SinkSection, problems: &mut Problems) {
    let writers = i64::try_from(sink.writers).unwrap_or(i64::MAX);
    let limit = sink::payload_limit(sink.memory, writers);
    let needed = |payload: u64| show_bytes(payload * 3 * sink.writers as u64);
    let name = &sink.name;
    let plural = if writers == 1 { "" } else { "s" };
    if limit < LEAST_PAYLOAD {
        problems.add(
            &sink.places.memory,
            format!(
                "sinks.{name}.memory: {} is too small for {writers} writer{plural}, at least {} is needed",
                show_bytes(sink.memory),
                needed(LEAST_PAYLOAD)
            ),
        );
    } else if let Some(at) = &sink.places.batch_bytes
        && sink.batch.bytes > limit
    {
        problems.add(
            at,
            format!(
                "sinks.{name}.batch.bytes: {} does not fit memory = {:?} with {writers} writer{plural}, which needs three times a batch for each: at least {}",
                show_bytes(sink.batch.bytes),
                show_bytes(sink.memory),
                needed(sink.batch.bytes)
            ),
        );
    }
}
