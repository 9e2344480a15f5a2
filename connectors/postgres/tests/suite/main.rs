//! The Postgres sink on a real server. One binary, one server for all; each test has its own schema.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fields;
mod fixture;
mod modes;
mod names;
mod paths;
mod postgres_types;
mod properties;
mod refusals;
mod speed;
mod values;
mod volume;
