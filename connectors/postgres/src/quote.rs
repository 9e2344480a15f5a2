//! Names in SQL: quoted as the standard says, which is how every connector here quotes them.

pub(crate) use oncesink::plan::quote::{identifier, list};
