//! `skip`: one record is left out, by its offset, with a reason.

use serde_json::json;

use super::{Context, MovedRow, answer, partition, place};
use crate::arguments::Skip;
use crate::exit::{Exit, Failed};

pub(crate) async fn run(context: &Context, skip: &Skip) -> Result<Exit, Failed> {
    let place = place(&skip.at.place)?;
    let sink = place.sink(&context.config)?;
    let partition = partition(&place)?;
    let store = context.store(sink)?;
    let moved = answer(sink, store.skip(&partition, skip.expect, &skip.reason).await)?;
    let line = format!(
        "{}: left out {partition}@{}; a running owner goes on within two seconds",
        sink.name, skip.expect
    );
    context.output.print(&json!({ "sink": sink.name, "skipped": MovedRow::from(&moved) }), &line);
    Ok(Exit::Done)
}
