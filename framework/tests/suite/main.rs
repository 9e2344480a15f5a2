//! Tests of the framework's parts against real servers, in one binary so that they share them: the consumer thread, the facts about Kafka and librdkafka
//! that the framework rests on, and the store.
//!
//! Each test has its own topic, group and schema; nothing waits but by polling for a state with a deadline.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// What is promised of all stores is one text that runs on each.
#![allow(clippy::duplicate_mod)]

mod broker_facts;
mod consumer_thread;
mod member;
mod mock;
mod store;
