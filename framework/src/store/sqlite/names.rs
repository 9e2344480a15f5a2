//! Names of our tables, quoted once, used in every statement.
//!
//! Must not: let a name into a statement unquoted, or without `main`, which a temporary table of the same name would hide.

use crate::error::Failure;

/// The table of the offsets when none is named.
const DEFAULT_OFFSETS: &str = "kafka_offsets";

/// Quotes an identifier.
pub(super) fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// A table of the file.
pub(super) fn qualified(table: &str) -> String {
    format!("main.{}", quote(table))
}

/// Our tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Table of the offsets, as it is written in the file of the configuration.
    pub(super) table: String,
    /// The others are qualified and quoted.
    pub(super) offsets: String,
    pub(super) topics: String,
    pub(super) events: String,
    pub(super) migrations: String,
    pub(super) dead_letters: String,
}

impl Names {
    /// Reads `table` or `main.table`.
    pub(super) fn parse(offsets: Option<&str>) -> Result<Self, Failure> {
        let text = offsets.unwrap_or(DEFAULT_OFFSETS);
        let table = text.strip_prefix("main.").unwrap_or(text);
        if table.is_empty() || table.contains(['.', '\0']) {
            return Err(Failure::fatal(format!(
                "offsets = {text:?} names no table of a SQLite file: write a name without a dot, offsets = \"{DEFAULT_OFFSETS}\""
            )));
        }
        if table.to_ascii_lowercase().starts_with("sqlite_") {
            return Err(Failure::fatal(format!(
                "offsets = {text:?}: SQLite keeps names that begin with sqlite_"
            )));
        }
        Ok(Self {
            table: table.to_owned(),
            offsets: qualified(table),
            topics: qualified("oncesink_topics"),
            events: qualified("oncesink_events"),
            migrations: qualified("oncesink_migrations"),
            dead_letters: qualified("oncesink_dead_letters"),
        })
    }

    /// Fills in the placeholders of a migration.
    pub(super) fn fill(&self, template: &str) -> String {
        template
            .replace("@offsets@", &self.offsets)
            .replace("@topics@", &self.topics)
            .replace("@events@", &self.events)
            .replace("@migrations@", &self.migrations)
            .replace("@dead_letters@", &self.dead_letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_stand_in_the_file_itself() {
        assert_eq!(Names::parse(Some("Od\"d")).unwrap().offsets, "main.\"Od\"\"d\"");
        assert_eq!(Names::parse(Some("main.o")).unwrap(), Names::parse(Some("o")).unwrap());
        assert_eq!(Names::parse(None).unwrap().table, "kafka_offsets");
        for refused in ["", "main.", "ops.kafka_offsets", "temp.x", "sqlite_x", "a\0b"] {
            assert!(Names::parse(Some(refused)).is_err(), "{refused:?}");
        }
    }
}
