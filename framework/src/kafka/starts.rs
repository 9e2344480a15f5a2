//! The calls that change the client's assignment.
//!
//! Invariants: an unassign names exactly what is assigned, since one unknown partition makes librdkafka refuse the whole list and the group is stuck;
//! a start is an absolute offset, forwarded to its writer before the assign and again after it; a partition whose start failed is not assigned.
//! A list from `assignment()` holds its partitions, so it is dropped at once: one that outlived the client would make its close hang.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use super::context::places;
use super::events::{Event, Start};
use super::ffi::{SharedClient, SharedQueue, set_leader_epoch};
use crate::record::TopicPartition;

/// A seek is an exchange with librdkafka's own thread, done in a millisecond.
const SEEK: Duration = Duration::from_millis(500);
/// Long enough to send a request, too short for its answer, which nobody wants.
const NUDGE: Duration = Duration::from_millis(1);

/// What is assigned.
pub(super) fn assigned(client: &SharedClient) -> Vec<TopicPartition> {
    client.assignment().map(|list| places(&list)).unwrap_or_default()
}

fn list_of<'a>(wanted: impl IntoIterator<Item = &'a TopicPartition>) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for place in wanted {
        list.add_partition(&place.topic, place.partition);
    }
    list
}

fn intersection(client: &SharedClient, wanted: &[TopicPartition]) -> Vec<TopicPartition> {
    let wanted: BTreeSet<&TopicPartition> = wanted.iter().collect();
    assigned(client).into_iter().filter(|place| wanted.contains(place)).collect()
}

/// Answers an assignment with nothing; what was assigned comes later, claimed.
pub(super) fn answer_assign(client: &SharedClient) {
    answer_assign_with_nothing(client);
    wake_brokers(client, &assigned(client));
}

/// Answers a revoke with what is assigned of it, also when that is nothing.
pub(super) fn answer_revoke(client: &SharedClient, revoked: &[TopicPartition]) {
    let ours = intersection(client, revoked);
    if let Err(error) = client.incremental_unassign(&list_of(&ours)) {
        tracing::warn!(%error, "a revoke could not be answered, answering it with nothing");
        // Without any answer the whole group would wait for us for ever.
        answer_revoke_with_nothing(client);
    }
    wake_brokers(client, &assigned(client));
}

/// Answers a revoke when nothing is assigned any more. While a client closes this is the only answer: with it the group's part of librdkafka may end, and
/// whoever asks that part for the assignment afterwards waits for ever.
pub(super) fn answer_revoke_with_nothing(client: &SharedClient) {
    if let Err(error) = client.incremental_unassign(&TopicPartitionList::new()) {
        tracing::warn!(%error, "a revoke could not be answered");
    }
}

/// Answers an assignment with nothing while a client closes; asks for nothing afterwards either.
pub(super) fn answer_assign_with_nothing(client: &SharedClient) {
    if let Err(error) = client.incremental_assign(&TopicPartitionList::new()) {
        tracing::warn!(%error, "an assignment could not be answered");
    }
}

/// Unassigns what is assigned of these, outside a rebalance.
pub(super) fn unassign(client: &SharedClient, wanted: &[TopicPartition]) {
    let ours = intersection(client, wanted);
    if ours.is_empty() {
        return;
    }
    if let Err(error) = client.incremental_unassign(&list_of(&ours)) {
        tracing::warn!(%error, "partitions could not be unassigned");
    }
}

/// Carries out starts and gives an answer for each, in their order.
pub(super) fn assign(client: &SharedClient, queues: &[Arc<SharedQueue>], starts: Vec<Start>) -> Vec<Event> {
    let assigned: BTreeSet<TopicPartition> = assigned(client).into_iter().collect();
    let mut outcomes: Vec<Result<(), String>> =
        starts.iter().map(|start| prepare(queues, &assigned, start)).collect();

    let ready: Vec<usize> = (0..starts.len()).filter(|&i| outcomes[i].is_ok()).collect();
    if incremental_assign(client, ready.iter().map(|&i| &starts[i])).is_err() {
        // The list is refused as a whole, so that one bad element would hold up the others.
        for &i in &ready {
            outcomes[i] = incremental_assign(client, [&starts[i]]).map_err(|error| error.to_string());
        }
    }
    for (start, outcome) in starts.iter().zip(&mut outcomes) {
        if outcome.is_ok() {
            *outcome = follow_up(client, queues, start);
        }
    }
    let begun = starts.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
    let begun: Vec<TopicPartition> = begun.map(|(start, _)| start.place.clone()).collect();
    wake_brokers(client, &begun);
    starts.into_iter().zip(outcomes).map(|(start, outcome)| answer(start, outcome)).collect()
}

/// Checks what librdkafka would take differently than meant, and forwards.
fn prepare(
    queues: &[Arc<SharedQueue>],
    assigned: &BTreeSet<TopicPartition>,
    start: &Start,
) -> Result<(), String> {
    if start.offset < 0 {
        return Err(format!("{} is no absolute offset", start.offset));
    }
    if assigned.contains(&start.place) {
        return Err("it is assigned already; it must be unassigned first".into());
    }
    forward(queues, start)
}

fn forward(queues: &[Arc<SharedQueue>], start: &Start) -> Result<(), String> {
    let queue = queues.get(start.writer).ok_or_else(|| format!("there is no writer {}", start.writer))?;
    queue.forward(&start.place).then_some(()).ok_or_else(|| "librdkafka has no queue for it".into())
}

fn incremental_assign<'a>(
    client: &SharedClient,
    starts: impl IntoIterator<Item = &'a Start>,
) -> KafkaResult<()> {
    let mut list = TopicPartitionList::new();
    for start in starts {
        list.add_partition_offset(&start.place.topic, start.place.partition, Offset::Offset(start.offset))?;
    }
    if list.count() == 0 {
        return Ok(());
    }
    client.incremental_assign(&list)?;
    list.elements().iter().try_for_each(|element| element.error())
}

/// Forwards again, since the forward set before may have been lost to an earlier unassign that ends only now, and has the leader epoch checked.
fn follow_up(client: &SharedClient, queues: &[Arc<SharedQueue>], start: &Start) -> Result<(), String> {
    let done = forward(queues, start).and_then(|()| match start.leader_epoch {
        Some(epoch) => seek(client, start, epoch),
        None => Ok(()),
    });
    if done.is_err() {
        unassign(client, std::slice::from_ref(&start.place));
    }
    done
}

/// Seeks to where the partition begins anyway: only this, with an epoch, makes librdkafka ask the leader whether its log was cut in between. The answer
/// comes through the queue.
fn seek(client: &SharedClient, start: &Start, epoch: i32) -> Result<(), String> {
    let mut list = TopicPartitionList::new();
    let place = &start.place;
    list.add_partition_offset(&place.topic, place.partition, Offset::Offset(start.offset))
        .map_err(|error| error.to_string())?;
    set_leader_epoch(&mut list, 0, epoch);
    let list = client.seek_partitions(list, SEEK).map_err(|error| error.to_string())?;
    list.elements()
        .iter()
        .try_for_each(|element| element.error())
        .map_err(|error| format!("its leader epoch cannot be checked: {error}"))
}

fn answer(start: Start, outcome: Result<(), String>) -> Event {
    match outcome {
        Ok(()) => Event::Positioned { place: start.place, claim: start.claim },
        Err(reason) => Event::Refused { place: start.place, claim: start.claim, reason },
    }
}

/// Resuming after a rebalance, and an assign, do not wake the brokers' threads, which sleep up to a second; a request does.
pub(super) fn wake_brokers(client: &SharedClient, wanted: &[TopicPartition]) {
    if wanted.is_empty() {
        return;
    }
    let mut list = TopicPartitionList::new();
    for place in wanted {
        // As a time, End asks for the latest offset, which the leader knows by heart.
        let _ = list.add_partition_offset(&place.topic, place.partition, Offset::End);
    }
    let _ = client.offsets_for_times(list, NUDGE);
}
