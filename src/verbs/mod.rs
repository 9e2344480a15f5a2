//! What the verbs do. Each prints one result and ends with one exit code.
//!
//! Invariant: a verb that is refused, or that cannot do what it was asked, has changed nothing and does not end with 0.

pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod migrate;
pub(crate) mod preview;
pub(crate) mod reset;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod skip;
pub(crate) mod status;

use oncesink::TopicPartition;
use oncesink::config::{Config, SinkSection};
use oncesink::store::operate::{Moved, VerbError};
use serde::Serialize;

use crate::exit::Failed;
use crate::output::Output;
use crate::place::Place;
use crate::registry::{AnyStore, Registry};

/// What every verb works with.
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) output: Output,
}

impl Context {
    /// The store of a sink.
    pub(crate) fn store(&self, sink: &SinkSection) -> Result<Box<dyn AnyStore>, Failed> {
        self.registry.of(sink)?.store(sink, &sink.group, &who()).map_err(|failure| at(sink, failure))
    }
}

/// Puts the sink in front of what its database says.
pub(crate) fn at(sink: &SinkSection, failure: oncesink::Failure) -> Failed {
    // Our own tables are all that verbs ask for.
    let no_table = match failure.sql_state.as_deref() {
        Some("42P01") => true,
        Some("SQLITE_ERROR") => failure.message.contains("no such table"),
        _ => false,
    };
    let remedy = if no_table { ". Run: oncesink migrate" } else { "" };
    Failed::preflight(format!("{}: {}: {failure}{remedy}", sink.name, sink.target.shown()))
}

/// The place as words; a wrong one is a mistake on the command line.
pub(crate) fn place(words: &[String]) -> Result<Place, Failed> {
    Place::parse(words).map_err(Failed::configuration)
}

/// The place's one partition, for verbs that need one.
pub(crate) fn partition(place: &Place) -> Result<TopicPartition, Failed> {
    match place.partition {
        Some(partition) => Ok(TopicPartition::new(place.topic.as_str(), partition)),
        None => Err(Failed::configuration(format!("{place}: name one partition: {place}/0"))),
    }
}

/// A verb's answer from the store.
pub(crate) fn answer<T>(sink: &SinkSection, answer: Result<T, VerbError>) -> Result<T, Failed> {
    answer.map_err(|error| match error {
        VerbError::Refused(reason) => Failed::refused(format!("{}: {reason}", sink.name)),
        VerbError::Failed(failure) => at(sink, failure),
    })
}

/// A moved partition for machines.
#[derive(Debug, Serialize)]
pub(crate) struct MovedRow {
    topic: String,
    partition: i32,
    old_offset: Option<i64>,
    new_offset: Option<i64>,
}

impl From<&Moved> for MovedRow {
    fn from(moved: &Moved) -> Self {
        Self {
            topic: moved.place.topic.to_string(),
            partition: moved.place.partition,
            old_offset: moved.old,
            new_offset: moved.new,
        }
    }
}

/// A moved partition for people.
pub(crate) fn moved_line(moved: &Moved) -> String {
    let place = &moved.place;
    match (moved.old, moved.new) {
        (Some(old), Some(new)) if old == new => format!("{place}: stays at offset {new}"),
        (Some(old), Some(new)) => format!("{place}: from offset {old} to {new}"),
        (None, Some(new)) => format!("{place}: begins at offset {new}"),
        (Some(old), None) => format!("{place}: stood at offset {old} and is gone from the topic"),
        (None, None) => format!("{place}: nothing to do"),
    }
}

/// Who acts, for the events that verbs write.
fn who() -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map_or("unknown", str::trim);
    format!("{}@{host}", user.as_deref().unwrap_or("unknown"))
}

#[cfg(test)]
mod on_sqlite;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_read_as_sentences() {
        let moved = |old, new| moved_line(&Moved { place: TopicPartition::new("t", 1), old, new });
        assert_eq!(moved(Some(1), Some(2)), "t/1: from offset 1 to 2");
        assert_eq!(moved(Some(2), Some(2)), "t/1: stays at offset 2");
        assert_eq!(moved(None, Some(2)), "t/1: begins at offset 2");
        assert_eq!(moved(Some(2), None), "t/1: stood at offset 2 and is gone from the topic");
    }

    #[test]
    fn a_partition_must_be_named_where_one_is_needed() {
        let words = |text: &str| place(&[text.to_owned()]).unwrap();
        assert_eq!(partition(&words("orders/3")).unwrap(), TopicPartition::new("orders", 3));
        assert_eq!(partition(&words("orders")).unwrap_err().exit, crate::Exit::Configuration);
        assert_eq!(place(&["a/b/c".to_owned()]).unwrap_err().exit, crate::Exit::Configuration);
    }
}
