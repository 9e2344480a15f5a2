//! From an error of the driver to what is to be done.

use crate::error::{Class, Failure, SinkError};

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        let mut failure = Self::new(Class::Transient, error.to_string());
        if let sqlx::Error::Database(database) = &error {
            failure.sql_state = database.code().map(|code| code.into_owned());
            failure.session_alive = true;
        }
        failure.with_source(error)
    }
}

impl From<sqlx::Error> for SinkError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}
