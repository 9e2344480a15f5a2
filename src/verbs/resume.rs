//! `resume`: a stopped partition, or all stopped ones of a topic, try again where they stand.

use oncesink::TopicPartition;
use serde_json::json;

use super::{Context, MovedRow, answer, at, place};
use crate::arguments::Resume;
use crate::exit::{Exit, Failed};

pub(crate) async fn run(context: &Context, resume: &Resume) -> Result<Exit, Failed> {
    let place = place(&resume.at.place)?;
    let sink = place.sink(&context.config)?;
    let store = context.store(sink)?;
    let wanted = match place.partition {
        Some(partition) => vec![TopicPartition::new(place.topic.as_str(), partition)],
        None => {
            let rows = store.status(&sink.group).await.map_err(|failure| at(sink, failure))?;
            rows.into_iter()
                .filter(|row| *row.place.topic == *place.topic)
                .filter(|row| matches!(row.state.as_deref(), Some("stopped" | "paused")))
                .map(|row| row.place)
                .collect()
        }
    };
    if wanted.is_empty() {
        return Err(Failed::refused(format!("{}: no partition of {} is stopped", sink.name, place.topic)));
    }
    let mut resumed = Vec::new();
    for partition in &wanted {
        resumed.push(answer(sink, store.resume(partition, resume.reason.as_deref()).await)?);
    }
    let lines: Vec<String> = resumed
        .iter()
        .map(|moved| match moved.new {
            Some(offset) => format!("{}: {} tries again at offset {offset}", sink.name, moved.place),
            None => format!("{}: {} tries again", sink.name, moved.place),
        })
        .collect();
    let rows: Vec<MovedRow> = resumed.iter().map(MovedRow::from).collect();
    context.output.print(&json!({ "sink": sink.name, "resumed": rows }), &lines.join("\n"));
    Ok(Exit::Done)
}
