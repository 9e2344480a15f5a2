//! The texts of statements: one for each shape, which is a number of rows and the columns that they carry.
//!
//! Invariant: a text is made of quoted catalog names, of the catalog's own defaults, and of places for variables, of nothing else. Rows that are there are
//! changed in place: no REPLACE, which deletes and inserts, and no OR IGNORE, which swallows more than a key that is there. Names of columns in expressions
//! are qualified: SQLite takes an unknown name in double quotes for a text.

use std::fmt::Write;

use oncesink::plan::{Mode, quote};

use crate::catalog::{Kind, Table};

/// Rows of one statement: more were slower.
const ROWS_MAX: usize = 100;
/// Rows of the statements for what is left over.
const ROWS_LEFT: [usize; 2] = [10, 1];

/// Rows of the next statement, where so many are left, of so many variables each. Few different numbers, so that statements stay prepared.
pub(crate) fn rows_of_next(left: usize, variables: usize, limit: usize) -> usize {
    let most = limit.checked_div(variables).unwrap_or(1).min(ROWS_MAX);
    [most].into_iter().chain(ROWS_LEFT).find(|rows| *rows <= left && *rows <= most).unwrap_or(0)
}

/// New rows, by what the mode says of keys that are there.
pub(crate) fn insert(table: &Table, mode: Mode, key: &[usize], columns: &[usize], rows: usize) -> String {
    let mut sql = format!("INSERT INTO {}", table.sql());
    match (columns, mode) {
        ([], Mode::Insert) => sql.push_str(" DEFAULT VALUES"),
        ([], _) => default_row(table, &mut sql),
        (columns, _) => {
            let _ = write!(sql, " ({}) VALUES ", quote::list(table.names(columns)));
            values(rows, columns.len(), None, &mut sql);
        }
    }
    if mode != Mode::Insert {
        on_conflict(table, mode, key, columns, &mut sql);
    }
    sql
}

/// DEFAULT VALUES takes no ON CONFLICT: the first column that may be named is named with its own default.
fn default_row(table: &Table, sql: &mut String) {
    let first = table.columns.iter().position(|column| column.takes != oncesink::plan::Takes::Generated);
    let named: Vec<usize> = first.into_iter().collect();
    let default = first.and_then(|first| table.defaults.get(first)?.as_deref()).unwrap_or("NULL");
    let _ = write!(sql, " ({}) VALUES (({default}))", quote::list(table.names(&named)));
}

fn on_conflict(table: &Table, mode: Mode, key: &[usize], columns: &[usize], sql: &mut String) {
    sql.push_str(" ON CONFLICT");
    if !key.is_empty() {
        let _ = write!(sql, " ({})", quote::list(table.names(key)));
    }
    let changed: Vec<usize> = match mode {
        Mode::InsertIgnore => Vec::new(),
        _ => columns.iter().copied().filter(|column| !key.contains(column)).collect(),
    };
    if changed.is_empty() {
        sql.push_str(" DO NOTHING");
        return;
    }
    let set = table.names(&changed).map(quote::identifier).map(|name| format!("{name} = excluded.{name}"));
    let _ = write!(sql, " DO UPDATE SET {}", set.collect::<Vec<_>>().join(", "));
}

/// Deletes the rows with these keys; a key that has none is no error. (A row of columns IN (VALUES ..) would read the whole table.)
pub(crate) fn delete(table: &Table, key: &[usize], rows: usize) -> String {
    let mut sql = format!("DELETE FROM {} AS t WHERE ", table.sql());
    if let [column] = key {
        let _ = write!(sql, "{} IN ", compared(table, *column));
        values(1, rows, None, &mut sql);
    } else {
        let one = format!("({})", same_key(table, key, |_| "?".to_owned()));
        let _ = write!(sql, "{}", vec![one; rows].join(" OR "));
    }
    sql
}

/// The places, from 0, of keys that have no row.
pub(crate) fn missing(table: &Table, key: &[usize], rows: usize) -> String {
    let mut sql = "WITH k AS (VALUES ".to_owned();
    values(rows, key.len(), Some(0), &mut sql);
    let same = same_key(table, key, |nth| format!("k.column{}", nth + 2));
    let _ = write!(
        sql,
        ") SELECT k.column1 FROM k WHERE NOT EXISTS (SELECT 1 FROM {} AS t WHERE {same})",
        table.sql()
    );
    sql
}

/// The carried columns of rows that are there; none when a row carries nothing but its key.
pub(crate) fn update(table: &Table, key: &[usize], columns: &[usize], rows: usize) -> Option<String> {
    let place = |column: usize| {
        let nth = columns.binary_search(&column).unwrap_or(usize::MAX - 1);
        format!("k.column{}", nth + 1)
    };
    let set: Vec<String> = columns
        .iter()
        .filter(|column| !key.contains(column))
        .flat_map(|column| {
            let name = table.names(std::slice::from_ref(column)).next().map(quote::identifier);
            name.map(|name| format!("{name} = {}", place(*column)))
        })
        .collect();
    if set.is_empty() {
        return None;
    }
    let mut sql = format!("UPDATE {} AS t SET {} FROM (VALUES ", table.sql(), set.join(", "));
    values(rows, columns.len(), None, &mut sql);
    let same = same_key(table, key, |nth| key.get(nth).map_or_else(String::new, |column| place(*column)));
    let _ = write!(sql, ") AS k WHERE {same}");
    Some(sql)
}

/// `(?, ?), (?, ?)`, each row with its place in front where the first place is given.
fn values(rows: usize, variables: usize, first: Option<usize>, sql: &mut String) {
    sql.reserve(rows * (3 * variables + 8));
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        if let Some(first) = first {
            let _ = write!(sql, "{}, ", first + row);
        }
        for variable in 0..variables {
            sql.push_str(if variable == 0 { "?" } else { ", ?" });
        }
        sql.push(')');
    }
}

fn same_key(table: &Table, key: &[usize], other: impl Fn(usize) -> String) -> String {
    let same =
        key.iter().enumerate().map(|(nth, column)| format!("{} = {}", compared(table, *column), other(nth)));
    same.collect::<Vec<_>>().join(" AND ")
}

/// A key column in a comparison: as its index compares, whatever collation the column itself was declared with.
fn compared(table: &Table, column: usize) -> String {
    let name = table.names(&[column]).next().map(quote::identifier).unwrap_or_default();
    match table.kind(column) {
        Some(Kind::Text(_) | Kind::Any) => format!("t.{name} COLLATE BINARY"),
        _ => format!("t.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use oncesink::plan::{Column, Takes};
    use oncesink_test_support::sqlite::File;

    use super::*;

    /// A table of text columns, of which the first two are a key.
    fn table(names: &[&str]) -> Table {
        let column = |name: &&str| Column {
            name: (*name).to_owned(),
            type_name: "TEXT".to_owned(),
            takes: Takes::Text,
            not_null: false,
            required: false,
            insert_only: false,
            insertable: true,
            updatable: true,
        };
        Table {
            name: "t".to_owned(),
            columns: names.iter().map(column).collect(),
            kinds: vec![Some(Kind::Text(None)); names.len()],
            defaults: vec![None; names.len()],
            fingerprint: String::new(),
            schema_version: 0,
            cascades: false,
            unique: Vec::new(),
        }
    }

    #[tokio::test]
    async fn rows_are_found_by_their_index_whatever_the_statement_on_sqlite() {
        let file = File::new("plans");
        file.execute(
            "CREATE TABLE t (a TEXT COLLATE NOCASE, b TEXT, c TEXT);
             CREATE UNIQUE INDEX one ON t (a COLLATE BINARY);
             CREATE UNIQUE INDEX two ON t (b, a COLLATE BINARY);
             INSERT INTO t VALUES ('a', 'b', 'c'); ANALYZE",
        )
        .await;
        let table = table(&["a", "b", "c"]);
        for key in [&[0][..], &[0, 1], &[1, 0]] {
            for rows in [1, 10, 100] {
                for sql in [
                    delete(&table, key, rows),
                    missing(&table, key, rows),
                    update(&table, key, &[0, 1, 2], rows).unwrap(),
                ] {
                    let plan = file.rows(&format!("EXPLAIN QUERY PLAN {sql}")).await;
                    let steps: Vec<String> =
                        plan.iter().map(|row| oncesink::sqlx::Row::get(row, "detail")).collect();
                    assert!(steps.iter().any(|step| step.starts_with("SEARCH t ")), "{steps:?} of {sql}");
                    assert!(!steps.iter().any(|step| step.starts_with("SCAN t")), "{steps:?} of {sql}");
                }
            }
        }
    }

    #[test]
    fn statements_have_few_shapes_within_the_limit() {
        let shapes = |rows: usize, variables: usize, limit: usize| {
            let (mut left, mut shapes) = (rows, Vec::new());
            while left > 0 {
                let next = rows_of_next(left, variables, limit);
                assert!(next > 0 && next * variables <= limit);
                shapes.push(next);
                left -= next;
            }
            shapes
        };
        assert_eq!(shapes(112, 6, 32_766), [100, 10, 1, 1]);
        assert_eq!(shapes(50, 40, 999), [24, 24, 1, 1]);
        assert_eq!(shapes(12, 500, 999), [1; 12]);
        assert_eq!(shapes(3, 0, 999), [1, 1, 1]);
        assert_eq!(rows_of_next(5, 1_000, 999), 0);
    }
}
