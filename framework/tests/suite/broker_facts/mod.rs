//! What Kafka and librdkafka were found to do, and what the framework rests on: one test for each rule that it keeps. A new version of either that
//! behaves otherwise fails here first, by name.
//!
//! The rules are numbered as they were when they were found out; each test says its own in words.

mod brokers;
mod identity;
mod native;
mod queues;
mod reassign;
mod rebalance;
mod transactions;
