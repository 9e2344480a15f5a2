//! Places in a record: `value.customer.id`, `key.id`, `header.trace`, `topic`, `partition`, `offset`, `timestamp`.
//!
//! A name that holds a dot stands in quotes: `value."customer.id"`.

/// A place in a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Of the value; the whole of it without names.
    Value(Vec<String>),
    /// Of the key; the whole of it without names.
    Key(Vec<String>),
    /// The last value of a header.
    Header(String),
    /// The topic's name.
    Topic,
    /// The partition's number.
    Partition,
    /// The record's offset.
    Offset,
    /// The record's timestamp, milliseconds since the epoch.
    Timestamp,
}

impl Path {
    /// Reads a path; the error is for people.
    ///
    /// # Errors
    /// No such place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "unknown path {text:?}; known: value.<field>, key.<field>, header.<name>, topic, partition, offset, timestamp"
            )
        };
        let mut names = names(text).ok_or_else(unknown)?.into_iter();
        let first = names.next().ok_or_else(unknown)?;
        let rest: Vec<String> = names.collect();
        match (first.as_str(), rest.as_slice()) {
            ("value", _) => Ok(Self::Value(rest)),
            ("key", _) => Ok(Self::Key(rest)),
            // Names of headers are taken as they stand, dots too.
            ("header", [_, ..]) => {
                Ok(Self::Header(text.get("header.".len()..).unwrap_or_default().trim_matches('"').to_owned()))
            }
            ("topic", []) => Ok(Self::Topic),
            ("partition", []) => Ok(Self::Partition),
            ("offset", []) => Ok(Self::Offset),
            ("timestamp", []) => Ok(Self::Timestamp),
            _ => Err(unknown()),
        }
    }
}

/// Names between dots; one in quotes may hold dots. None for an empty name or a quote that is not closed.
fn names(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if name.is_empty() {
            return None;
        }
        names.push(name.to_owned());
        match after.strip_prefix('.') {
            Some(after) => rest = after,
            None if after.is_empty() => return Some(names),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (text, expected) in [
            ("value", Path::Value(vec![])),
            ("value.a", Path::Value(owned(&["a"]))),
            ("value.customer.id", Path::Value(owned(&["customer", "id"]))),
            ("value.\"a.b\".c", Path::Value(owned(&["a.b", "c"]))),
            ("key", Path::Key(vec![])),
            ("key.id", Path::Key(owned(&["id"]))),
            ("header.trace.id", Path::Header("trace.id".to_owned())),
            ("header.\"x y\"", Path::Header("x y".to_owned())),
            ("topic", Path::Topic),
            ("offset", Path::Offset),
        ] {
            assert_eq!(Path::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn others_are_refused() {
        for text in
            ["", "body.x", "value.", "value..a", ".value", "topic.x", "header", "value.\"a", "Value.a"]
        {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }
}
