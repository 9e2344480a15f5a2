//! `preview`: the first records of each topic as they come, and the row, the delete or the bad record that each becomes.
//!
//! Here values are shown to whoever asks, on standard output; that is its purpose. Must not: write, join a group, or let a value reach the log.

use oncesink::plan::Preview;
use oncesink::{BadRecord, Record};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Context, cluster, sample};
use crate::arguments;
use crate::exit::{Exit, Failed};
use crate::place;

/// A record, and what it becomes.
#[derive(Debug, Serialize)]
struct Shown {
    sink: String,
    topic: String,
    partition: i32,
    offset: i64,
    timestamp: Option<i64>,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(String, Option<String>)>,
    target: String,
    becomes: Becomes,
}

/// Columns with their values as JSON, in the table's order.
#[derive(Debug)]
struct Cells(Vec<(String, Box<RawValue>)>);

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Becomes {
    Row(Cells),
    Delete(Cells),
    Skipped,
    Bad { reason: &'static str, column: Option<String>, message: String },
}

#[derive(Debug, Default, Serialize)]
struct Previews {
    records: Vec<Shown>,
    /// Topics without a record.
    empty: Vec<String>,
}

pub(crate) async fn run(context: &Context, arguments: &arguments::Preview) -> Result<Exit, Failed> {
    let sinks = match &arguments.sink {
        Some(name) => vec![place::sink(Some(name), &context.config)?],
        None => context.config.sinks.iter().collect(),
    };
    let kafka = &context.config.kafka;
    let monitor = cluster::monitor(kafka)?;
    let limit = usize::from(arguments.limit);
    let mut shown = Previews::default();
    for sink in sinks {
        for topic in &sink.topics {
            let parts = sample::first_records(&monitor, kafka, sink, topic, limit).await?;
            let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
                shown.empty.push(topic.clone());
                continue;
            };
            let records = sample::in_turn(&parts, limit);
            let (_, previewed) =
                sample::previewed(context, sink, topic, records.clone()).await.map_err(|error| {
                    Failed::preflight(format!("{}: {}: {error}", sink.name, sink.target.shown()))
                })?;
            for (record, becomes) in records.iter().zip(previewed.becomes) {
                shown.records.push(show(&sink.name, record, &previewed.target, becomes));
            }
        }
    }
    context.output.print(&shown, &text(&shown));
    Ok(Exit::Done)
}

fn show(sink: &str, record: &Record<'_>, target: &str, becomes: Result<Option<Preview>, BadRecord>) -> Shown {
    Shown {
        sink: sink.to_owned(),
        topic: record.topic().to_owned(),
        partition: record.partition(),
        offset: record.offset(),
        timestamp: record.timestamp(),
        key: record.key().map(bytes),
        value: record.value().map(bytes),
        headers: record.headers().iter().map(|(name, value)| (name.into_owned(), value.map(bytes))).collect(),
        target: target.to_owned(),
        becomes: match becomes {
            Ok(Some(Preview::Row(cells))) => Becomes::Row(json(cells)),
            Ok(Some(Preview::Delete(cells))) => Becomes::Delete(json(cells)),
            Ok(None) => Becomes::Skipped,
            Err(bad) => Becomes::Bad { reason: bad.reason.code(), column: bad.column, message: bad.message },
        },
    }
}

/// Text where the bytes are text, else hexadecimal digits.
fn bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().fold("\\x".to_owned(), |digits, byte| format!("{digits}{byte:02x}")),
    }
}

/// Values stay as they were written: a number keeps all of its digits. What is no JSON, as bytes are not, becomes a string.
fn json(cells: Vec<(String, String)>) -> Cells {
    let of = |text: String| {
        RawValue::from_string(text.clone()).or_else(|_| serde_json::value::to_raw_value(&text))
    };
    Cells(cells.into_iter().filter_map(|(name, text)| Some((name, of(text).ok()?))).collect())
}

fn text(shown: &Previews) -> String {
    let mut text = String::new();
    for record in &shown.records {
        let Shown { topic, partition, offset, target, .. } = record;
        let said = |what: Option<&String>| what.map_or("none", String::as_str).to_owned();
        text.push_str(&format!("{topic}/{partition}@{offset}  key {}", said(record.key.as_ref())));
        for (name, value) in &record.headers {
            text.push_str(&format!("  header {name} {}", said(value.as_ref())));
        }
        text.push_str(&format!("\n  {}\n", record.value.as_deref().unwrap_or("no value")));
        let cells = |cells: &Cells| {
            let one = |(name, value): &(String, Box<RawValue>)| format!("{name} = {value}");
            cells.0.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        text.push_str(&match &record.becomes {
            Becomes::Row(row) => format!("  -> {target}: {}\n", cells(row)),
            Becomes::Delete(key) => format!("  -> {target}: deletes {}\n", cells(key)),
            Becomes::Skipped => "  -> skipped\n".to_owned(),
            Becomes::Bad { reason, message, .. } => format!("  -> bad record ({reason}): {message}\n"),
        });
    }
    for topic in &shown.empty {
        text.push_str(&format!("{topic}: no record to show\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_were_written() {
        let cells = json(vec![
            ("n".to_owned(), "12345678901234567890.10".to_owned()),
            ("b".to_owned(), "\\xff".to_owned()),
        ]);
        assert_eq!(serde_json::to_string(&cells).unwrap(), r#"{"n":12345678901234567890.10,"b":"\\xff"}"#);
        assert_eq!(bytes(b"\xff\x00"), "\\xff00");
    }
}
