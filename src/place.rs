//! `[SINK] TOPIC/PARTITION` as it stands on the command line and in log lines.

use std::fmt;

use oncesink::config::{Config, SinkSection};

use crate::exit::Failed;

/// A partition of a sink, or a topic with all its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sink: Option<String>,
    pub(crate) topic: String,
    pub(crate) partition: Option<i32>,
}

impl Place {
    /// One or two words.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let (sink, place) = match words {
            [place] => (None, place),
            [sink, place] => (Some(sink.clone()), place),
            _ => return Err("a place is [SINK] TOPIC/PARTITION or [SINK] TOPIC".to_owned()),
        };
        let (topic, partition) = match place.rsplit_once('/') {
            None => (place.as_str(), None),
            Some((topic, number)) => {
                let legal = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
                let number: i32 = number.parse().ok().filter(|_| legal).ok_or_else(|| {
                    format!("{number:?} in {place:?} is no partition; a place is TOPIC/PARTITION: orders/3")
                })?;
                (topic, Some(number))
            }
        };
        if topic.is_empty() || topic.contains('/') {
            return Err(format!("{place:?} names no topic; a place is TOPIC/PARTITION: orders/3"));
        }
        Ok(Self { sink, topic: topic.to_owned(), partition })
    }

    /// The sink that is meant: the named one, or the only one.
    pub(crate) fn sink<'c>(&self, config: &'c Config) -> Result<&'c SinkSection, Failed> {
        sink(self.sink.as_deref(), config)
    }
}

/// The sink of this name, or the only one.
pub(crate) fn sink<'c>(name: Option<&str>, config: &'c Config) -> Result<&'c SinkSection, Failed> {
    let names = || config.sinks.iter().map(|sink| sink.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, config.sinks.as_slice()) {
        (None, [only]) => Ok(only),
        (None, _) => {
            Err(Failed::refused(format!("there are several sinks, name one of them first: {}", names())))
        }
        (Some(name), sinks) => sinks
            .iter()
            .find(|sink| sink.name == name)
            .ok_or_else(|| Failed::refused(format!("there is no sink {name:?}; there is {}", names()))),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sink) = &self.sink {
            write!(f, "{sink} ")?;
        }
        f.write_str(&self.topic)?;
        match self.partition {
            Some(partition) => write!(f, "/{partition}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Place, String> {
        Place::parse(&words.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn places() {
        for (words, sink, topic, partition) in [
            ("orders/3", None, "orders", Some(3)),
            ("shop orders/0", Some("shop"), "orders", Some(0)),
            ("orders", None, "orders", None),
            ("shop shop.orders-v1", Some("shop"), "shop.orders-v1", None),
            ("orders/2147483647", None, "orders", Some(i32::MAX)),
        ] {
            let place = parse(words).unwrap();
            assert_eq!(
                (place.sink.as_deref(), place.topic.as_str(), place.partition),
                (sink, topic, partition)
            );
            assert_eq!(place.to_string(), words);
        }
    }

    #[test]
    fn no_places() {
        for words in
            ["", "/3", "orders/", "orders/x", "orders/-1", "orders/+1", "orders/2147483648", "a/b/3", "a b c"]
        {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
