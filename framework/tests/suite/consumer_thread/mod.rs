//! The consumer thread: what it sends, what it does when asked, and what when nobody asks.

mod group;
mod lost;
mod records;
mod stop;
