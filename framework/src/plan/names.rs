//! Names taken from records, for people.

/// A name for a message: escaped, and cut where it would flood a log line.
pub(super) fn field(name: &str) -> String {
    const SHOWN: usize = 100;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", name.get(..end).unwrap_or_default()),
        None => format!("{name:?}"),
    }
}

/// A list of names, cut after some.
pub(super) fn list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 20;
    let more = names.len() > SHOWN;
    let mut shown: Vec<_> = names.take(SHOWN).collect();
    if more {
        shown.push("...");
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_field_names_are_cut() {
        assert_eq!(field("a\nb"), r#""a\nb""#);
        assert_eq!(field(&"é".repeat(101)).chars().count(), 105);
    }
}
