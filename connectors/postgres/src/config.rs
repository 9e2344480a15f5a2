//! The keys of `[sinks.<name>.table]` and `[sinks.<name>.tables."topic"]`.
//!
//! Must not: look at the database. What the keys name is compared with the catalog when the sink is opened.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// What the sink takes from the file beside the connection.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// For every topic that [`Config::tables`] does not name.
    #[serde(default)]
    pub table: TableConfig,
    /// By topic. What is left out here has its own default; it is not taken from [`Config::table`].
    #[serde(default)]
    pub tables: BTreeMap<String, TableConfig>,
}

impl Config {
    /// The keys that hold for a topic.
    pub fn of(&self, topic: &str) -> &TableConfig {
        self.tables.get(topic).unwrap_or(&self.table)
    }

    /// The section of the file that a message about this topic should name.
    pub(crate) fn section(&self, topic: &str) -> String {
        if self.tables.contains_key(topic) {
            format!("[sinks.<name>.tables.{topic:?}]")
        } else {
            "[sinks.<name>.table]".to_owned()
        }
    }
}

/// Where the records of a topic go, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// The table; `${topic}` when left out. A dot written here separates schema and table, a dot that comes from `${topic}` never does.
    pub table: Option<String>,
    /// How rows are written.
    #[serde(default)]
    pub mode: Mode,
    /// What becomes of a field that has no column.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
    /// What becomes of a record without a value; left out, it is a bad record.
    pub delete: Option<Delete>,
    /// The zone of times that carry none: an IANA name, `UTC`, or an offset such as `+02:00`. Left out, they are bad for `timestamptz` columns.
    pub zone: Option<String>,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every record becomes one new row.
    #[default]
    Insert,
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.as_str() {
            "insert" => Ok(Self::Insert),
            "upsert" | "update" | "insert-ignore" | "newer-wins" => Err(de::Error::custom(format!(
                "mode = {name:?} is planned; this version writes with mode = \"insert\""
            ))),
            _ => Err(de::Error::custom(format!("unknown mode {name:?}; known: \"insert\""))),
        }
    }
}

/// What a record without a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delete {
    /// Nothing: it is counted as skipped.
    None,
}

impl<'de> Deserialize<'de> for Delete {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.as_str() {
            "none" => Ok(Self::None),
            "tombstone" => Err(de::Error::custom(
                "delete = \"tombstone\" is planned; with mode = \"insert\" only \"none\" is known",
            )),
            name if name.starts_with("soft:") => Err(de::Error::custom(
                "delete = \"soft:...\" is planned; with mode = \"insert\" only \"none\" is known",
            )),
            _ => Err(de::Error::custom(format!("unknown delete {name:?}; known: \"none\""))),
        }
    }
}

/// What becomes of a field that has no column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// The record is bad, and the field is named.
    #[default]
    Error,
    /// The field is left out.
    Ignore,
    /// All such fields of a record go into this json or jsonb column, as one object.
    Column(String),
}

impl<'de> Deserialize<'de> for UnknownFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = UnknownFields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"error\", \"ignore\" or \"column:<json column>\"")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<UnknownFields, E> {
                match word {
                    "error" => Ok(UnknownFields::Error),
                    "ignore" => Ok(UnknownFields::Ignore),
                    _ => match word.strip_prefix("column:") {
                        Some(name) if !name.is_empty() => Ok(UnknownFields::Column(name.to_owned())),
                        _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                    },
                }
            }
        }
        deserializer.deserialize_str(Words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(json: &str) -> Result<TableConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_have_defaults() {
        let config = table("{}").unwrap();
        assert_eq!(
            (config.mode, config.unknown_fields, config.delete),
            (Mode::Insert, UnknownFields::Error, None)
        );
    }

    #[test]
    fn words_are_read() {
        let config = table(
            r#"{"table":"a.b","mode":"insert","unknown_fields":"column:extra","delete":"none","zone":"UTC"}"#,
        )
        .unwrap();
        assert_eq!(config.unknown_fields, UnknownFields::Column("extra".to_owned()));
        assert_eq!(config.delete, Some(Delete::None));
    }

    #[test]
    fn mistakes_are_named() {
        for (json, expected) in [
            (r#"{"mode":"upsert"}"#, "is planned"),
            (r#"{"mode":"inset"}"#, "unknown mode \"inset\"; known: \"insert\""),
            (r#"{"delete":"tombstone"}"#, "is planned"),
            (r#"{"delete":"soft:gone"}"#, "is planned"),
            (r#"{"delete":"all"}"#, "unknown delete \"all\""),
            (r#"{"unknown_fields":"drop"}"#, "\"column:<json column>\""),
            (r#"{"unknown_fields":"column:"}"#, "\"column:<json column>\""),
            (r#"{"tabel":"orders"}"#, "unknown field `tabel`"),
        ] {
            let message = table(json).unwrap_err();
            assert!(message.contains(expected), "{json}: {message}");
        }
    }

    #[test]
    fn topics_have_their_own_section() {
        let config: Config =
            serde_json::from_str(r#"{"table":{"table":"all"},"tables":{"a.b":{"delete":"none"}}}"#).unwrap();
        assert_eq!(config.of("a.b").table, None);
        assert_eq!(config.of("c").table.as_deref(), Some("all"));
        assert_eq!(config.section("a.b"), r#"[sinks.<name>.tables."a.b"]"#);
    }
}
