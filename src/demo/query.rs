//! `demo query`: one statement that only reads, on the file that the sink wrote.
//!
//! Invariant: the file is opened for reading only, whatever the statement says.

use std::path::Path;

use futures_util::TryStreamExt;
use oncesink::sqlx::sqlite::{SqliteRow, SqliteValueRef};
use oncesink::sqlx::{self, Column, ConnectOptions, Connection, Row, TypeInfo, ValueRef};
use serde_json::{Value, json};

use super::tables;
use crate::exit::{Exit, Failed};
use crate::output::{Output, table};

pub(super) fn run(path: &Path, sql: &str, output: Output) -> Result<Exit, Failed> {
    if !path.exists() {
        let name = path.display();
        return Err(Failed::refused(format!(
            "there is no {name} in this folder; make it with: oncesink demo"
        )));
    }
    if !is_single(sql) {
        return Err(Failed::refused("one statement at a time"));
    }
    let rows = tables::runtime()?.block_on(async {
        let mut connection = tables::options(path).read_only(true).connect().await?;
        let rows: Vec<SqliteRow> = sqlx::query(sql).fetch(&mut connection).try_collect().await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(rows)
    });
    let rows = rows.map_err(|error| Failed::refused(said(&error)))?;
    let names: Vec<String> = rows
        .first()
        .map(|row| row.columns().iter().map(|column| column.name().to_owned()).collect())
        .unwrap_or_default();
    let values: Vec<Vec<Value>> =
        rows.iter().map(|row| (0..names.len()).map(|index| value(row, index)).collect()).collect();
    let mut lines = vec![names.clone()];
    lines.extend(values.iter().map(|row| row.iter().map(shown).collect()));
    let text = if rows.is_empty() { "no rows".to_owned() } else { table(&lines) };
    output.print(&json!({ "columns": names, "rows": values }), &text);
    Ok(Exit::Done)
}

/// SQLite's own words.
fn said(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// Whether a semicolon stands at most at the end. Quotes are those of SQL.
fn is_single(sql: &str) -> bool {
    let mut quote = None;
    let mut ended = false;
    for letter in sql.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, letter) if letter.is_whitespace() => {}
            (None, ';') => ended = true,
            (None, _) if ended => return false,
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None, _) => {}
        }
    }
    true
}

fn value(row: &SqliteRow, index: usize) -> Value {
    let Ok(raw) = row.try_get_raw(index) else { return Value::Null };
    if raw.is_null() {
        return Value::Null;
    }
    match raw.type_info().name() {
        "INTEGER" | "BOOLEAN" => row.try_get_unchecked::<i64, _>(index).map_or(Value::Null, Value::from),
        "REAL" => row.try_get_unchecked::<f64, _>(index).map_or(Value::Null, Value::from),
        "BLOB" => blob(raw),
        _ => row.try_get_unchecked::<String, _>(index).map_or(Value::Null, Value::from),
    }
}

fn blob(raw: SqliteValueRef<'_>) -> Value {
    let bytes = <Vec<u8> as sqlx::Decode<'_, sqlx::Sqlite>>::decode(raw).unwrap_or_default();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x'{digits}'").into()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.replace(char::is_control, " "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_may_end_with_a_semicolon() {
        for (sql, single) in [
            ("SELECT 1", true),
            ("SELECT 1; ", true),
            ("SELECT ';' AS \"a;b\"", true),
            ("SELECT 'it''s; fine'", true),
            ("SELECT 1; SELECT 2", false),
            ("SELECT 1;; DELETE FROM orders", false),
        ] {
            assert_eq!(is_single(sql), single, "{sql}");
        }
    }
}
