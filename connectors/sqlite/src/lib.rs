//! The bundled SQLite sink: JSON records become rows of existing tables, by exact column name, in the transaction that moves the stored offsets.
//!
//! Data flows as the modules stand: the file's keys ([`oncesink::plan::Config`]) and the live catalog give a mapping per topic; [`Sink::encode`] turns a batch
//! into rows whose values are of the storage class that the declared type asks for; [`Sink::write`] binds them to statements of few shapes. Nothing from a
//! record ever becomes SQL text, and no value is altered on its way, by us or by a column's affinity: what a column cannot hold as it stands is a bad record.
//!
//! [`Sink::encode`]: oncesink::Sink::encode
//! [`Sink::write`]: oncesink::Sink::write

mod catalog;

mod value;

mod statement;
mod write;

mod sink;
pub use sink::Tables;
