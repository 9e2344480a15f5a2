//! Owners that come, go, freeze and wake up, with the real command as processes: rows exist once whatever they do to one another.

mod flow;
mod frozen;
mod group;
mod joins;
mod kills;
mod load;
mod locked;
mod overtaken;
mod positions;
mod revoke;
mod shared_key;
