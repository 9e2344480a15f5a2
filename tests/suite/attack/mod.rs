//! What a sceptic tried in order to break the promise, and found.

mod claims;
mod crowd;
mod slow;
