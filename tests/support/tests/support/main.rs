//! The support crate against itself: one binary, so that the shared servers start once.

mod kafka;
mod postgres;
mod process;
mod proxy;
