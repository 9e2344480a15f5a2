//! The store for Postgres: offsets, claims and the transaction that rows share with them.

mod classify;
mod tx;

pub use tx::Tx;
