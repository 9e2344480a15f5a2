//! The command and a SQLite file: kills at any moment, one process a file, one writer, and the operator's verbs.

mod kills;
mod one_process;
mod rig;
mod verbs;
