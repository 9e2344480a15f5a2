//! The bundled Postgres sink: JSON records become rows of existing tables, by exact column name, in the transaction that moves the stored offsets.
//!
//! Data flows as the modules stand: the file's keys ([`oncesink::plan::Config`]) and the live catalog give a mapping per topic; [`Sink::encode`] turns a batch into
//! statements whose values are already in Postgres' binary form; [`Sink::write`] sends them. Nothing from a record ever becomes SQL text, and no value
//! is altered on its way: what a column cannot hold as it stands is a bad record.
//!
//! [`Sink::encode`]: oncesink::Sink::encode
//! [`Sink::write`]: oncesink::Sink::write

mod quote;

mod catalog;
#[doc(hidden)]
pub use catalog::column_types;

mod value;

mod encode;
mod statement;

mod write;

mod sink;
pub use sink::Tables;
