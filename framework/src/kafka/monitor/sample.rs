//! The first records of a topic, for people who look before they run.
//!
//! Invariants: partitions are assigned, never subscribed to, so no group is joined and nobody's rebalance is caused; nothing is committed. Must not: be used
//! for anything that is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::{Client, Ends, Monitor, MonitorError, create};
use crate::batch::{Part, SliceBuilder};
use crate::kafka::ffi::RawRecord;
use crate::position::after;
use crate::record::TopicPartition;

/// How long records may take to come.
const READ_MAX: Duration = Duration::from_secs(10);
/// What a consumer of a few records needs; `group.id` is for librdkafka alone, which assigns nothing without one.
const READING: [(&str, &str); 8] = [
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "error"),
    ("isolation.level", "read_committed"),
    ("enable.partition.eof", "true"),
    ("check.crcs", "true"),
    ("queued.max.messages.kbytes", "1024"),
    ("fetch.wait.max.ms", "50"),
];

impl Monitor {
    /// The first records that each of these partitions still has, at most `each` of one, partition by partition. A partition that gives none in time is left
    /// out. The group's name is shown to brokers that check it; the group is not joined.
    ///
    /// # Errors
    /// As [`MonitorError`] says, when no partition gives anything although there is something.
    pub async fn first_records(
        &self,
        group: &str,
        partitions: &[(TopicPartition, Ends)],
        each: usize,
    ) -> Result<Vec<Part>, MonitorError> {
        let mut config = self.0.config.clone();
        config.set("group.id", group);
        for (key, value) in READING {
            config.set(key, value);
        }
        let wanted: Vec<(TopicPartition, Ends)> =
            partitions.iter().filter(|(_, ends)| ends.log_start < ends.last_stable).cloned().collect();
        if wanted.is_empty() || each == 0 {
            return Ok(Vec::new());
        }
        let read = tokio::task::spawn_blocking(move || read(&config, &wanted, each));
        read.await.unwrap_or_else(|_| Err(MonitorError::Transient("the reading was abandoned".into())))
    }
}

fn read(
    config: &ClientConfig,
    wanted: &[(TopicPartition, Ends)],
    each: usize,
) -> Result<Vec<Part>, MonitorError> {
    let failed = |error: &dyn std::fmt::Display| MonitorError::Transient(error.to_string());
    let client = create(config).map_err(|error| failed(&error))?;
    let mut parts = Vec::new();
    let mut topics: BTreeMap<&str, Vec<&(TopicPartition, Ends)>> = BTreeMap::new();
    for partition in wanted {
        topics.entry(&partition.0.topic).or_default().push(partition);
    }
    // One topic after the other: an end of partition bears only its number.
    for partitions in topics.values() {
        let mut list = TopicPartitionList::new();
        for (place, ends) in partitions {
            let start = Offset::Offset(ends.log_start);
            list.add_partition_offset(&place.topic, place.partition, start)
                .map_err(|error| failed(&error))?;
        }
        client.assign(&list).map_err(|error| failed(&error))?;
        parts.append(&mut records(&client, partitions, each)?);
    }
    Ok(parts)
}

fn records(
    client: &Client,
    partitions: &[&(TopicPartition, Ends)],
    each: usize,
) -> Result<Vec<Part>, MonitorError> {
    let mut open: BTreeSet<i32> = partitions.iter().map(|(place, _)| place.partition).collect();
    let mut slices: BTreeMap<i32, (SliceBuilder, i64)> = partitions
        .iter()
        .map(|(place, ends)| {
            (place.partition, (SliceBuilder::new(place.clone(), ends.log_start), ends.last_stable))
        })
        .collect();
    let (deadline, mut trouble) = (Instant::now() + READ_MAX, None);
    while !open.is_empty() && Instant::now() < deadline {
        match client.poll(Duration::from_millis(100)) {
            None => {}
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(error)) => trouble = Some(error.to_string()),
            Some(Ok(message)) => {
                let Some((slice, end)) = slices.get_mut(&message.partition()) else { continue };
                let record = RawRecord::of(&message);
                if slice.len() < each && record.offset() >= slice.to() {
                    let (offset, timestamp) = (record.offset(), record.timestamp());
                    slice.push(
                        offset,
                        timestamp,
                        record.leader_epoch(),
                        record.key(),
                        record.value(),
                        record.headers(),
                    );
                }
                if slice.len() >= each || after(record.offset()) >= *end {
                    open.remove(&message.partition());
                }
            }
        }
    }
    let read: Vec<Part> = slices
        .into_values()
        .filter(|(slice, _)| !slice.is_empty())
        .map(|(slice, _)| Part::whole(Arc::new(slice.build())))
        .collect();
    // Where all that is left are records of transactions that were given up, there is nothing to read, and the ends say so.
    if read.is_empty() && !open.is_empty() {
        let seconds = READ_MAX.as_secs();
        return Err(MonitorError::Transient(
            trouble.unwrap_or_else(|| format!("no record came within {seconds} s")),
        ));
    }
    Ok(read)
}
