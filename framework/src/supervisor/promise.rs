//! One line a sink: what is exactly-once, by what, and what is left out.

/// Whether the brokers tell the ids of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicIds {
    /// Of all that exist.
    Told,
    /// Not of each: they are older than Kafka 2.8, or still speak as such. A topic that is created again cannot be told from the one before.
    Untold,
}

/// The promise as `run` and `check` print it. `offsets` is the table of the stored offsets, `targets` where the topics' rows go.
pub fn promise(sink: &str, group: &str, offsets: &str, targets: &[&str], ids: TopicIds) -> String {
    let mut tables = targets.to_vec();
    tables.sort_unstable();
    tables.dedup();
    let tables = match tables.as_slice() {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
    };
    let recreated = match ids {
        TopicIds::Told => "",
        TopicIds::Untold => {
            "; a topic that is deleted and created again, since these brokers tell no topic ids"
        }
    };
    format!(
        "{sink}: exactly once into {tables}: rows and offset in one transaction, the offset in {offsets} under group {group} and fenced by its \
         owner's epoch; not covered: side effects outside the database, such as those of a trigger{recreated}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_without_topic_ids_take_something_out_of_the_promise() {
        let of = |ids| promise("s", "g", "public.kafka_offsets", &["public.orders"], ids);
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
