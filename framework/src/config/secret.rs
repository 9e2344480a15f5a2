//! Text of the configuration with what `${file:/path}` and `${env:NAME}` stand for.
//!
//! Invariant: neither `Debug` nor `Display` shows the value, nor the text it was made from. `${topic}`, without a colon, belongs to the sink and stays.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::environment::Environment;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// As written, or as the environment had it at load: the environment of a process does not change.
    Fixed(String),
    /// Read again at every reconnect, so that a rotated secret needs no restart.
    File(PathBuf),
}

/// Text that is never printed. [`expose`](Secret::expose) gives what was read at load, [`current`](Secret::current) reads its files again.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    template: Arc<str>,
    parts: Arc<[Part]>,
    value: Arc<str>,
}

impl Secret {
    /// Text as it stands, without looking for `${`.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            template: text.as_str().into(),
            value: text.as_str().into(),
            parts: [Part::Fixed(text)].into(),
        }
    }

    /// Resolves `${file:/path}` (one trailing line end is dropped) and `${env:NAME}`; `$${` stands for `${`.
    ///
    /// # Errors
    /// An unknown source, a file that cannot be read, a variable that is not set; for people, without any value.
    pub(crate) fn resolve(template: &str, environment: &Environment) -> Result<Self, String> {
        let parts = parse(template, environment)?;
        let value = join(&parts)?;
        Ok(Self { template: template.into(), parts: parts.into(), value: value.into() })
    }

    /// Text with `${file:/path}` and `${env:NAME}`, as in the configuration file, for an embedding program.
    ///
    /// # Errors
    /// An unknown source, a file that cannot be read, a variable that is not set; for people, without any value.
    pub fn parse(template: &str) -> Result<Self, String> {
        Self::resolve(template, &Environment::process())
    }

    /// The text as read at load.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// The text now: files are read again.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn current(&self) -> Result<String, String> {
        join(&self.parts)
    }

    /// What stands in the configuration file; for messages about keys that hold no secret.
    pub(crate) fn template(&self) -> &str {
        &self.template
    }

    /// Whether the text came from elsewhere than the configuration.
    pub(crate) fn is_indirect(&self) -> bool {
        self.template != self.value
    }
}

impl From<&str> for Secret {
    /// As it stands, see [`Secret::literal`].
    fn from(text: &str) -> Self {
        Self::literal(text)
    }
}

impl From<String> for Secret {
    /// As it stands, see [`Secret::literal`].
    fn from(text: String) -> Self {
        Self::literal(text)
    }
}

impl From<&String> for Secret {
    /// As it stands, see [`Secret::literal`].
    fn from(text: &String) -> Self {
        Self::literal(text.as_str())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn parse(template: &str, environment: &Environment) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut fixed = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            fixed.push_str(before);
            fixed.push_str("${");
            rest = &from[2..];
            continue;
        }
        fixed.push_str(before);
        let Some(end) = from.find('}') else {
            return Err("a \"${\" without its \"}\"".to_owned());
        };
        let inner = &from[2..end];
        match inner.split_once(':') {
            None => fixed.push_str(&from[..=end]),
            Some(("env", name)) => match environment.get(name) {
                Some(value) => fixed.push_str(value),
                None => return Err(format!("the environment variable {name} is not set")),
            },
            Some(("file", path)) => {
                parts.push(Part::Fixed(std::mem::take(&mut fixed)));
                parts.push(Part::File(path.into()));
            }
            Some((source, _)) => {
                return Err(format!("unknown source {source:?} in \"${{{source}:...}}\"; known: file, env"));
            }
        }
        rest = &from[end + 1..];
    }
    fixed.push_str(rest);
    parts.push(Part::Fixed(fixed));
    Ok(parts)
}

fn join(parts: &[Part]) -> Result<String, String> {
    let mut value = String::new();
    for part in parts {
        match part {
            Part::Fixed(text) => value.push_str(text),
            Part::File(path) => {
                let bytes =
                    std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
                let text =
                    String::from_utf8(bytes).map_err(|_| format!("{} is no UTF-8 text", path.display()))?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                value.push_str(text.strip_suffix('\r').unwrap_or(text));
            }
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        [("PW".to_owned(), "hunter2".to_owned())].into_iter().collect()
    }

    #[test]
    fn resolves_env_keeps_topic_and_escapes() {
        for (template, value) in [
            ("plain", "plain"),
            ("a${env:PW}b", "ahunter2b"),
            ("sales.${topic}", "sales.${topic}"),
            ("sales.${topic[1]}", "sales.${topic[1]}"),
            ("$${env:PW}", "${env:PW}"),
            ("a$b", "a$b"),
        ] {
            assert_eq!(Secret::resolve(template, &environment()).unwrap().expose(), value, "{template}");
        }
    }

    #[test]
    fn a_file_loses_one_line_end_and_is_read_again() {
        let path = std::env::temp_dir().join(format!("oncesink-secret-{}", std::process::id()));
        std::fs::write(&path, "first\n\n").unwrap();
        let secret = Secret::resolve(&format!("<${{file:{}}}>", path.display()), &environment()).unwrap();
        assert_eq!(secret.expose(), "<first\n>");
        std::fs::write(&path, "second\r\n").unwrap();
        assert_eq!(secret.current().unwrap(), "<second>");
        assert_eq!(secret.expose(), "<first\n>");
        std::fs::remove_file(&path).unwrap();
        assert!(secret.current().unwrap_err().starts_with("cannot read"));
    }

    #[test]
    fn never_printed() {
        let secret = Secret::resolve("hunter2", &environment()).unwrap();
        assert!(!format!("{secret} {secret:?} {:#?}", Some(&secret)).contains("hunter2"));
    }
}
