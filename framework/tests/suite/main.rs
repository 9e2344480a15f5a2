//! Tests of the framework's parts against real servers: the consumer thread, and the facts about Kafka and librdkafka that the framework rests on.
//!
//! Each test has its own topic and group; nothing waits but by polling for a state with a deadline.

mod broker_facts;
mod consumer_thread;
mod member;
