//! Names in SQL, as the standard quotes them.
//!
//! Invariant: every identifier that a connector puts into a statement passes [`identifier`]; there is no other way from a name to SQL text.

/// A quoted identifier: safe whatever it holds, and never folded to another case.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A list of quoted identifiers.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(identifier).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(identifier(r#"a"; DROP TABLE t; --"#), r#""a""; DROP TABLE t; --""#);
        assert_eq!(list(["a", "B.c"]), r#""a", "B.c""#);
    }
}
