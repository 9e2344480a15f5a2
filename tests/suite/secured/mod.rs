//! Kafka and Postgres behind TLS, passwords and certificates: rows flow once, and whatever is refused is said in one line.

mod database;
mod flow;
mod kafka;
mod libraries;
mod rotation;
mod stage;
