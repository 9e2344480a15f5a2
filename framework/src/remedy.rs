//! The commands that help, as they can be pasted.
//!
//! Invariant: every command that a message names is made here, so that it bears the configuration file that this process was given. An embedding program names
//! none; its messages then speak of the command with its default file.

use std::fmt::Display;
use std::path::Path;
use std::sync::OnceLock;

static CONFIG: OnceLock<String> = OnceLock::new();

/// The file that is taken when none is named.
pub const DEFAULT_CONFIG: &str = "oncesink.toml";

/// Remembers the configuration file for the commands in messages; the first one stays.
pub fn name_config(path: &Path) {
    let path = path.display().to_string();
    if path != DEFAULT_CONFIG {
        // A second command line in one process is none that a person could paste.
        let _ = CONFIG.set(format!(" --config {}", quoted(&path)));
    }
}

/// `migrate` as `oncesink migrate`, with the file behind it when one was named.
pub fn command(words: impl Display) -> String {
    format!("oncesink {words}{}", CONFIG.get().map_or("", String::as_str))
}

fn quoted(path: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '=' | ':' | ',' | '@')
    };
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_quoted_where_a_shell_would_read_more_into_it() {
        for (path, expected) in [
            ("/etc/oncesink/shop.toml", "/etc/oncesink/shop.toml"),
            ("my file.toml", "'my file.toml'"),
            ("it's.toml", "'it'\\''s.toml'"),
            ("$(x).toml", "'$(x).toml'"),
        ] {
            assert_eq!(quoted(path), expected);
        }
        assert!(command("migrate").starts_with("oncesink migrate"));
    }
}
