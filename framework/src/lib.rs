//! `oncesink`: rows from Kafka reach a database exactly once.
//!
//! The modules stand in the order in which data flows: the consumer reads, a writer gathers records into slices, one transaction writes rows and
//! offset together, and the supervisor moves partitions between claimed, running and stopped.

pub mod config;
pub mod kafka;
pub mod metrics;
pub mod position;

mod topics;
pub use topics::{Pattern, Topics};
mod record;
pub mod remedy;
pub use record::{Headers, Record, TopicPartition};
mod batch;
pub use batch::{Batch, Encoded, Part, Records, Slice, SliceBuilder, SliceEnd};
mod error;
pub use error::{BadRecord, Class, CommitFailure, DataError, Failure, Reason, SinkError};
mod dead_letter;
pub use dead_letter::DeadLetter;
mod sink;
pub use sink::{Sink, Statements};
mod written;
pub use written::{Counts, Written};

pub mod plan;
pub mod value;

pub mod store;
mod tls;

mod writer;
pub use writer::{BatchLimits, ConfigSource};
mod supervisor;
pub use supervisor::{Checked, Ended, LiveSink, Promise, SinkSettings, SinkTask, TopicIds, check, run};

pub use async_trait::async_trait;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use sqlx;
#[cfg(feature = "postgres")]
pub use store::postgres;
#[cfg(feature = "sqlite")]
pub use store::sqlite;
