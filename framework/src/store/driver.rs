//! From an error of the driver to what is to be done, whichever database it comes from.
//!
//! Must not: keep an error that may quote a record. What a server says of data is put into our own words by the database's part.

use crate::error::{Class, DataError, Failure, Reason, SinkError};
use crate::store::operate::VerbError;

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => answered(&*error),
            // Our own call, or a catalog that no longer fits it: the session is as it was.
            error @ (sqlx::Error::RowNotFound
            | sqlx::Error::TypeNotFound { .. }
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)) => {
                let mut failure = Self::new(Class::StaleCatalog, error.to_string());
                failure.session_alive = true;
                failure
            }
            // What cannot be bound is data: text with a NUL, more parameters than the protocol counts.
            sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => {
                let mut failure = Self::new(Class::BadRecord, "a value cannot be sent to the database");
                failure.data =
                    Some(Box::new(DataError { reason: Reason::ServerData, table: None, column: None }));
                failure.session_alive = true;
                failure
            }
            error @ sqlx::Error::Configuration(_) => Self::fatal(error.to_string()).with_source(error),
            // Reset, TLS, DNS, a broken protocol: no state, their own message.
            error => Self::new(Class::Transient, error.to_string()).with_source(error),
        }
    }
}

fn answered(error: &dyn sqlx::error::DatabaseError) -> Failure {
    #[cfg(feature = "postgres")]
    if let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
        return super::postgres::answered(error);
    }
    #[cfg(feature = "sqlite")]
    if let Some(error) = error.try_downcast_ref::<sqlx::sqlite::SqliteError>() {
        return super::sqlite::answered(error);
    }
    Failure::new(Class::Transient, error.message().to_owned())
}

impl From<sqlx::Error> for SinkError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<sqlx::Error> for VerbError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}
