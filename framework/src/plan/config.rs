//! The keys of `[sinks.<name>.table]` and `[sinks.<name>.tables."topic"]`, the same for every sink that writes tables.
//!
//! Must not: look at a database. What the keys name is compared with the catalog when the sink is opened.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::path::Path;
use crate::value::Reading;

/// What a table sink takes from the file beside the connection.
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
    pub fn section(&self, topic: &str) -> String {
        if self.tables.contains_key(topic) {
            format!("[sinks.<name>.tables.{topic:?}]")
        } else {
            "[sinks.<name>.table]".to_owned()
        }
    }
}

/// Where the records of a topic go, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct TableConfig {
    /// The table; `${topic}` when left out. A dot written here separates schema and table, a dot that comes from `${topic}` never does.
    pub table: Option<String>,
    /// How rows are written.
    #[serde(default)]
    pub mode: Mode,
    /// The key columns, for all modes but `insert`.
    #[serde(default)]
    pub key: Vec<String>,
    /// Where the key columns come from, unless [`TableConfig::columns`] says otherwise.
    pub key_from: Option<KeyFrom>,
    /// What becomes of a record without a value. Must be given for `upsert` and `update`; left out otherwise, such a record is bad.
    pub delete: Option<Delete>,
    /// What becomes of a field that has no column.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
    /// The zone of times that carry none: an IANA name, `UTC`, or an offset such as `+02:00`. Left out, they are bad for columns with a zone.
    pub zone: Option<String>,
    /// Whether fields go to columns of their own name; true when left out.
    pub by_name: Option<bool>,
    /// Columns that come from elsewhere than a field of their own name.
    #[serde(default)]
    pub columns: BTreeMap<String, ColumnConfig>,
}

impl<'de> Deserialize<'de> for TableConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The derived one, as a function of its own name: keys are read each for itself, then together.
        let config = Self::deserialize(deserializer)?;
        rules(&config).map_err(de::Error::custom)?;
        Ok(config)
    }
}

/// What keys of one section may say together.
fn rules(config: &TableConfig) -> Result<(), String> {
    let mode = config.mode.name();
    if config.mode.folds() && config.key.is_empty() {
        return Err(format!("mode = {mode:?} needs the key columns; write for instance key = [\"id\"]"));
    }
    if config.mode.folds() && config.delete.is_none() {
        return Err(format!(
            "mode = {mode:?} needs a word on records without a value; write delete = \"tombstone\" (they delete the row with their key) or delete = \"none\" (they are skipped)"
        ));
    }
    if config.mode == Mode::Insert && !config.key.is_empty() {
        return Err("mode = \"insert\" takes no key: every record becomes a row; write mode = \"upsert\", or leave key out".to_owned());
    }
    if config.key.is_empty() && config.key_from.is_some() {
        return Err("key_from without key: name the key columns".to_owned());
    }
    if !config.mode.folds() && config.delete == Some(Delete::Tombstone) {
        return Err(format!(
            "delete = \"tombstone\" goes with mode = \"upsert\" or \"update\"; with mode = {mode:?} write \"none\", or leave it out"
        ));
    }
    Ok(())
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every record becomes one new row.
    #[default]
    Insert,
    /// A new row, or the carried columns of the row with the same key.
    Upsert,
    /// The carried columns of the row with the same key, which must be there.
    Update,
    /// A new row, unless one with the same key is there.
    InsertIgnore,
}

impl Mode {
    /// The name that the file has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Upsert => "upsert",
            Self::Update => "update",
            Self::InsertIgnore => "insert-ignore",
        }
    }

    /// Whether the records of one key are folded into their net effect.
    pub const fn folds(self) -> bool {
        matches!(self, Self::Upsert | Self::Update)
    }
}

/// Where key columns come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyFrom {
    /// The record's key: an object, or a bare scalar for one column.
    Key,
    /// Fields of the record's value.
    Value,
}

/// What a record without a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delete {
    /// Nothing: it is counted as skipped.
    None,
    /// The row with its key is deleted.
    Tombstone,
}

impl<'de> Deserialize<'de> for Delete {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.as_str() {
            "none" => Ok(Self::None),
            "tombstone" => Ok(Self::Tombstone),
            name if name.starts_with("soft:") => Err(de::Error::custom(
                "delete = \"soft:...\" is planned; this version knows \"none\" and \"tombstone\"",
            )),
            _ => Err(de::Error::custom(format!("unknown delete {name:?}; known: \"none\", \"tombstone\""))),
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
    /// All such fields of a record go into this JSON column, as one object.
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

/// `columns.<column> = "value.customer.id"`, `{ from = "value.placed", as = "epoch-ms" }`, `{ as = "epoch-ms" }` or `{ constant = "eu" }`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnConfig {
    /// Where the column's values come from; none: where they would come from without this key.
    pub from: Option<ColumnFrom>,
    /// How they are read.
    pub reading: Option<Reading>,
}

/// Where a column's values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnFrom {
    /// A place in the record.
    Path(Path),
    /// The same for every record, as JSON.
    Constant(String),
}

impl<'de> Deserialize<'de> for ColumnConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ColumnVisitor)
    }
}

struct ColumnVisitor;

impl<'de> Visitor<'de> for ColumnVisitor {
    type Value = ColumnConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path such as \"value.customer.id\", or a table with from and as, or with constant")
    }

    fn visit_str<E: de::Error>(self, path: &str) -> Result<ColumnConfig, E> {
        let from = Path::parse(path).map_err(E::custom)?;
        Ok(ColumnConfig { from: Some(ColumnFrom::Path(from)), reading: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ColumnConfig, A::Error> {
        let (mut path, mut constant, mut reading) = (None, None, None);
        while let Some(key) = map.next_key::<ColumnKey>()? {
            match key {
                ColumnKey::From => {
                    path = Some(Path::parse(&map.next_value::<String>()?).map_err(de::Error::custom)?);
                }
                ColumnKey::As => reading = Some(read_as(&map.next_value::<String>()?)?),
                ColumnKey::Constant => {
                    constant = Some(map.next_value::<serde_json::Value>()?.to_string());
                }
            }
        }
        let from = match (path, constant) {
            (Some(_), Some(_)) => return Err(de::Error::custom("from and constant exclude each other")),
            (Some(path), None) => Some(ColumnFrom::Path(path)),
            (None, Some(constant)) => Some(ColumnFrom::Constant(constant)),
            (None, None) => None,
        };
        if from.is_none() && reading.is_none() {
            return Err(de::Error::invalid_length(0, &self));
        }
        Ok(ColumnConfig { from, reading })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ColumnKey {
    From,
    As,
    Constant,
}

fn read_as<E: de::Error>(name: &str) -> Result<Reading, E> {
    let known = Reading::ALL.iter().find(|(known, _)| *known == name).map(|(_, reading)| *reading);
    known.ok_or_else(|| {
        let names: Vec<_> = Reading::ALL.iter().map(|(name, _)| format!("{name:?}")).collect();
        E::custom(format!("unknown as = {name:?}; known: {}", names.join(", ")))
    })
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
            (config.mode, config.unknown_fields, config.delete, config.by_name),
            (Mode::Insert, UnknownFields::Error, None, None)
        );
    }

    /// What the reference says in comments, since sinks of other people have no such keys.
    #[test]
    fn the_reference_lists_every_key_with_its_default() {
        let listed: Vec<&str> = crate::config::REFERENCE
            .lines()
            .skip_while(|line| !line.starts_with("# [sinks.example.table]"))
            .filter_map(|line| line.strip_prefix("# ")?.split([' ', '=', '.']).next())
            .filter(|key| !key.is_empty() && !key.starts_with('['))
            .collect();
        let mut expected =
            vec!["table", "mode", "key", "key_from", "delete", "unknown_fields", "by_name", "zone"];
        expected.extend(["columns"; 3]);
        assert_eq!(listed, expected);
        let error = table(r#"{"tabel":""}"#).unwrap_err();
        assert!(expected.iter().all(|key| error.contains(&format!("`{key}`"))), "{error}");
    }

    #[test]
    fn words_are_read() {
        let config = table(
            r#"{"table":"a.b","mode":"upsert","unknown_fields":"column:extra","delete":"tombstone","zone":"UTC","key":["a","b"],"key_from":"value"}"#,
        )
        .unwrap();
        assert_eq!(config.mode, Mode::Upsert);
        assert_eq!(config.unknown_fields, UnknownFields::Column("extra".to_owned()));
        assert_eq!((config.delete, config.key_from), (Some(Delete::Tombstone), Some(KeyFrom::Value)));
    }

    #[test]
    fn columns_come_from_paths_and_constants() {
        let config = table(
            r#"{"columns":{"a":"value.x.y","b":{"from":"value.at","as":"epoch-ms"},"c":{"constant":"eu"},"d":{"constant":7},"e":{"as":"json-text"}}}"#,
        )
        .unwrap();
        let of = |name: &str| config.columns[name].clone();
        assert_eq!(of("a").from, Some(ColumnFrom::Path(Path::parse("value.x.y").unwrap())));
        assert_eq!(
            of("b").reading,
            Reading::ALL.iter().find(|(name, _)| *name == "epoch-ms").map(|(_, r)| *r)
        );
        assert_eq!(of("c").from, Some(ColumnFrom::Constant("\"eu\"".to_owned())));
        assert_eq!(of("d").from, Some(ColumnFrom::Constant("7".to_owned())));
        assert_eq!(of("e").from, None);
    }

    #[test]
    fn mistakes_are_named() {
        for (json, expected) in [
            (r#"{"mode":"upsert","delete":"none"}"#, "needs the key columns"),
            (r#"{"mode":"upsert","key":["id"]}"#, "needs a word on records without a value"),
            (r#"{"key":["id"]}"#, "takes no key"),
            (r#"{"mode":"insert-ignore","key_from":"value"}"#, "key_from without key"),
            (r#"{"delete":"tombstone"}"#, "goes with mode = \"upsert\""),
            (r#"{"mode":"inset"}"#, "unknown variant `inset`"),
            (r#"{"delete":"soft:gone"}"#, "is planned"),
            (r#"{"delete":"all"}"#, "unknown delete \"all\""),
            (r#"{"unknown_fields":"drop"}"#, "\"column:<json column>\""),
            (r#"{"unknown_fields":"column:"}"#, "\"column:<json column>\""),
            (r#"{"tabel":"orders"}"#, "unknown field `tabel`"),
            (r#"{"columns":{"a":"body.x"}}"#, "unknown path \"body.x\""),
            (r#"{"columns":{"a":{"as":"epoch"}}}"#, "unknown as = \"epoch\""),
            (r#"{"columns":{"a":{}}}"#, "a path such as"),
            (r#"{"columns":{"a":{"from":"key","constant":1}}}"#, "exclude each other"),
            (r#"{"columns":{"a":{"form":"key"}}}"#, "unknown variant `form`"),
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
