//! The command against real servers: what reaches the table, whatever happens on the way. One binary, so that the tests share their servers.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod architecture;
mod attack;
mod basics;
mod behaviour;
mod cases;
mod command;
mod dead_letters;
mod demo;
mod example;
mod faults;
mod logs;
mod metrics;
mod positions;
mod readme;
mod rebalance;
mod rig;
mod scrape;
mod secured;
mod sqlite;
mod startup;
