//! What is measured: the closed list of metrics, and the series of the partitions that are here now.
//!
//! Counters and histograms go through the `metrics` facade, which an embedding program may record as it likes. The series of partitions do not: the
//! facade cannot take a series back, and a partition that went elsewhere must be gone at once, so that sums over instances are right. They are a snapshot
//! ([`Live`]), and [`render`] writes it as text behind what a Prometheus exporter of the facade says.
//!
//! Invariant: nothing is emitted that is not in [`LIST`]; a test of the command compares a scrape with it.

mod list;
pub use list::{Kind, LIST, Metric, describe, names};
mod partitions;
pub use partitions::{Live, PARTITION_METRICS, PartitionSeries, render};

pub(crate) mod emit;
