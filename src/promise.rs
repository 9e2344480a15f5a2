//! One line a sink: what is exactly-once, by what, and what this configuration leaves out.

use std::sync::Arc;

use oncesink::config::SinkSection;

/// The promise as `run` and `check` print it.
pub(crate) fn promise(sink: &SinkSection, offsets: &str, targets: &[(Arc<str>, String)]) -> String {
    let mut tables: Vec<&str> = targets.iter().map(|(_, target)| target.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    let tables = match tables.as_slice() {
        [] => sink.target.kind.clone(),
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
    };
    format!(
        "{}: exactly once into {tables}: rows and offset in one transaction, the offset in {offsets} under group {} and fenced by its \
         owner's epoch; not covered: side effects outside the database, such as those of a trigger",
        sink.name, sink.group
    )
}
