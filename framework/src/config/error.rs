//! Mistakes in the configuration: each names its place, the key, what is wrong and what helps.
//!
//! Must not: quote a value that came from a file or a variable. Messages are made from what stands in the configuration file.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Where a value was written: a line of the file, or a variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Line number from 1; 0 for a variable.
    line: usize,
    label: Arc<str>,
}

impl Place {
    pub(crate) fn line(file: &str, line: usize) -> Self {
        Self { line, label: format!("{file}:{line}").into() }
    }

    pub(crate) fn variable(name: &str) -> Self {
        Self { line: 0, label: name.into() }
    }

    /// The file as a whole, for what is missing in it.
    pub(crate) fn file(file: &str) -> Self {
        Self { line: usize::MAX, label: file.into() }
    }

    pub(crate) const fn is_variable(&self) -> bool {
        self.line == 0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) at: Place,
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// The mistakes found so far; reading goes on, so that one run names all of them.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, at: &Place, message: impl Into<String>) {
        let problem = Problem { at: at.clone(), message: message.into() };
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Whether something was said about this key already.
    pub(crate) fn mentions(&self, path: &str) -> bool {
        self.0
            .iter()
            .any(|problem| problem.message.strip_prefix(path).is_some_and(|rest| rest.starts_with(':')))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value, unless a mistake was found; in the order of the lines, variables first.
    pub(crate) fn or<T>(mut self, value: Option<T>) -> Result<T, ConfigError> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            _ => {
                self.0.sort();
                Err(ConfigError { problems: self.0 })
            }
        }
    }
}

/// What is wrong with the configuration: one line a mistake, `oncesink.toml:4: unknown key "topcis" in [sinks.orders]; did you mean "topics"?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(crate) fn one(at: &Place, message: impl Into<String>) -> Self {
        Self { problems: vec![Problem { at: at.clone(), message: message.into() }] }
    }

    /// All mistakes, one line each.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.problems.iter().map(ToString::to_string)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for ConfigError {}

/// The known name nearest to a mistyped one.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `; did you mean "topics"?`, or the list of what is known when it is short and nothing is near.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean {near:?}?"),
        None if known.is_empty() || known.len() > 24 => String::new(),
        None => {
            let mut sorted = known.to_vec();
            sorted.sort_unstable();
            format!("; known here: {}", sorted.join(", "))
        }
    }
}
