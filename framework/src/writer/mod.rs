//! A writer: one connection, one transaction at a time, over any number of partitions.
//!
//! [`state`] decides, [`run`] acts; [`transaction`] is the one function that owns a transaction.

mod flight;
mod gate;
mod gathering;
mod run;
mod state;
mod transaction;

pub use flight::ConfigSource;
pub(crate) use flight::open_on;
pub use gathering::BatchLimits;
pub(crate) use run::{Buffered, Instruction, Said, WriterHandle, WriterSettings, start};
pub(crate) use state::{Break, Gone, Report};
