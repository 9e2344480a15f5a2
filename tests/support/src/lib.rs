//! Real servers and rude helpers for the tests of oncesink: Apache Kafka and Postgres on loopback, a proxy that sees
//! a COMMIT, the command as a child process, and polling with a deadline.
//!
//! Invariant: nothing started here outlives the test process, and nothing here waits by sleeping for luck; every wait
//! polls for a state and has a deadline. Servers named by `ONCESINK_TEST_KAFKA` and `ONCESINK_TEST_POSTGRES` are
//! foreign: only topics and schemas made here are touched on them.
//!
//! This is test code: it panics where a test should fail.

mod cache;
mod child;
mod eventually;
pub mod kafka;
mod names;
mod ports;
pub mod postgres;
pub mod process;
pub mod proxy;
mod secured;
mod servers;
mod sockets;
pub mod sqlite;
pub mod tls;
mod workdir;

pub use eventually::{eventually, eventually_within};
pub use names::{topic, unique};
pub use secured::Secured;
pub use servers::{KAFKA_VARIABLE, POSTGRES_VARIABLE, Servers};
pub use sockets::tcp_ports;
