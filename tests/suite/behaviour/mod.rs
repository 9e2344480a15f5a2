//! The behaviour table: what records become, written down as data and run on every database.
//!
//! A case is a table, the keys of the file, records, and what must be there afterwards. It runs on each database in every cut of its records into batches, and
//! once more among so many others that the large way of writing is taken: the rows and the bad records must always be the same. Where a database differs, the
//! case says how and why; where a case makes no sense on one, it says so, and `tests/cases.tsv` repeats it.

mod case;
mod cuts;
mod postgres;
mod sqlite;
mod world;

/// One test for each case and database. `only` leaves the other one out, for the reason that `tests/cases.tsv` gives.
macro_rules! cases {
    ($($name:ident $(only $database:ident)?),+ $(,)?) => { $( cases!(@one $name $($database)?); )+ };
    (@one $name:ident) => {
        mod $name {
            cases!(@test $name postgres Postgres);
            cases!(@test $name sqlite Sqlite);
        }
    };
    (@one $name:ident postgres) => { mod $name { cases!(@test $name postgres Postgres); } };
    (@one $name:ident sqlite) => { mod $name { cases!(@test $name sqlite Sqlite); } };
    (@test $name:ident $database:ident $world:ident) => {
        #[tokio::test]
        async fn $database() {
            $crate::behaviour::cuts::run::<$crate::behaviour::$database::$world>(stringify!($name), super::$name()).await;
        }
    };
}

mod absent;
mod deletes;
mod keys;
mod modes;
mod names;
mod nulls;
mod paths;
mod trips;
mod values;
