//! The command as a child process, on real servers: what it prints, what it changes, how it ends.

mod adopt;
mod bench;
pub(crate) use bench::{Ended, ended};
mod configuration;
mod preview;
mod start;
mod verbs;
