//! The command against real servers: what reaches the table, whatever happens on the way. One binary, so that the tests share their servers.

mod basics;
mod command;
mod faults;
mod readme;
mod rebalance;
mod rig;
