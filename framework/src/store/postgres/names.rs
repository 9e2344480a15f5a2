//! Names of our tables: qualified and quoted once, used in every statement.
//!
//! Must not: let a name into a statement unquoted, or one that the server would cut.

use crate::error::Failure;
use crate::store::bookkeeping;

/// Longest identifier that the server keeps whole, in bytes.
const IDENTIFIER_MAX: usize = 63;

/// The table of the offsets when none is named.
pub(super) const DEFAULT_OFFSETS: &str = "kafka_offsets";

/// Quotes an identifier.
pub(super) fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// Quotes a table's name with its schema.
pub(super) fn qualified(schema: &str, table: &str) -> String {
    format!("{}.{}", quote(schema), quote(table))
}

/// What the file says: a table, perhaps with a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) schema: Option<String>,
    pub(super) table: String,
}

impl Wanted {
    /// Reads `schema.table` or `table`.
    pub(super) fn parse(offsets: Option<&str>) -> Result<Self, Failure> {
        let text = offsets.unwrap_or(DEFAULT_OFFSETS);
        let (schema, table) = match text.split_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (None, text),
        };
        for part in schema.into_iter().chain([table]) {
            if part.is_empty() || part.len() > IDENTIFIER_MAX || part.contains(['.', '\0']) {
                return Err(Failure::fatal(format!(
                    "offsets = {text:?} is not of the form schema.table with names of 1 to {IDENTIFIER_MAX} bytes"
                )));
            }
        }
        Ok(Self { schema: schema.map(str::to_owned), table: table.to_owned() })
    }
}

/// Name of the table of dead letters.
pub(super) const DEAD_LETTERS: &str = "oncesink_dead_letters";

/// Our tables, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Schema, as the catalog spells it.
    pub(super) schema: String,
    /// Table of the offsets, as the catalog spells it.
    pub(super) table: String,
    /// The others are qualified and quoted.
    pub(super) offsets: String,
    pub(super) topics: String,
    pub(super) events: String,
    pub(super) dead_letters: String,
    pub(super) migrations: String,
}

impl Names {
    pub(super) fn new(schema: &str, table: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            table: table.to_owned(),
            offsets: qualified(schema, table),
            topics: qualified(schema, "oncesink_topics"),
            events: qualified(schema, "oncesink_events"),
            dead_letters: qualified(schema, DEAD_LETTERS),
            migrations: qualified(schema, "oncesink_migrations"),
        }
    }

    /// `schema.table` for people.
    pub(super) fn display(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }

    /// `schema.table` of the dead letters, for people.
    pub(super) fn display_dead_letters(&self) -> String {
        format!("{}.{DEAD_LETTERS}", self.schema)
    }

    /// What the offsets table of the old recipe is renamed to; none when the server would cut the name.
    pub(super) fn before(&self) -> Option<String> {
        let name = bookkeeping::before(&self.table);
        (name.len() <= IDENTIFIER_MAX).then_some(name)
    }

    /// Fills in the placeholders of a migration.
    pub(super) fn fill(&self, template: &str) -> String {
        template
            .replace("@offsets@", &self.offsets)
            .replace("@topics@", &self.topics)
            .replace("@events@", &self.events)
            .replace("@dead_letters@", &self.dead_letters)
            .replace("@migrations@", &self.migrations)
    }
}

/// `oncesink <group>`: by this name and the role, sessions of the same group know one another, so that a frozen one can be ended. The server
/// cuts names at 63 bytes and replaces what is not ASCII, by which two groups could come to share a name: then a checksum of the whole tells them apart.
pub(super) fn application_name(group: &str) -> String {
    let whole = format!("oncesink {group}");
    if whole.len() <= IDENTIFIER_MAX && whole.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return whole;
    }
    let plain: String =
        whole.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' }).take(46).collect();
    format!("{plain}~{:016x}", fnv1a(group.as_bytes()))
}

/// FNV-1a: the same in every release, which the standard library's hasher does not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_never_cut() {
        let names = Names::new("Od\"d", "kafka_offsets");
        assert_eq!(names.offsets, "\"Od\"\"d\".\"kafka_offsets\"");
        assert!(Wanted::parse(Some("a.b.c")).is_err());
        assert!(Wanted::parse(Some(&"x".repeat(64))).is_err());
        assert!(Wanted::parse(Some(".b")).is_err());
        let ops = Wanted::parse(Some("ops.o")).unwrap();
        assert_eq!((ops.schema.as_deref(), ops.table.as_str()), (Some("ops"), "o"));
        assert_eq!(Wanted::parse(None).unwrap().table, "kafka_offsets");
    }

    #[test]
    fn groups_never_share_an_application_name() {
        assert_eq!(application_name("shop"), "oncesink shop");
        let long = |tail: char| application_name(&format!("{}{tail}", "g".repeat(200)));
        assert_ne!(long('a'), long('b'));
        assert_eq!(long('a').len(), 63);
        assert_ne!(application_name("bücher"), application_name("bäcker"));
        assert!(application_name("bücher").is_ascii());
    }
}
