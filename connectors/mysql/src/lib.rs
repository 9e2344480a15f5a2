//! The bundled sink for MySQL and MariaDB: JSON records become rows of existing tables, by exact column name, in the transaction that moves the stored offsets.
