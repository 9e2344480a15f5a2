//! What verbs ask Kafka, through a client without a group.

use std::sync::Arc;

use oncesink::TopicPartition;
use oncesink::config::KafkaSection;
use oncesink::kafka::{Ends, Monitor, MonitorError, TopicFacts, TopicState};

use crate::exit::Failed;

/// A client without a group.
pub(crate) fn monitor(kafka: &KafkaSection) -> Result<Monitor, Failed> {
    let properties = kafka.current().map_err(Failed::configuration)?;
    // Files that are named but cannot be used: what the file of the configuration says is well, so it is not that.
    Monitor::new(&properties).map_err(|error| Failed::preflight(format!("kafka: {error}")))
}

/// Puts the brokers in front of what they say.
pub(crate) fn at(kafka: &KafkaSection, error: &MonitorError) -> Failed {
    Failed::preflight(format!("kafka {}: {error}", kafka.brokers()))
}

/// A topic's id, empty when the brokers tell none, and its partition count.
pub(crate) fn present(facts: TopicFacts) -> Result<(Arc<str>, i32), String> {
    match facts.state {
        TopicState::Exists { id, partitions } => Ok((id.unwrap_or_default().into(), partitions)),
        TopicState::Unknown => Err(format!("topic {}: no such topic", facts.name)),
        TopicState::Error(reason) => Err(format!("topic {}: {reason}", facts.name)),
    }
}

/// All partitions of a topic.
pub(crate) fn partitions(topic: &str, count: i32) -> Vec<TopicPartition> {
    let topic: Arc<str> = topic.into();
    (0..count).map(|partition| TopicPartition { topic: Arc::clone(&topic), partition }).collect()
}

/// The ends of partitions that must all be known.
pub(crate) async fn ends(
    monitor: &Monitor,
    kafka: &KafkaSection,
    places: &[TopicPartition],
) -> Result<Vec<Ends>, Failed> {
    let answers = monitor.ends(places).await.map_err(|error| at(kafka, &error))?;
    places
        .iter()
        .zip(answers)
        .map(|(place, answer)| {
            answer
                .map_err(|reason| Failed::preflight(format!("kafka {}: {place}: {reason}", kafka.brokers())))
        })
        .collect()
}
