//! Our tables in the user's database, as far as it is the same for every kind: what may stand where the offsets should, which version is there, what a
//! person is told.
//!
//! Invariant: a table that is not ours is never overwritten, and what the offsets of an old table mean is asked, not guessed.

use crate::error::Failure;
use crate::store::operate::Meaning;

/// Longest group name that the tables take, in characters.
const GROUP_MAX: usize = 255;

/// Numbered migrations: version and text, with placeholders for the tables' names.
pub(super) type Migrations = &'static [(i32, &'static str)];

/// What stands where the offsets should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Present {
    /// Nothing.
    Absent,
    /// Our table.
    Ours,
    /// The table of the three-column recipe.
    Recipe,
    /// Something else of that name.
    Other,
}

impl Present {
    /// By its columns: `recipe` when the three of the recipe are among them, `ours` when the group is, too.
    pub(super) fn of(recipe: bool, ours: bool) -> Self {
        match (recipe, ours) {
            (true, true) => Self::Ours,
            (true, false) => Self::Recipe,
            (false, _) => Self::Other,
        }
    }

    /// What stands against a start; `table` is the offsets table for people.
    pub(super) fn problem(self, table: &str) -> Option<String> {
        match self {
            Self::Ours => None,
            Self::Absent => Some(no_table(table)),
            Self::Recipe => Some(question(table)),
            Self::Other => Some(format!("{table} is not a table of offsets: choose another name")),
        }
    }

    /// Whether an old table is to be renamed before ours is made; `form` is how a name is written.
    ///
    /// # Errors
    /// `Fatal` when a table of another kind has the name, when a table of the old recipe is there and `adopt` is not given, and the other way round.
    pub(super) fn make_room(self, table: &str, form: &str, adopt: Option<Meaning>) -> Result<bool, Failure> {
        match (self, adopt) {
            (Self::Absent | Self::Ours, None) => Ok(false),
            (Self::Recipe, Some(_)) => Ok(true),
            (Self::Absent | Self::Ours, Some(_)) => Err(Failure::fatal(format!(
                "nothing to adopt: {table} is no table of the three-column recipe"
            ))),
            (Self::Recipe, None) => Err(Failure::fatal(question(table))),
            (Self::Other, _) => Err(Failure::fatal(format!(
                "{table} exists and is not a table of offsets: choose another name, offsets = \"{form}\""
            ))),
        }
    }
}

/// What a person is asked.
fn question(table: &str) -> String {
    format!(
        "{table} is a table of the three-column recipe (topic, partition_id, last_offset). Say what its offset means, and whose it is: \
         {}. It is then renamed and its rows are copied",
        crate::remedy::command("migrate --adopt next|processed --group G")
    )
}

/// A table of ours is not there.
pub(super) fn no_table(table: &str) -> String {
    let [ours, dba] = ["migrate", "migrate --print"].map(crate::remedy::command);
    format!("{table}: no such table. Run: {ours} (for your DBA: {dba})")
}

/// The newest version that this release knows.
pub(super) fn newest(migrations: Migrations) -> i32 {
    migrations.iter().map(|(version, _)| *version).max().unwrap_or(0)
}

/// What stands against a start, by the versions applied.
pub(super) fn version_problem(table: &str, applied: &[i32], migrations: Migrations) -> Option<String> {
    let stands = applied.iter().copied().max().unwrap_or(0);
    let newest = newest(migrations);
    if stands < newest {
        return Some(format!(
            "{table} is at version {stands}, this release needs {newest}. Run: {}",
            crate::remedy::command("migrate")
        ));
    }
    (stands > newest).then(|| {
        format!(
            "{table} is at version {stands}, written by a newer release; this one knows {newest}. Run the newer release"
        )
    })
}

/// A line for a migration that was applied.
pub(super) fn applied_line(table: &str, version: i32) -> String {
    let what = if version == 1 { "created" } else { "upgraded" };
    format!("{what} {table} (version {version})")
}

/// What the offsets table of the old recipe is renamed to.
pub(super) fn before(table: &str) -> String {
    format!("{table}_before_oncesink")
}

/// An earlier adoption left its table.
pub(super) fn in_the_way(place: &str) -> Failure {
    Failure::fatal(format!("{place} exists already: an earlier adoption left it, move it away"))
}

/// A group that the tables can hold.
pub(super) fn check_group(group: &str) -> Result<(), Failure> {
    let length = group.chars().count();
    if length == 0 || length > GROUP_MAX || group.contains('\0') {
        return Err(Failure::fatal(format!(
            "the group's name has {length} characters; 1 to {GROUP_MAX} can be stored"
        )));
    }
    Ok(())
}

/// One store is one group.
pub(super) fn same_group(mine: &str, group: &str) -> Result<(), Failure> {
    if mine == group {
        return Ok(());
    }
    Err(Failure::fatal(format!("this store belongs to group {mine:?}, not to {group:?}")))
}

/// A topic has at most as many partitions as a column counts.
pub(super) fn partition_count(offsets: &[i64]) -> Result<i32, Failure> {
    i32::try_from(offsets.len()).map_err(|_| Failure::fatal("more partitions than a topic can have"))
}
