//! One line a sink: what is exactly-once, by what, and what is left out.

use crate::config::OnBadRecord;

/// The promise as `run` and `check` print it. `offsets` is the table of the stored offsets, `targets` where the topics' rows go.
pub fn promise(sink: &str, group: &str, offsets: &str, targets: &[&str], policy: OnBadRecord) -> String {
    let mut tables = targets.to_vec();
    tables.sort_unstable();
    tables.dedup();
    let tables = match tables.as_slice() {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
    };
    let bad = match policy {
        OnBadRecord::Stop => "a bad record stops its partition",
        OnBadRecord::DeadLetter => "a bad record is kept in oncesink_dead_letters, in the same transaction",
        OnBadRecord::Skip => "a bad record is LEFT OUT, and only counted and logged",
    };
    format!(
        "{sink}: exactly once into {tables}: rows and offset in one transaction, the offset in {offsets} under group {group} and fenced by its \
         owner's epoch; {bad}; not covered: side effects outside the database, such as those of a trigger"
    )
}
