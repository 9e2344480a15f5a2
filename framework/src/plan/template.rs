//! From `table = "sales.${topic[1]}"` and a topic to the name of a table.
//!
//! Invariant: only a dot written in the file separates schema and table; one that comes from the topic is part of the name.

/// The name that a template gives for a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// None: found as the database finds names without one.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

impl TableName {
    /// Schema and table as people write them.
    pub fn display(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.table),
            None => self.table.clone(),
        }
    }
}

/// Expands a template; the error is for people and says what is wrong with it.
pub fn expand(template: &str, topic: &str) -> Result<TableName, String> {
    let mut parts = vec![String::new()];
    let mut rest = template;
    while let Some(next) = rest.find(['.', '$']) {
        let (before, from) = rest.split_at(next);
        append(&mut parts, before);
        if let Some(after) = from.strip_prefix('.') {
            parts.push(String::new());
            rest = after;
        } else if let Some((word, after)) = from.strip_prefix("${").and_then(|inside| inside.split_once('}'))
        {
            append(&mut parts, placeholder(word, topic)?);
            rest = after;
        } else {
            append(&mut parts, "$");
            rest = from.get(1..).unwrap_or_default();
        }
    }
    append(&mut parts, rest);
    if parts.iter().any(String::is_empty) {
        return Err(format!("table = {template:?} names no table for topic {topic:?}"));
    }
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(table), None, _) => Ok(TableName { schema: None, table }),
        (Some(schema), Some(table), None) => Ok(TableName { schema: Some(schema), table }),
        _ => Err(format!("table = {template:?} has more than one dot; write schema.table")),
    }
}

fn append(parts: &mut [String], text: &str) {
    if let Some(last) = parts.last_mut() {
        last.push_str(text);
    }
}

fn placeholder<'t>(word: &str, topic: &'t str) -> Result<&'t str, String> {
    if word == "topic" {
        return Ok(topic);
    }
    let index = word.strip_prefix("topic[").and_then(|inside| inside.strip_suffix(']'));
    let Some(index) = index.and_then(|digits| digits.parse::<usize>().ok()) else {
        return Err(format!(
            "unknown ${{{word}}} in table; known: ${{topic}} and ${{topic[0]}}, ${{topic[1]}}, ..."
        ));
    };
    topic.split('.').nth(index).ok_or_else(|| {
        format!("topic {topic:?} has no part {index}, which ${{{word}}} asks for (the first is 0)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_dots_separate() {
        for (template, topic, schema, table) in [
            ("${topic}", "orders", None, "orders"),
            ("${topic}", "shop.orders", None, "shop.orders"),
            ("sales.${topic}", "shop.orders", Some("sales"), "shop.orders"),
            ("sales.${topic[1]}", "shop.orders", Some("sales"), "orders"),
            ("${topic[0]}.${topic[1]}", "shop.orders", Some("shop"), "orders"),
            ("pre_${topic}_v2", "a", None, "pre_a_v2"),
            ("cost$", "a", None, "cost$"),
            ("é.ü", "a", Some("é"), "ü"),
        ] {
            let expected = TableName { schema: schema.map(str::to_owned), table: table.to_owned() };
            assert_eq!(expand(template, topic), Ok(expected), "{template}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (template, expected) in [
            ("a.b.c", "more than one dot"),
            ("", "names no table"),
            ("a.", "names no table"),
            ("${key}", "unknown ${key}"),
            ("${topic[9]}", "has no part 9"),
            ("${topic[x]}", "unknown ${topic[x]}"),
        ] {
            let message = expand(template, "orders").unwrap_err();
            assert!(message.contains(expected), "{template}: {message}");
        }
    }
}
