//! What a verb prints: lines for people, or one JSON object for machines. Logs go to the other stream.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use crate::exit::{Exit, Failed};

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// A result: `value` for machines, `lines` for people. A closed pipe is no error of ours.
    pub(crate) fn print(self, value: &impl Serialize, lines: &str) {
        let mut out = std::io::stdout().lock();
        let _ = if self.json {
            match serde_json::to_string(value) {
                Ok(text) => writeln!(out, "{text}"),
                Err(error) => writeln!(out, "{}", json!({ "error": error.to_string() })),
            }
        } else {
            writeln!(out, "{}", lines.trim_end())
        };
    }

    /// A failure: for machines on standard output too, so that there is always one object to read.
    pub(crate) fn fail(self, failed: &Failed) -> Exit {
        if self.json {
            let object = json!({ "error": failed.message, "exit": failed.exit as u8 });
            let _ = writeln!(std::io::stdout().lock(), "{object}");
        } else {
            let _ = writeln!(std::io::stderr().lock(), "error: {failed}");
        }
        failed.exit
    }
}

/// Columns side by side, each as wide as its widest cell.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["orders/0", "12", "running"], ["o/1", "1", ""]];
        let rows: Vec<Vec<String>> = rows.map(|row| row.map(ToOwned::to_owned).to_vec()).into();
        assert_eq!(table(&rows), "orders/0  12  running\no/1       1\n");
    }
}
