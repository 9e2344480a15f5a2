//! One line a sink: what is exactly-once, by what, and what is left out.

use std::fmt;

use crate::config::OnBadRecord;

/// Whether the brokers tell the ids of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicIds {
    /// Of all that exist.
    Told,
    /// Not of each: they are older than Kafka 2.8, or still speak as such. A topic that is created again cannot be told from the one before.
    Untold,
}

/// The promise as `run` and `check` print it.
#[derive(Clone, Copy, Debug)]
pub struct Promise<'p> {
    /// The sink's name.
    pub sink: &'p str,
    /// Its group.
    pub group: &'p str,
    /// The table of the stored offsets.
    pub offsets: &'p str,
    /// Where the topics' rows go.
    pub targets: &'p [&'p str],
    /// What becomes of a bad record.
    pub policy: OnBadRecord,
    /// Whether a topic that is created again is noticed.
    pub ids: TopicIds,
}

impl fmt::Display for Promise<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sink, group, offsets, .. } = self;
        let bad = match self.policy {
            OnBadRecord::Stop => "a bad record stops its partition",
            OnBadRecord::DeadLetter => {
                "a bad record is kept in oncesink_dead_letters, in the same transaction"
            }
            OnBadRecord::Skip => "a bad record is LEFT OUT, and only counted and logged",
        };
        let recreated = match self.ids {
            TopicIds::Told => "",
            TopicIds::Untold => {
                "; a topic that is deleted and created again, since these brokers tell no topic ids"
            }
        };
        write!(
            f,
            "{sink}: exactly once into {}: rows and offset in one transaction, the offset in {offsets} under group {group} and fenced by its \
             owner's epoch; {bad}; not covered: side effects outside the database, such as those of a trigger{recreated}",
            tables(self.targets)
        )
    }
}

fn tables(targets: &[&str]) -> String {
    let mut tables = targets.to_vec();
    tables.sort_unstable();
    tables.dedup();
    match tables.as_slice() {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_without_topic_ids_take_something_out_of_the_promise() {
        let of = |ids| {
            let (offsets, targets) = ("public.kafka_offsets", &["public.orders"][..]);
            Promise { sink: "s", group: "g", offsets, targets, policy: OnBadRecord::Stop, ids }.to_string()
        };
        let (told, untold) = (of(TopicIds::Told), of(TopicIds::Untold));
        assert!(!told.contains("created again"), "{told}");
        assert_eq!(
            untold,
            format!(
                "{told}; a topic that is deleted and created again, since these brokers tell no topic ids"
            )
        );
    }
}
