//! The one place for unsafe code: what librdkafka offers and the safe binding does not.
//!
//! Invariants: every native object made here is destroyed here, on every path; a queue keeps its client alive, so none is ever used after its client;
//! the version is pinned, since the order of calls rests on behaviour that was read and tested in it.
//! Must not: drain a queue by the callback or batch functions. The first let stale control records move librdkafka's own position, the second loses
//! records behind an end of partition.

#![allow(unsafe_code)]

mod eventfd;
pub(super) use eventfd::EventFd;
mod queue;
pub(super) use queue::{ConsumerQueue, SharedClient, SharedQueue};
pub use queue::{DrainQueue, WriterWake};
mod record;
pub use record::{Item, RawHeaders, RawRecord};
mod list;
pub(super) use list::set_leader_epoch;
mod conf;
pub(super) use conf::property_names;
mod mock;
pub(super) use mock::make_usable;
mod admin;
pub(super) use admin::{
    AdminError, OffsetAnswer, OffsetQuery, Patience, describe_cluster, describe_topics, list_offsets, serve,
};
