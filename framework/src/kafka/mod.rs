//! Kafka by way of librdkafka: one consumer thread, one queue for each writer, and a monitor without a group.
//!
//! This is the framework's inner part; it is public for the command and for tests. Data flows in the order of the modules: settings make a client,
//! its thread turns rebalances into [`Event`]s and carries out [`Command`]s, records reach a writer through its own [`DrainQueue`] and never through
//! the thread. The [`Monitor`] asks about topics and offsets on a client of its own, since a consumer's connection answers only behind its fetches.
//!
//! Invariants: every start is an absolute offset, nothing is committed to the group, and unsafe code stands in one module.

mod settings;
pub use settings::{ConsumerSettings, FORCED_PROPERTIES, GroupProtocol};
mod properties;
pub use properties::{PropertyError, check_property, known_properties};
mod events;
pub use events::{ClaimNumber, Command, Event, FatalKind, Start, Tenure};
mod consumer;
mod context;
mod membership;
pub use consumer::{ClientError, ConsumerHandle, start};
mod close;
mod ffi;
mod greeting;
mod starts;
mod trouble;
pub use ffi::{DrainQueue, Item, RawHeaders, RawRecord, WriterWake};
mod mock;
pub use mock::MockCluster;
mod monitor;
pub use monitor::{ClusterFacts, Ends, Monitor, MonitorError, TopicFacts, TopicState};

/// librdkafka's error codes.
pub use rdkafka::types::RDKafkaErrorCode as ErrorCode;
