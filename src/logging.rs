//! Logs on standard error: for people on a terminal, one JSON object a line otherwise, and under `run --json`.
//!
//! Must not: let another crate's debug lines in, which may hold parameters of statements.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::exit::Failed;

/// Set first; without it the custom of other Rust programs.
const VARIABLES: [&str; 2] = ["ONCESINK_LOG", "RUST_LOG"];

/// What others say only when something is wrong; a directive for the same target that comes later wins.
const OTHERS: &str = "librdkafka=warn,rdkafka=warn,sqlx=warn,hyper=warn,hyper_util=warn,axum=warn";

/// Begins to log, in JSON whoever looks on when `json` is set. A second call, in one process, changes nothing.
pub(crate) fn start(json: bool) -> Result<(), Failed> {
    let (name, directives) = VARIABLES
        .into_iter()
        .find_map(|name| Some((name, std::env::var(name).ok().filter(|text| !text.is_empty())?)))
        .unwrap_or((VARIABLES[0], "info".to_owned()));
    let filter = filter(&directives).map_err(|error| Failed::configuration(format!("{name}: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if std::io::stderr().is_terminal() && !json {
        builder.event_format(ForPeople).try_init()
    } else {
        builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
    };
    // Whoever embeds the command may log already; theirs stays.
    drop(started);
    Ok(())
}

fn filter(directives: &str) -> Result<EnvFilter, String> {
    EnvFilter::builder().parse(format!("{OTHERS},{directives}")).map_err(|error| error.to_string())
}

/// The message as it is; the level only where somebody should look, or asked for more.
struct ForPeople;

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = *event.metadata().level();
        if level != Level::INFO {
            let (before, after) = match (writer.has_ansi_escapes(), level) {
                (true, Level::ERROR) => ("\x1b[31m", "\x1b[0m"),
                (true, Level::WARN) => ("\x1b[33m", "\x1b[0m"),
                _ => ("", ""),
            };
            write!(writer, "{before}{level}{after} ")?;
        }
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_filter_is_named() {
        assert!(filter("debug").is_ok());
        assert!(filter("oncesink=trace,sqlx=debug").is_ok());
        assert!(filter("oncesink=loud").is_err());
    }
}
