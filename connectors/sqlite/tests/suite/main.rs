//! The sink against files of its own: what its tables accept and refuse. What SQLite shares with other databases is tested where they are compared.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixture;

mod catalog;
mod limits;
mod modes;
mod names;
mod refusals;
mod values;
