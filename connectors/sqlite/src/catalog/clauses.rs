//! `ON CONFLICT` clauses in the definition of a table: with them a plain INSERT drops rows, deletes others, or ends the transaction, and reports success.
//!
//! A clause of the statement's own would overrule them, but it would overrule those in the bodies of triggers too; so such tables are refused.

/// What a table does on a conflict that no caller hears of: `IGNORE`, `REPLACE` or `ROLLBACK`, when its definition says so.
pub(super) fn silent_conflict(definition: &str) -> Option<&'static str> {
    let words: Vec<String> = words(definition);
    words.windows(3).find_map(|three| match three {
        [on, conflict, what] if on == "ON" && conflict == "CONFLICT" => {
            ["IGNORE", "REPLACE", "ROLLBACK"].into_iter().find(|silent| what == silent)
        }
        _ => None,
    })
}

/// The bare words of a statement in upper case; a dot for everything else, so that words which something stands between are not neighbours.
fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => quoted(rest, first),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            '-' if rest.starts_with("--") => {
                rest = rest.split_once('\n').map_or("", |(_, after)| after);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest =
                    rest.get(2..).and_then(|inside| inside.split_once("*/")).map_or("", |(_, after)| after);
                continue;
            }
            first if first.is_whitespace() => {
                rest = rest.trim_start();
                continue;
            }
            first if is_word(first) => {
                let end = rest.find(|next| !is_word(next)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                words.push(word.to_ascii_uppercase());
                rest = after;
                continue;
            }
            other => other.len_utf8(),
        };
        words.push(".".to_owned());
        rest = rest.get(length..).unwrap_or_default();
    }
    words
}

/// Bytes of a quoted text, in which the quote is doubled.
fn quoted(text: &str, quote: char) -> usize {
    let mut inside = text.char_indices().skip(1).peekable();
    while let Some((at, next)) = inside.next() {
        if next != quote {
            continue;
        }
        if inside.next_if(|(_, doubled)| *doubled == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_found_and_nothing_else() {
        for (definition, expected) in [
            ("CREATE TABLE t (id INTEGER PRIMARY KEY ON CONFLICT REPLACE)", Some("REPLACE")),
            ("CREATE TABLE t (a, UNIQUE (a) on  conflict\n/* x */ Ignore)", Some("IGNORE")),
            ("CREATE TABLE t (a NOT NULL ON -- y\nCONFLICT ROLLBACK)", Some("ROLLBACK")),
            ("CREATE TABLE t (a UNIQUE ON CONFLICT ABORT, b UNIQUE ON CONFLICT FAIL)", None),
            ("CREATE TABLE t (a DEFAULT 'ON CONFLICT IGNORE')", None),
            ("CREATE TABLE t (a DEFAULT 'it''s ON CONFLICT IGNORE')", None),
            (
                "CREATE TABLE t (\"ON CONFLICT IGNORE\" TEXT, [ON CONFLICT IGNORE], `ON CONFLICT IGNORE`)",
                None,
            ),
            ("CREATE TABLE t (a) -- ON CONFLICT IGNORE", None),
            ("CREATE TABLE t (a /* ON CONFLICT IGNORE */)", None),
            ("CREATE TABLE \"ON\" (CONFLICT, IGNORE)", None),
        ] {
            assert_eq!(silent_conflict(definition), expected, "{definition}");
        }
    }
}
