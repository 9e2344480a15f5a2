//! `reset`: the operator's word to start over, which also takes over cluster, topic id and sink.

use oncesink::config::SinkSection;
use oncesink::kafka::{Ends, Monitor};
use oncesink::position::StartPolicy;
use oncesink::store::TopicIdentity;
use oncesink::store::operate::{Reset as StoreReset, ResetTo};
use oncesink::{TopicPartition, Topics};
use serde_json::json;

use super::{Context, MovedRow, answer, cluster, moved_line, place, who};
use crate::arguments::{Reset, Target};
use crate::exit::{Exit, Failed};

pub(crate) async fn run(context: &Context, reset: &Reset) -> Result<Exit, Failed> {
    let place = place(&reset.at.place)?;
    let sink = place.sink(&context.config)?;
    if place.partition.is_none() && reset.expect.is_some() {
        return Err(Failed::configuration("--expect needs one partition: TOPIC/PARTITION"));
    }
    if !Topics::parse(&sink.topics).is_ok_and(|topics| topics.select(&place.topic)) {
        let topics = sink.topics.join(", ");
        return Err(Failed::refused(format!(
            "{} does not read topic {:?}; it reads {topics}",
            sink.name, place.topic
        )));
    }
    let kafka = &context.config.kafka;
    let monitor = cluster::monitor(kafka)?;
    let asked = |error| cluster::at(kafka, &error);
    let cluster_id = monitor.cluster_id().await.map_err(asked)?;
    let facts = monitor.topics(&[place.topic.as_str().into()]).await.map_err(asked)?;
    let (id, count) = match facts.into_iter().next().map(cluster::present) {
        Some(Ok(present)) => present,
        Some(Err(reason)) => return Err(Failed::refused(format!("{}: {reason}", sink.name))),
        None => {
            return Err(Failed::preflight(format!(
                "kafka {}: no answer about {}",
                kafka.brokers(),
                place.topic
            )));
        }
    };
    let all = cluster::partitions(&place.topic, count);
    let wanted: Vec<TopicPartition> = match place.partition {
        None => all,
        Some(number) => all.into_iter().filter(|candidate| candidate.partition == number).collect(),
    };
    if wanted.is_empty() {
        return Err(Failed::refused(format!("{}: {place}: the topic has {count} partitions", sink.name)));
    }
    let target = reset.to.unwrap_or(Target::Policy(sink.start));
    let ends = cluster::ends(&monitor, kafka, &wanted).await?;
    let positions = positions(&monitor, target, &wanted, &ends).await?;
    let topic = TopicIdentity {
        name: place.topic.as_str().into(),
        id,
        target: identity(context, sink, &place.topic).await?.into(),
    };
    let to = match (place.partition, positions.as_slice()) {
        (Some(partition), [to]) => ResetTo::One { partition, expect: reset.expect, to: *to },
        _ => ResetTo::All { to: &positions, policy: policy(target, sink.start) },
    };
    let order = StoreReset { topic: &topic, cluster_id: &cluster_id, to, reason: &reset.reason };
    let moves = answer(sink, context.store(sink)?.reset(&order).await)?;
    let lines: Vec<String> =
        moves.iter().map(|moved| format!("{}: {}", sink.name, moved_line(moved))).collect();
    let rows: Vec<MovedRow> = moves.iter().map(MovedRow::from).collect();
    context.output.print(&json!({ "sink": sink.name, "reset": rows }), &lines.join("\n"));
    Ok(Exit::Done)
}

/// The sink and where its rows go, as a claim compares it.
async fn identity(context: &Context, sink: &SinkSection, topic: &str) -> Result<String, Failed> {
    let targets = context
        .registry
        .of(sink)?
        .targets(sink, &[topic.into()], &who())
        .await
        .map_err(|error| Failed::preflight(format!("{}: {}: {error}", sink.name, sink.target.shown())))?;
    let target = targets.into_iter().next().map(|(_, target)| target);
    Ok(format!("{}: {}", sink.name, target.unwrap_or_default()))
}

/// What is written down beside the count; a bare offset is no policy.
fn policy(target: Target, configured: StartPolicy) -> StartPolicy {
    match target {
        Target::Policy(policy) => policy,
        Target::Offset(_) => configured,
    }
}

/// Next offsets to read. The ends were read before the timestamp is looked up: a record that comes in between is read, not passed over.
async fn positions(
    monitor: &Monitor,
    target: Target,
    places: &[TopicPartition],
    ends: &[Ends],
) -> Result<Vec<i64>, Failed> {
    match target {
        Target::Policy(StartPolicy::Earliest) => Ok(ends.iter().map(|ends| ends.log_start).collect()),
        Target::Policy(StartPolicy::Latest) => Ok(ends.iter().map(|ends| ends.high_watermark).collect()),
        Target::Policy(StartPolicy::Timestamp(time)) => {
            let found = monitor
                .at_time(places, time)
                .await
                .map_err(|error| Failed::preflight(format!("kafka: {error}")))?;
            Ok(found
                .into_iter()
                .zip(ends)
                .map(|(found, ends)| found.unwrap_or(ends.high_watermark))
                .collect())
        }
        Target::Offset(offset) => {
            places.iter().zip(ends).map(|(place, ends)| within(place, offset, ends)).collect()
        }
    }
}

fn within(place: &TopicPartition, offset: i64, ends: &Ends) -> Result<i64, Failed> {
    if (ends.log_start..=ends.high_watermark).contains(&offset) {
        return Ok(offset);
    }
    Err(Failed::refused(format!(
        "{place}: offset {offset} is not there, {} to {} is possible; nothing was changed",
        ends.log_start, ends.high_watermark
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_outside_the_log_is_refused() {
        let ends = Ends { log_start: 10, high_watermark: 20, last_stable: 15, leader_epoch: None };
        let place = TopicPartition::new("t", 0);
        for (offset, possible) in [(9, false), (10, true), (17, true), (20, true), (21, false)] {
            assert_eq!(within(&place, offset, &ends).is_ok(), possible, "{offset}");
        }
        assert_eq!(within(&place, 9, &ends).unwrap_err().exit, Exit::Refused);
    }

    #[test]
    fn a_bare_offset_leaves_the_policy() {
        assert_eq!(policy(Target::Offset(5), StartPolicy::Latest), StartPolicy::Latest);
        assert_eq!(policy(Target::Policy(StartPolicy::Earliest), StartPolicy::Latest), StartPolicy::Earliest);
    }
}
