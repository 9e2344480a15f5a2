//! A serde deserializer over nodes, so that a third party's `Config` gets errors with file, line and nearest key like our own.
//!
//! Must not: quote a string in a message, which may be a secret.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::error::{ConfigError, Place, hint};
use super::later;
use super::section;
use super::tree::{Node, Value};

pub(crate) fn from_node<C: DeserializeOwned>(node: Node) -> Result<C, ConfigError> {
    let fallback = node.at.clone();
    C::deserialize(node).map_err(|failed| {
        let at = failed.at.as_ref().unwrap_or(&fallback);
        ConfigError::one(at, failed.to_string())
    })
}

/// What went wrong; place and path are added on the way out, by the innermost table or value that knows them.
#[derive(Debug)]
pub(crate) struct Failed {
    at: Option<Place>,
    path: Option<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Message(String),
    UnknownKey { key: String, known: &'static [&'static str] },
    UnknownValue { value: String, known: &'static [&'static str] },
    Missing(&'static str),
}

impl Failed {
    fn new(what: What) -> Self {
        Self { at: None, path: None, what }
    }

    fn at(mut self, at: &Place, path: &str) -> Self {
        self.at.get_or_insert_with(|| at.clone());
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().unwrap_or_default();
        match &self.what {
            What::Message(message) => write!(f, "{path}: {message}"),
            What::UnknownKey { key, known } => f.write_str(&section::unknown(key, path, known)),
            What::UnknownValue { value, .. } if later::value(path, value) => {
                write!(f, "{path}: {value:?} is not known yet: it is planned for a later version")
            }
            What::UnknownValue { value, known } => {
                write!(f, "{path}: unknown value {value:?}{}", hint(value, known))
            }
            What::Missing(key) => write!(f, "key {key:?} is missing in [{path}]"),
        }
    }
}

impl std::error::Error for Failed {}

impl de::Error for Failed {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(What::Message(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format!("expected {expected}, found {}", kind_of(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        match found {
            Unexpected::Signed(_) | Unexpected::Unsigned(_) => {
                Self::custom(format!("expected {expected}, found {found}"))
            }
            found => Self::invalid_type(found, expected),
        }
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::UnknownKey { key: key.to_owned(), known })
    }

    fn unknown_variant(value: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::UnknownValue { value: value.to_owned(), known })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(What::Missing(key))
    }
}

fn kind_of(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(_) => "a string".to_owned(),
        Unexpected::Bytes(_) => "bytes".to_owned(),
        other => other.to_string(),
    }
}

/// Numbers and booleans; what comes from a variable is a string there and is read as one.
macro_rules! scalars {
    ($($method:ident $visit:ident $type:ty, $name:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
            match &self.value {
                Value::Text(text) if self.at.is_variable() => match text.expose().parse::<$type>() {
                    Ok(value) => visitor.$visit(value),
                    Err(_) => Err(Failed::custom(concat!("expected ", $name, ", found other text"))),
                },
                _ => return self.deserialize_any(visitor),
            }
            .map_err(|failed: Failed| failed.at(&self.at, &self.path))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Node {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let Self { at, path, value } = self;
        match value {
            // Files are read again: a sink's configuration is made anew for every connection.
            Value::Text(text) => {
                text.current().map_err(Failed::custom).and_then(|text| visitor.visit_string(text))
            }
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(boolean) => visitor.visit_bool(boolean),
            Value::Time(time) => visitor.visit_string(time),
            Value::List(items) => visitor.visit_seq(Items(items.into_iter())),
            Value::Table(table) => visitor.visit_map(Entries { entries: table.into_iter(), value: None }),
        }
        .map_err(|failed: Failed| failed.at(&at, &path))
    }

    scalars! {
        deserialize_bool visit_bool bool, "true or false";
        deserialize_i8 visit_i8 i8, "a whole number";
        deserialize_i16 visit_i16 i16, "a whole number";
        deserialize_i32 visit_i32 i32, "a whole number";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_u8 visit_u8 u8, "a whole number";
        deserialize_u16 visit_u16 u16, "a whole number";
        deserialize_u32 visit_u32 u32, "a whole number";
        deserialize_u64 visit_u64 u64, "a whole number";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match &self.value {
            Value::Text(text) if self.at.is_variable() => {
                let items = section::listed(text.expose()).map_err(Failed::custom);
                items
                    .and_then(|items| {
                        visitor.visit_seq(de::value::SeqDeserializer::<_, Failed>::new(items.into_iter()))
                    })
                    .map_err(|failed| failed.at(&self.at, &self.path))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let Self { at, path, value } = self;
        match value {
            Value::Text(text) => visitor.visit_enum(text.expose().into_deserializer()),
            Value::Table(table) if table.len() == 1 => match table.into_iter().next() {
                Some((name, content)) => visitor.visit_enum(Variant { name, content }),
                None => Err(Failed::custom("expected one key")),
            },
            other => Err(Failed::custom(format!(
                "expected a string or a table of one key, found {}",
                other.kind()
            ))),
        }
        .map_err(|failed| failed.at(&at, &path))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items(std::vec::IntoIter<Node>);

impl<'de> SeqAccess<'de> for Items {
    type Error = Failed;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failed> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries {
    entries: std::collections::btree_map::IntoIter<String, Node>,
    value: Option<Node>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        let Some((key, node)) = self.entries.next() else { return Ok(None) };
        // An unknown key: its section is the path of the value without the key.
        let parent = node.path.strip_suffix(&key).map_or("", |parent| parent.trim_end_matches('.'));
        let read = seed
            .deserialize(StrDeserializer::<Failed>::new(&key))
            .map_err(|failed| failed.at(&node.at, parent))?;
        self.value = Some(node);
        Ok(Some(read))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failed> {
        match self.value.take() {
            Some(node) => {
                let (at, path) = (node.at.clone(), node.path.clone());
                seed.deserialize(node).map_err(|failed| failed.at(&at, &path))
            }
            None => Err(Failed::custom("a value was asked for before its key")),
        }
    }
}

struct Variant {
    name: String,
    content: Node,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Failed;
    type Variant = Node;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Node), Failed> {
        let name = seed.deserialize(StrDeserializer::<Failed>::new(&self.name))?;
        Ok((name, self.content))
    }
}

impl<'de> VariantAccess<'de> for Node {
    type Error = Failed;

    fn unit_variant(self) -> Result<(), Failed> {
        Err(Failed::custom("takes no further value").at(&self.at, &self.path))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failed> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failed> {
        de::Deserializer::deserialize_any(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        de::Deserializer::deserialize_any(self, visitor)
    }
}
