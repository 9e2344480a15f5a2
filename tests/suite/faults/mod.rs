//! What breaks between the sink and its database, one idea a module, and what must be in the tables afterwards.

mod chaos;
mod commit;
mod connector;
mod errors;
mod isolation;
mod metric;
mod offsets;
mod orphans;
mod outage;
mod read_only;
mod rotated;
mod several;
mod sick;
mod terminated;
