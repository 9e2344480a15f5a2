//! One record's top-level fields, as slices of its payload, each under the column that it goes to.
//!
//! Invariant: a value is a slice of the payload, checked for syntax and otherwise untouched. Must not: allocate per record, but for names with escapes and
//! for fields that have no column.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use oncesink::Reason;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::mapping::{Mapping, Unknown};
use crate::quote;

/// The fields of one record; used again for the next one.
pub(crate) struct Fields<'b> {
    /// By column: the raw JSON of the field, when the record carries it.
    pub(crate) values: Vec<Option<&'b str>>,
    /// Fields without a column, in the record's order.
    pub(crate) unknown: Vec<(Cow<'b, str>, &'b str)>,
    /// The column of the n-th field of the record before: records of a topic mostly have their fields in one order.
    predicted: Vec<usize>,
    fault: Option<(Reason, String)>,
}

impl<'b> Fields<'b> {
    /// Nothing read yet; the first guess is the table's own order.
    pub(crate) fn new(mapping: &Mapping) -> Self {
        let columns = mapping.table.columns.len();
        Self {
            values: vec![None; columns],
            unknown: Vec::new(),
            predicted: (0..columns).collect(),
            fault: None,
        }
    }

    /// Reads a payload. The error is a reason and a message without the value.
    pub(crate) fn read(&mut self, payload: &'b [u8], mapping: &Mapping) -> Result<(), (Reason, String)> {
        self.values.fill(None);
        self.unknown.clear();
        self.fault = None;
        let text = std::str::from_utf8(payload)
            .map_err(|error| (Reason::InvalidUtf8, format!("not UTF-8 at byte {}", error.valid_up_to())))?;
        let mut json = serde_json::Deserializer::from_str(text);
        let read = json.deserialize_map(Object { fields: self, mapping }).and_then(|()| json.end());
        match (read, self.fault.take()) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(fault)) => Err(fault),
            (Err(error), None) => Err((Reason::InvalidJson, describe(&error))),
        }
    }

    /// The column of the n-th field, mostly by one comparison.
    fn column(&mut self, nth: usize, name: &str, mapping: &Mapping) -> Option<usize> {
        if let Some(guess) = self.predicted.get(nth)
            && mapping.table.columns.get(*guess).is_some_and(|column| column.name == name)
            && mapping.unknown != Unknown::Column(*guess)
        {
            return Some(*guess);
        }
        let column = mapping.column(name)?;
        if let Some(guess) = self.predicted.get_mut(nth) {
            *guess = column;
        }
        Some(column)
    }

    fn refuse<E: de::Error>(&mut self, reason: Reason, message: String) -> E {
        self.fault = Some((reason, message));
        E::custom("refused")
    }
}

fn describe(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "not a JSON object".to_owned(),
        serde_json::error::Category::Eof => "JSON that ends too early".to_owned(),
        _ => "not JSON".to_owned(),
    };
    format!("{what} (line {} column {})", error.line(), error.column())
}

struct Object<'f, 'm, 'b> {
    fields: &'f mut Fields<'b>,
    mapping: &'m Mapping,
}

impl<'b> Visitor<'b> for Object<'_, '_, 'b> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { fields, mapping } = self;
        let mut nth = 0;
        while let Some(name) = map.next_key_seed(Name)? {
            let column = fields.column(nth, &name, mapping);
            nth += 1;
            if column.is_none() && mapping.unknown == Unknown::Error {
                let message =
                    format!("field {} has no column in {}", quote::field(&name), mapping.table.display());
                return Err(fields.refuse(Reason::UnknownField, message));
            }
            let value = map.next_value::<&RawValue>()?.get();
            let Some(slot) = column.and_then(|index| fields.values.get_mut(index)) else {
                fields.unknown.push((name, value));
                continue;
            };
            if slot.replace(value).is_some() {
                return Err(fields.refuse(Reason::InvalidJson, twice(&name)));
            }
        }
        if let Some(name) = repeated(&fields.unknown) {
            return Err(fields.refuse(Reason::InvalidJson, twice(&name)));
        }
        Ok(())
    }
}

fn twice(name: &str) -> String {
    format!("field {} stands in the object twice", quote::field(name))
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
