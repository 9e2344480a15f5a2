//! Apache Kafka for tests: clusters of our own, and a client for topics and records that works on foreign ones too.

mod broker;
mod client;
mod cluster;
mod install;
mod produce;
mod scram;
mod secured;
mod topic_id;
mod transaction;

pub use broker::Broker;
pub use client::{Kafka, Watermarks};
pub use cluster::{KafkaCluster, KafkaOptions};
pub use install::installed_version;
pub use produce::Record;
pub use secured::SecuredKafka;
pub use transaction::Transaction;
