//! A writer: one connection, one transaction at a time, over any number of partitions.
//!
//! [`state`] decides, [`run`] acts; [`transaction`] is the one function that owns a transaction.

mod backlog;
mod flight;
mod gate;
mod gathering;
mod holdings;
mod run;
mod state;
mod told;
mod transaction;

pub use flight::ConfigSource;
pub(crate) use flight::open_on;
pub use gathering::BatchLimits;
#[cfg(test)]
pub(crate) use holdings::Holdings;
pub(crate) use holdings::{Buffered, First};
pub(crate) use run::{Instruction, Said, WriterHandle, WriterSettings, start};
pub(crate) use state::{Break, Gone, Report};
