//! Resolving start policies into offsets.

use std::sync::Arc;

use crate::error::{Class, Failure};
use crate::kafka::{Ends, Monitor, MonitorError};
use crate::position::StartPolicy;
use crate::record::TopicPartition;
use crate::store::{Starts, TopicIdentity};

/// The ends of all these partitions, or none: one that cannot be read is a failure of the whole, to be tried again.
pub(crate) async fn all_ends(monitor: &Monitor, places: &[TopicPartition]) -> Result<Vec<Ends>, Failure> {
    let answers = monitor.ends(places).await.map_err(from_kafka)?;
    let mut ends = Vec::with_capacity(answers.len());
    for (place, answer) in places.iter().zip(answers) {
        ends.push(
            answer
                .map_err(|reason| Failure::new(Class::Transient, format!("the ends of {place}: {reason}")))?,
        );
    }
    Ok(ends)
}

/// Offsets by policy. For a time the end is read first, both read uncommitted: a record that comes between is then found by its time, and "none" means
/// that end.
pub(crate) async fn resolve(
    monitor: &Monitor,
    places: &[TopicPartition],
    policy: StartPolicy,
) -> Result<Vec<i64>, Failure> {
    let ends = all_ends(monitor, places).await?;
    match policy {
        StartPolicy::Earliest => Ok(ends.iter().map(|ends| ends.log_start).collect()),
        StartPolicy::Latest => Ok(ends.iter().map(|ends| ends.high_watermark).collect()),
        StartPolicy::Timestamp(time) => {
            let found = monitor.at_time(places, time).await.map_err(from_kafka)?;
            Ok(found
                .into_iter()
                .zip(ends)
                .map(|(offset, ends)| offset.unwrap_or(ends.high_watermark))
                .collect())
        }
    }
}

/// Where the partitions of a topic begin that have no row: by the policy at the topic's first claim, at their beginning when they came later.
pub(crate) async fn of_topic(
    monitor: &Monitor,
    topic: &TopicIdentity,
    partitions: i32,
    policy: StartPolicy,
    first_claim: bool,
) -> Result<Starts, Failure> {
    let places: Vec<TopicPartition> =
        (0..partitions).map(|partition| TopicPartition::new(Arc::clone(&topic.name), partition)).collect();
    let beginning = resolve(monitor, &places, StartPolicy::Earliest).await?;
    let first = match policy {
        StartPolicy::Earliest => beginning.clone(),
        _ if !first_claim => beginning.clone(),
        policy => resolve(monitor, &places, policy).await?,
    };
    Ok(Starts { topic: topic.clone(), policy, first, beginning })
}

/// A question to the brokers that failed.
pub(crate) fn from_kafka(error: MonitorError) -> Failure {
    let class = match error {
        MonitorError::Transient(_) => Class::Transient,
        MonitorError::Authentication(_) | MonitorError::Authorization(_) => Class::Fatal,
    };
    Failure::new(class, error.to_string())
}
