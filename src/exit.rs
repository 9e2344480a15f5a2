//! How the process ends, for whoever started it.

use std::fmt;
use std::process::ExitCode;

/// Exit codes. A person or a supervisor acts differently on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Stopped when asked to, the end reached with `--until-end`, or the verb done.
    Done = 0,
    /// A refused verb: a wrong `--expect`, an unknown place, nothing stopped there. Nothing was changed.
    Refused = 1,
    /// The configuration or the command line.
    Configuration = 2,
    /// What was found before anything was consumed: a wrong password, a missing table, a taken port.
    Preflight = 3,
    /// Every sink ended by a fatal error, or `--until-end` stopped short at partitions that stopped.
    Fatal = 4,
    /// The drain deadline passed with a COMMIT unanswered.
    DrainPassed = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A verb that did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failed {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, message)
    }

    pub(crate) fn preflight(message: impl Into<String>) -> Self {
        Self::new(Exit::Preflight, message)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<oncesink::config::ConfigError> for Failed {
    fn from(error: oncesink::config::ConfigError) -> Self {
        Self::configuration(error.to_string())
    }
}

/// What a database says to a verb: an answer that refuses, or none.
impl From<oncesink::Failure> for Failed {
    fn from(failure: oncesink::Failure) -> Self {
        Self::preflight(failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_a_contract() {
        let codes = [
            (Exit::Done, 0),
            (Exit::Refused, 1),
            (Exit::Configuration, 2),
            (Exit::Preflight, 3),
            (Exit::Fatal, 4),
            (Exit::DrainPassed, 5),
        ];
        for (exit, code) in codes {
            assert_eq!(exit as u8, code);
        }
    }
}
