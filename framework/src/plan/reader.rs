//! One record's fields, as slices of its value and key, each under the slot that the mapping gave it.
//!
//! Invariant: a value is a slice of the payload, checked for syntax and otherwise untouched. Must not: allocate per record, but for names with escapes, for
//! fields that have no column, and for what comes from beside the value.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::column::Table;
use super::mapping::{Mapping, Unknown};
use super::names;
use crate::error::Reason;

/// A reason and a message without the value.
pub(super) type Refusal = (Reason, String);

/// The fields of one record; used again for the next one.
pub(super) struct Reader<'b> {
    /// By slot: the raw JSON of the field, when the record carries it.
    pub(super) values: Vec<Option<&'b str>>,
    /// Fields that nobody asked for, in the record's order.
    pub(super) unknown: Vec<(Cow<'b, str>, &'b str)>,
    /// The slot of the n-th field of the record before: records of a topic mostly have their fields in one order.
    predicted: Vec<usize>,
    fault: Option<Refusal>,
}

impl<'b> Reader<'b> {
    /// Nothing read yet; the first guess is the order of the slots.
    pub(super) fn new<T: Table>(mapping: &Mapping<T>) -> Self {
        let slots = mapping.slots.len();
        Self { values: vec![None; slots], unknown: Vec::new(), predicted: (0..slots).collect(), fault: None }
    }

    /// Reads a value. The error is a reason and a message without the value.
    pub(super) fn read<T: Table>(&mut self, payload: &'b [u8], mapping: &Mapping<T>) -> Result<(), Refusal> {
        self.clear();
        let text = utf8(payload)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let read = json.deserialize_map(Object { reader: self, mapping }).and_then(|()| json.end());
        match (read, self.fault.take()) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(fault)) => Err(fault),
            (Err(error), None) => Err((Reason::InvalidJson, describe(&error))),
        }
    }

    /// No value was read.
    pub(super) fn clear(&mut self) {
        self.values.fill(None);
        self.unknown.clear();
        self.fault = None;
    }

    /// The slot of the n-th field, mostly by one comparison.
    fn slot<T: Table>(&mut self, nth: usize, name: &str, mapping: &Mapping<T>) -> Option<usize> {
        if let Some(guess) = self.predicted.get(nth)
            && mapping.slots.get(*guess).is_some_and(|slot| slot == name)
        {
            return Some(*guess);
        }
        let slot = mapping.slot(name)?;
        if let Some(guess) = self.predicted.get_mut(nth) {
            *guess = slot;
        }
        Some(slot)
    }

    fn refuse<E: de::Error>(&mut self, reason: Reason, message: String) -> E {
        self.fault = Some((reason, message));
        E::custom("refused")
    }
}

/// A record's key.
#[derive(Debug, Default)]
pub(super) enum Key<'b> {
    /// None, or not asked for.
    #[default]
    None,
    /// A JSON object: its fields in order.
    Object(Vec<(Cow<'b, str>, &'b str)>),
    /// Anything else as one JSON value: a scalar or an array as it stands, other text as a string.
    Scalar(Cow<'b, str>),
}

impl<'b> Key<'b> {
    /// Reads a key's bytes.
    pub(super) fn read(bytes: &'b [u8]) -> Result<Self, Refusal> {
        let text = utf8(bytes).map_err(|(reason, message)| (reason, format!("the key is {message}")))?;
        if !text.trim_start().starts_with('{') {
            // Blanks around a number would be lost: such a key is text.
            let json = text.trim() == text && serde_json::from_str::<&RawValue>(text).is_ok();
            let scalar = if json {
                Cow::Borrowed(text)
            } else {
                Cow::Owned(serde_json::Value::from(text).to_string())
            };
            return Ok(Self::Scalar(scalar));
        }
        let fields = fields(text)
            .map_err(|error| (Reason::InvalidJson, format!("the key is {}", describe(&error))))?;
        if let Some(name) = repeated(&fields) {
            return Err((Reason::InvalidJson, format!("the key: {}", twice(&name))));
        }
        Ok(Self::Object(fields))
    }

    /// A field of the key.
    pub(super) fn field(&self, name: &str) -> Option<&'b str> {
        match self {
            Self::Object(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, raw)| *raw),
            _ => None,
        }
    }
}

/// The value of a path below a raw JSON value; none where an object does not have it.
pub(super) fn below<'b>(raw: &'b str, path: &[String]) -> Option<&'b str> {
    let Some((name, rest)) = path.split_first() else { return Some(raw) };
    if !raw.starts_with('{') {
        return None;
    }
    // The value was checked as a whole; a name that stands twice below the top is the last one.
    let fields = fields(raw).ok()?;
    let (_, found) = fields.into_iter().rev().find(|(field, _)| field == name)?;
    below(found, rest)
}

fn fields(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let fields = json.deserialize_map(Fields)?;
    json.end()?;
    Ok(fields)
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes)
        .map_err(|error| (Reason::InvalidUtf8, format!("not UTF-8 at byte {}", error.valid_up_to())))
}

fn describe(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "not a JSON object",
        serde_json::error::Category::Eof => "JSON that ends too early",
        _ => "not JSON",
    };
    format!("{what} (line {} column {})", error.line(), error.column())
}

struct Object<'r, 'm, 'b, T> {
    reader: &'r mut Reader<'b>,
    mapping: &'m Mapping<T>,
}

impl<'b, T: Table> Visitor<'b> for Object<'_, '_, 'b, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { reader, mapping } = self;
        let mut nth = 0;
        while let Some(name) = map.next_key_seed(Name)? {
            let slot = reader.slot(nth, &name, mapping);
            nth += 1;
            if slot.is_none() && mapping.unknown == Unknown::Error {
                let message =
                    format!("field {} has no column in {}", names::field(&name), mapping.table.display());
                return Err(reader.refuse(Reason::UnknownField, message));
            }
            let value = map.next_value::<&RawValue>()?.get();
            let Some(place) = slot.and_then(|index| reader.values.get_mut(index)) else {
                reader.unknown.push((name, value));
                continue;
            };
            if place.replace(value).is_some() {
                return Err(reader.refuse(Reason::InvalidJson, twice(&name)));
            }
        }
        if let Some(name) = repeated(&reader.unknown) {
            return Err(reader.refuse(Reason::InvalidJson, twice(&name)));
        }
        Ok(())
    }
}

/// All fields of an object.
struct Fields;

impl<'b> Visitor<'b> for Fields {
    type Value = Vec<(Cow<'b, str>, &'b str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key_seed(Name)? {
            fields.push((name, map.next_value::<&RawValue>()?.get()));
        }
        Ok(fields)
    }
}

fn twice(name: &str) -> String {
    format!("field {} stands in the object twice", names::field(name))
}

/// A name that occurs twice. Few names are compared with each other; many go through a set, so that a hostile object costs no more than it weighs.
fn repeated(fields: &[(Cow<'_, str>, &str)]) -> Option<String> {
    const FEW: usize = 16;
    let names = fields.iter().map(|(name, _)| name.as_ref());
    let found = if fields.len() <= FEW {
        names.enumerate().find(|(nth, name)| fields.iter().take(*nth).any(|(before, _)| before == name))
    } else {
        let mut seen = HashSet::with_capacity(fields.len());
        names.enumerate().find(|(_, name)| !seen.insert(*name))
    };
    found.map(|(_, name)| name.to_owned())
}

/// A field's name, borrowed unless it holds escapes.
struct Name;

impl<'b> DeserializeSeed<'b> for Name {
    type Value = Cow<'b, str>;

    fn deserialize<D: Deserializer<'b>>(self, deserializer: D) -> Result<Cow<'b, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'b> Visitor<'b> for Name {
    type Value = Cow<'b, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'b str) -> Result<Cow<'b, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Cow<'b, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_objects_scalars_or_text() {
        let scalar = |bytes: &[u8]| match Key::read(bytes).unwrap() {
            Key::Scalar(raw) => raw.into_owned(),
            other => panic!("{other:?}"),
        };
        for (bytes, expected) in [
            ("42", "42"),
            ("\"a\"", "\"a\""),
            ("abc-1", "\"abc-1\""),
            ("007", "\"007\""),
            ("42 ", "\"42 \""),
            ("", "\"\""),
            ("null", "null"),
            ("[1]", "[1]"),
        ] {
            assert_eq!(scalar(bytes.as_bytes()), expected, "{bytes:?}");
        }
        let object = Key::read(br#"{"id":1,"x":"y"}"#).unwrap();
        assert_eq!(
            (object.field("id"), object.field("x"), object.field("z")),
            (Some("1"), Some("\"y\""), None)
        );
        for bytes in [r#"{"id":1"#, r#"{"id":1,"id":2}"#] {
            assert_eq!(Key::read(bytes.as_bytes()).unwrap_err().0, Reason::InvalidJson, "{bytes}");
        }
        assert_eq!(Key::read(b"\xff").unwrap_err().0, Reason::InvalidUtf8);
    }

    #[test]
    fn paths_lead_below() {
        let raw = r#"{"a":{"b":[1],"c":null},"d":2}"#;
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (names, expected) in [
            (vec![], Some(raw)),
            (vec!["a", "b"], Some("[1]")),
            (vec!["a", "c"], Some("null")),
            (vec!["a", "x"], None),
            (vec!["d", "x"], None),
        ] {
            assert_eq!(below(raw, &path(&names)), expected, "{names:?}");
        }
    }
}
