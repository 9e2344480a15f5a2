//! What a sink reads: topics by name, and patterns for those that are there now or come later.
//!
//! Invariants: a pattern begins with `^`, which no topic's name can hold, so that one list says both; it is expanded here, by us, and never by librdkafka or the
//! brokers, whose regex languages differ from each other: what the group is subscribed to is always a list of names that we know. Internal topics, those
//! whose name begins with `__`, never match.

use std::sync::Arc;

use regex::Regex;

/// Longest name of a topic, and of a pattern, which is recorded beside the topics.
const NAME_MAX: usize = 249;
/// Brokers keep their own topics under such names: `__consumer_offsets`, `__transaction_state`.
const INTERNAL: &str = "__";

/// The topics of a sink, read from the list in `topics`.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    names: Vec<Arc<str>>,
    patterns: Vec<Pattern>,
}

/// Topics by a regex, as it stands in the list: `^shop\.invoice-.*`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Arc<str>,
    regex: Regex,
}

impl Pattern {
    /// As it stands in the list.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Whether a topic of this name belongs to it. The regex is anchored at its begin by its `^`; `$` anchors its end.
    pub fn matches(&self, topic: &str) -> bool {
        !topic.starts_with(INTERNAL) && self.regex.is_match(topic)
    }
}

impl Topics {
    /// Reads a list of names and patterns.
    ///
    /// # Errors
    /// The first element that is neither, and why.
    pub fn parse<T: AsRef<str>>(listed: impl IntoIterator<Item = T>) -> Result<Self, String> {
        let mut topics = Self::default();
        for text in listed {
            topics.add(text.as_ref())?;
        }
        Ok(topics)
    }

    pub(crate) fn add(&mut self, text: &str) -> Result<(), String> {
        if text.starts_with('^') {
            if self.patterns.iter().any(|pattern| &*pattern.text == text) {
                return Err(format!("{text:?} is named twice"));
            }
            self.patterns.push(Pattern { text: text.into(), regex: regex(text)? });
            return Ok(());
        }
        check_name(text)?;
        if self.names.iter().any(|name| &**name == text) {
            return Err(format!("{text:?} is named twice"));
        }
        self.names.push(text.into());
        Ok(())
    }

    /// The topics that are named, in the order of the list.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The patterns, in the order of the list.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty()
    }

    /// Whether this topic stands in the list by its name.
    pub fn is_named(&self, topic: &str) -> bool {
        self.names.iter().any(|name| &**name == topic)
    }

    /// The first pattern that a topic belongs to.
    pub fn pattern_of(&self, topic: &str) -> Option<&Pattern> {
        self.patterns.iter().find(|pattern| pattern.matches(topic))
    }

    /// Whether the sink reads this topic, by name or by a pattern.
    pub fn select(&self, topic: &str) -> bool {
        self.is_named(topic) || self.pattern_of(topic).is_some()
    }
}

fn regex(text: &str) -> Result<Regex, String> {
    let length = text.chars().count();
    if length > NAME_MAX {
        return Err(format!("a pattern has at most {NAME_MAX} characters, this one has {length}"));
    }
    Regex::new(text).map_err(|error| {
        // The crate draws the place over several lines; the last one says what is wrong.
        let words = error.to_string();
        let reason = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("{text:?} is no regex: {reason}")
    })
}

fn check_name(topic: &str) -> Result<(), String> {
    if topic.len() > NAME_MAX {
        return Err(format!(
            "a topic's name has at most {NAME_MAX} characters, this one has {}",
            topic.len()
        ));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if topic.is_empty() || topic == "." || topic == ".." || !topic.chars().all(legal) {
        return Err(format!(
            "{topic:?} is no name of a topic: letters, digits, '.', '_' and '-' are possible; a regex begins with ^"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_and_patterns() {
        let topics = Topics::parse(["shop.orders", "^shop\\.invoice-.*", "^eu\\.[a-z]+$"]).unwrap();
        assert_eq!(topics.names().iter().map(|name| &**name).collect::<Vec<_>>(), ["shop.orders"]);
        for (topic, selected) in [
            ("shop.orders", true),
            ("shop.orders2", false),
            ("shop.invoice-", true),
            ("shop.invoice-2026", true),
            ("shopXinvoice-1", false),
            ("eu-shop.invoice-1", false),
            ("eu.orders", true),
            ("eu.orders2", false),
        ] {
            assert_eq!(topics.select(topic), selected, "{topic}");
        }
        assert_eq!(topics.pattern_of("shop.orders").map(|pattern| pattern.text().to_string()), None);
        assert!(topics.is_named("shop.orders") && !topics.is_named("shop.invoice-1"));
    }

    #[test]
    fn internal_topics_never_match() {
        let topics = Topics::parse(["^.*"]).unwrap();
        assert!(topics.select("orders") && topics.select("_schemas"));
        assert!(!topics.select("__consumer_offsets") && !topics.select("__transaction_state"));
    }

    #[test]
    fn what_is_neither_is_told() {
        for (listed, expected) in [
            (["t", "t"], "\"t\" is named twice"),
            (["^t", "^t"], "\"^t\" is named twice"),
            (["t", "a topic"], "\"a topic\" is no name of a topic: letters"),
            (["t", ""], "\"\" is no name of a topic"),
            (["t", "^t("], "\"^t(\" is no regex: unclosed group"),
            (["t", "^(?=x)"], "\"^(?=x)\" is no regex: look-around"),
        ] {
            let error = Topics::parse(listed).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
        }
        let long = format!("^{}", "x".repeat(249));
        assert!(Topics::parse([long]).unwrap_err().contains("at most 249 characters, this one has 250"));
    }
}
