//! A running sink: the group's assignment, the claims, and the writers.
//!
//! [`state`] decides over partitions, [`run`] acts; [`claimer`] and [`watch`] work beside it and decide nothing.

mod chronicle;
mod claimer;
mod live;
mod orphans;
mod preflight;
mod promise;
mod run;
mod settings;
mod sinks;
mod stalls;
mod starts;
mod state;
mod watch;

pub use live::LiveSink;
pub use preflight::{Checked, check};
pub use promise::{Promise, TopicIds};
pub use settings::SinkSettings;
pub use sinks::{Ended, SinkTask, run};
