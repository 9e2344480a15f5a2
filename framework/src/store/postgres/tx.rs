//! The open transaction: a newtype over its connection, from which no commit can be reached.

use sqlx::PgConnection;

/// An open transaction. Owns its connection: dropping it closes the connection, which the server takes for a rollback. It never goes back to a pool.
pub struct Tx {
    connection: PgConnection,
    savepoint: String,
}

impl Tx {
    /// Takes over a connection inside which `BEGIN` and the guard's savepoint were executed.
    pub(crate) fn new(connection: PgConnection, savepoint: String) -> Self {
        Self { connection, savepoint }
    }

    /// The connection, for statements. A COMMIT or ROLLBACK sent through it is found by the guard and ends the sink.
    pub fn sql(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(crate) fn savepoint(&self) -> &str {
        &self.savepoint
    }

    pub(crate) fn into_connection(self) -> PgConnection {
        self.connection
    }
}
