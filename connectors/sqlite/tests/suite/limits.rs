//! How many variables a statement may bind is a matter of how SQLite was built, so it is asked.
#![allow(unsafe_code)]

use libsqlite3_sys as native;
use oncesink::Class;
use oncesink::sqlite::Tx;

use crate::fixture::{Fixture, batch, failure};

/// Lowers the limit of one connection, as an older SQLite has it.
async fn lower(tx: &mut Tx, limit: i32) {
    let mut handle = tx.sql().lock_handle().await.unwrap();
    // SAFETY: the handle is open and locked.
    unsafe {
        native::sqlite3_limit(handle.as_raw_handle().as_ptr(), native::SQLITE_LIMIT_VARIABLE_NUMBER, limit)
    };
}

fn wide(columns: usize) -> String {
    let columns: Vec<_> = (1..columns).map(|nth| format!("c{nth} INTEGER")).collect();
    format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {})", columns.join(", "))
}

fn row(id: usize, columns: usize) -> String {
    let fields: Vec<_> = (1..columns).map(|nth| format!("\"c{nth}\":{}", id + nth)).collect();
    format!("{{\"id\":{id},{}}}", fields.join(","))
}

#[tokio::test]
async fn c049_statements_are_cut_by_the_limit_of_the_connection_on_sqlite() {
    const ROWS: usize = 1_000;
    const COLUMNS: usize = 40;
    for (mode, keys) in [("insert", ""), ("upsert", r#","key":["id"],"key_from":"value","delete":"none""#)] {
        let fixture = Fixture::new(&wide(COLUMNS)).await;
        let sink = fixture.open(&format!(r#"{{"table":{{"mode":"{mode}"{keys}}}}}"#), &["t"]).await.unwrap();
        let values: Vec<_> = (1..=ROWS).map(|id| row(id, COLUMNS)).collect();
        let mut tx = fixture.begin().await;
        lower(&mut tx, 999).await;
        fixture.write_in(tx, &sink, &batch(&values)).await.unwrap();
        let sums = fixture.rows("SELECT count(*) || ' ' || sum(c39 - id) FROM t").await;
        assert_eq!(sums, [format!("{ROWS} {}", 39 * ROWS)], "{mode}");
    }
}

#[tokio::test]
async fn a_row_that_no_statement_can_bind_says_so_on_sqlite() {
    let fixture = Fixture::new(&wide(40)).await;
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let mut tx = fixture.begin().await;
    lower(&mut tx, 39).await;
    let refused = failure(fixture.write_in(tx, &sink, &batch(&[row(1, 40)])).await.unwrap_err());
    assert_eq!(refused.class, Class::Fatal);
    assert!(refused.message.contains("a row binds 40 variables, and this SQLite allows 39"), "{refused}");
}
