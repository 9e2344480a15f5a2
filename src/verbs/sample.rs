//! The first records of a topic, and what a sink would make of them.
//!
//! Must not: join a group, write, or let a value reach the log.

use std::collections::BTreeSet;

use oncesink::config::{KafkaSection, SinkSection};
use oncesink::kafka::{Ends, Monitor};
use oncesink::{Part, Record, SinkError, TopicPartition};
use serde_json::value::RawValue;

use super::{Context, cluster, who};
use crate::exit::Failed;
use crate::registry::{Previewed, Sampled};

/// The first records of a topic: of each partition in turn, `limit` in all. None for a topic that is not there.
pub(crate) async fn first_records(
    monitor: &Monitor,
    kafka: &KafkaSection,
    sink: &SinkSection,
    topic: &str,
    limit: usize,
) -> Result<Option<Vec<Part>>, Failed> {
    let facts = monitor.topics(&[topic.into()]).await.map_err(|error| cluster::at(kafka, &error))?;
    let Some((_, count)) = facts.into_iter().next().and_then(|facts| cluster::present(facts).ok()) else {
        return Ok(None);
    };
    let places = cluster::partitions(topic, count);
    let ends = cluster::ends(monitor, kafka, &places).await?;
    let partitions: Vec<(TopicPartition, Ends)> = places.into_iter().zip(ends).collect();
    let parts = monitor.first_records(&sink.group, &partitions, limit).await;
    parts.map(Some).map_err(|error| cluster::at(kafka, &error))
}

/// A record of each partition in turn, up to so many, then in the order of partitions and offsets.
pub(crate) fn in_turn(parts: &[Part], limit: usize) -> Vec<Record<'_>> {
    let mut sources: Vec<_> = parts.iter().map(Part::records).collect();
    let mut chosen = Vec::new();
    loop {
        let before = chosen.len();
        for source in &mut sources {
            if chosen.len() < limit {
                chosen.extend(source.next());
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen.sort_by_key(|record| (record.partition(), record.offset()));
    chosen
}

/// What the sink makes of records.
pub(crate) async fn previewed(
    context: &Context,
    sink: &SinkSection,
    topic: &str,
    records: Vec<Record<'_>>,
) -> Result<(usize, Previewed), SinkError> {
    let sampled = Sampled { fields: fields(&records), records };
    let kind = context.registry.of(sink).map_err(|failed| oncesink::Failure::fatal(failed.message))?;
    let previewed = kind.preview(sink, &who(), topic, &sampled).await.map_err(|error| match error {
        SinkError::Failed(failure) => SinkError::Failed(failure.of_sink(&sink.name)),
        bad => bad,
    })?;
    Ok((sampled.fields.len(), previewed))
}

/// The top-level fields of the values that are JSON objects.
fn fields(records: &[Record<'_>]) -> Vec<String> {
    let mut fields = BTreeSet::new();
    for value in records.iter().filter_map(Record::value) {
        let object: Result<std::collections::BTreeMap<String, &RawValue>, _> = serde_json::from_slice(value);
        fields.extend(object.unwrap_or_default().into_keys());
    }
    fields.into_iter().collect()
}
