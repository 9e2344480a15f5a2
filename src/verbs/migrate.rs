//! `migrate`: our tables in each database that the file names, or the SQL for a DBA.

use oncesink::config::SinkSection;
use oncesink::store::operate::Meaning;
use serde_json::json;

use super::{Context, at, who};
use crate::arguments::{Adopt, Migrate};
use crate::exit::{Exit, Failed};

pub(crate) async fn run(context: &Context, migrate: &Migrate) -> Result<Exit, Failed> {
    let sinks = match &migrate.group {
        Some(group) => vec![of_group(context, group)?],
        None => databases(&context.config.sinks),
    };
    let adopt = migrate.adopt.map(|adopt| match adopt {
        Adopt::Next => Meaning::Next,
        Adopt::Processed => Meaning::Processed,
    });
    let mut lines = Vec::new();
    let mut results = Vec::new();
    for sink in sinks {
        let group = migrate.group.as_deref().unwrap_or(&sink.group);
        let store =
            context.registry.of(sink)?.store(sink, group, &who()).map_err(|failure| at(sink, failure))?;
        let database = sink.target.shown();
        if migrate.print {
            let text = store.migration_text().await.map_err(|failure| at(sink, failure))?;
            lines.push(format!("-- {database}\n{text}"));
            results.push(json!({ "database": database, "sql": text }));
            continue;
        }
        let done = store.migrate(adopt).await.map_err(|failure| at(sink, failure))?;
        if done.is_empty() {
            lines.push(format!("{database}: nothing to do"));
        }
        lines.extend(done.iter().cloned());
        results.push(json!({ "database": database, "done": done }));
    }
    context.output.print(&results, &lines.join("\n"));
    Ok(Exit::Done)
}

/// One sink for each database and offsets table.
fn databases(sinks: &[SinkSection]) -> Vec<&SinkSection> {
    let mut chosen: Vec<&SinkSection> = Vec::new();
    for sink in sinks {
        let same = |other: &&SinkSection| {
            other.target.url == sink.target.url && other.target.offsets == sink.target.offsets
        };
        if !chosen.iter().any(same) {
            chosen.push(sink);
        }
    }
    chosen
}

/// The sink whose rows are adopted: that of the group, or the only database there is.
fn of_group<'c>(context: &'c Context, group: &str) -> Result<&'c SinkSection, Failed> {
    let sinks = &context.config.sinks;
    if let Some(sink) = sinks.iter().find(|sink| sink.group == group) {
        return Ok(sink);
    }
    let groups: Vec<&str> = sinks.iter().map(|sink| sink.group.as_str()).collect();
    Err(Failed::refused(format!(
        "no sink has group {group:?}, so nobody would read on from the adopted offsets; there is {}",
        groups.join(", ")
    )))
}
