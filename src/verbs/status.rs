//! `status`: where every stored offset stands, and how far the topic's end is, if Kafka answers.

use std::collections::{BTreeMap, HashMap};

use oncesink::config::KafkaSection;
use oncesink::kafka::Ends;
use oncesink::store::operate::StatusRow;
use oncesink::{TopicPartition, remedy};
use serde::Serialize;

use super::{Context, at, cluster};
use crate::exit::{Exit, Failed};
use crate::output::table;

#[derive(Debug, Serialize)]
struct Line {
    sink: String,
    group: String,
    topic: String,
    partition: i32,
    stored_offset: i64,
    high_watermark_offset: Option<i64>,
    lag_records: Option<i64>,
    state: Option<String>,
    state_reason: Option<String>,
    owner: Option<String>,
    owner_epoch: i64,
    updated_at_ms: i64,
    new_dead_letters: i64,
}

pub(crate) async fn run(context: &Context) -> Result<Exit, Failed> {
    let mut lines = Vec::new();
    for sink in &context.config.sinks {
        let rows = context.store(sink)?.status(&sink.group).await.map_err(|failure| at(sink, failure))?;
        // Stored offsets are read before the ends, so that a lag is never negative.
        let places: Vec<TopicPartition> = rows.iter().map(|row| row.place.clone()).collect();
        let ends = ends(&context.config.kafka, places).await;
        lines.extend(rows.into_iter().map(|row| line(&sink.name, row, &ends)));
    }
    context.output.print(&lines, &text(&lines, now()));
    Ok(Exit::Done)
}

fn line(sink: &str, row: StatusRow, ends: &HashMap<TopicPartition, Ends>) -> Line {
    let high_watermark = ends.get(&row.place).map(|ends| ends.high_watermark);
    Line {
        sink: sink.to_owned(),
        group: row.group,
        topic: row.place.topic.to_string(),
        partition: row.place.partition,
        stored_offset: row.offset,
        high_watermark_offset: high_watermark,
        lag_records: high_watermark.map(|end| (end - row.offset).max(0)),
        state: row.state,
        state_reason: row.state_reason,
        owner: row.owner,
        owner_epoch: row.epoch,
        updated_at_ms: row.updated_at,
        new_dead_letters: row.new_dead_letters,
    }
}

/// Without an answer the lag is unknown, which is no reason to hide the rest.
async fn ends(kafka: &KafkaSection, places: Vec<TopicPartition>) -> HashMap<TopicPartition, Ends> {
    let Ok(monitor) = cluster::monitor(kafka) else { return HashMap::new() };
    match monitor.ends(&places).await {
        Ok(answers) => {
            places.into_iter().zip(answers).filter_map(|(place, ends)| Some((place, ends.ok()?))).collect()
        }
        Err(error) => {
            tracing::warn!("{}", cluster::at(kafka, &error));
            HashMap::new()
        }
    }
}

fn text(lines: &[Line], now: i64) -> String {
    if lines.is_empty() {
        return "no offset is stored yet".to_owned();
    }
    let head =
        ["SINK", "PARTITION", "STORED", "LAG", "STATE", "MOVED", "OWNER", "REASON"].map(ToOwned::to_owned);
    let mut rows = vec![head.to_vec()];
    rows.extend(lines.iter().map(|line| {
        vec![
            line.sink.clone(),
            format!("{}/{}", line.topic, line.partition),
            line.stored_offset.to_string(),
            lag(line),
            line.state.clone().unwrap_or_else(|| "-".to_owned()),
            age(line.updated_at_ms, now),
            line.owner.clone().unwrap_or_else(|| "-".to_owned()),
            line.state_reason.clone().unwrap_or_default(),
        ]
    }));
    let mut text = table(&rows);
    for line in lines.iter().filter(|line| line.state.as_deref() == Some("stopped")) {
        let place = format!("{} {}/{}", line.sink, line.topic, line.partition);
        let offset = line.stored_offset;
        text.push_str(&format!(
            "{place}: when the cause is mended: {}; to leave one record out: {}\n",
            remedy::command(format_args!("resume {place}")),
            remedy::command(format_args!("skip {place} --expect {offset} --reason \"...\"")),
        ));
    }
    text.push_str(&dead_letters(lines));
    text
}

/// A line for each topic that has new ones.
fn dead_letters(lines: &[Line]) -> String {
    let mut topics: BTreeMap<(&str, &str, &str), i64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.new_dead_letters > 0) {
        *topics.entry((&line.sink, &line.group, &line.topic)).or_default() += line.new_dead_letters;
    }
    let told = topics.into_iter().map(|((sink, group, topic), count)| {
        let plural = if count == 1 { "" } else { "s" };
        format!(
            "{sink} {topic}: {count} new dead letter{plural} in oncesink_dead_letters (consumer_group {group:?})\n"
        )
    });
    told.collect()
}

/// An offset above the topic's end is no lag of nothing.
fn lag(line: &Line) -> String {
    match (line.lag_records, line.high_watermark_offset) {
        (Some(_), Some(end)) if line.stored_offset > end => "beyond the end".to_owned(),
        (Some(lag), _) => lag.to_string(),
        (None, _) => "?".to_owned(),
    }
}

/// How long ago the row was last written, by this machine's clock. The state alone cannot tell a sink that runs from one that was killed.
fn age(then: i64, now: i64) -> String {
    let seconds = (now - then).max(0) / 1000;
    match seconds {
        0..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        7200..=172_799 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_is_unknown_without_kafka_and_never_negative() {
        let row = || StatusRow {
            group: "g".into(),
            place: TopicPartition::new("t", 0),
            offset: 7,
            owner: None,
            epoch: 1,
            sink: None,
            state: Some("stopped".into()),
            state_reason: Some("field \"a\"".into()),
            state_since: None,
            record_timestamp: None,
            updated_at: 0,
            new_dead_letters: 0,
        };
        let unknown = line("s", row(), &HashMap::new());
        assert_eq!(unknown.lag_records, None);
        assert_eq!(
            text(&[unknown], 300_000),
            "SINK  PARTITION  STORED  LAG  STATE    MOVED      OWNER  REASON\n\
             s     t/0        7       ?    stopped  5 min ago  -      field \"a\"\n\
             s t/0: when the cause is mended: oncesink resume s t/0; to leave one record out: oncesink skip s t/0 --expect 7 --reason \"...\"\n"
        );
        let dead = |partition, new_dead_letters| {
            let place = TopicPartition::new("t", partition);
            line("s", StatusRow { place, new_dead_letters, ..row() }, &HashMap::new())
        };
        assert_eq!(
            dead_letters(&[dead(0, 2), dead(1, 0), dead(2, 3)]),
            "s t: 5 new dead letters in oncesink_dead_letters (consumer_group \"g\")\n"
        );
        let ends = Ends { log_start: 0, high_watermark: 5, last_stable: 5, leader_epoch: None };
        let known = line("s", row(), &HashMap::from([(TopicPartition::new("t", 0), ends)]));
        assert_eq!(known.lag_records, Some(0));
        assert_eq!(lag(&known), "beyond the end");
        for (seconds, told) in [
            (0, "0 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7200, "2 h ago"),
            (172_800, "2 days ago"),
        ] {
            assert_eq!(age(0, seconds * 1000), told);
        }
    }
}
