//! Names in SQL and names for people.
//!
//! Invariant: every identifier that enters a statement passes [`identifier`]; there is no other way from a name to SQL text.

/// A quoted identifier: safe whatever it holds, and never folded to lower case.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A list of quoted identifiers.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(identifier).collect::<Vec<_>>().join(", ")
}

/// A name taken from a record, for a message: escaped, and cut where it would flood a log line.
pub(crate) fn field(name: &str) -> String {
    const SHOWN: usize = 100;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", name.get(..end).unwrap_or_default()),
        None => format!("{name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(identifier(r#"a"; DROP TABLE t; --"#), r#""a""; DROP TABLE t; --""#);
        assert_eq!(list(["a", "B.c"]), r#""a", "B.c""#);
    }

    #[test]
    fn long_field_names_are_cut() {
        assert_eq!(field("a\nb"), r#""a\nb""#);
        assert_eq!(field(&"é".repeat(101)).chars().count(), 105);
    }
}
