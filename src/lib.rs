//! The `oncesink` command as a library: the verbs, the log, the listener, and a registry of sink kinds that a third party extends by one line.
//!
//! ```no_run
//! # fn main() -> std::process::ExitCode {
//! oncesink_cli::Command::bundled().main()
//! # }
//! ```
//!
//! With a sink of one's own: `Command::bundled().with::<_, Ledger>().main()`.
//!
//! Must not: hold anything that an embedding program needs; that is in `oncesink`.

mod exit;
pub use exit::Exit;
mod arguments;
mod demo;
mod logging;
mod operated;
mod output;
pub use operated::Operated;
mod http;
mod place;
mod registry;
mod signals;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use oncesink::Sink;
use oncesink::config::{Config, Environment, Known, Librdkafka};

use crate::arguments::{Arguments, Verb};
use crate::exit::Failed;
use crate::output::Output;
use crate::registry::Registry;
use crate::verbs::Context;

/// The command with the sink kinds that it knows.
#[derive(Default)]
pub struct Command {
    registry: Registry,
}

impl Command {
    /// With the connectors that come with oncesink.
    pub fn bundled() -> Self {
        Self::default()
            .with::<oncesink::postgres::Postgres, oncesink_postgres::Tables>()
            .with::<oncesink::sqlite::Sqlite, oncesink_sqlite::Tables>()
    }

    /// Adds a sink kind; one of the same name takes the place of an earlier one.
    #[must_use]
    pub fn with<S, K>(mut self) -> Self
    where
        S: Operated,
        K: Sink<S>,
    {
        self.registry.add::<S, K>();
        self
    }

    /// Reads the command line, does what it says, and ends with the exit code that [`Exit`] lists.
    pub fn main(self) -> ExitCode {
        // A wrong command line, help and version end here, with 2 and 0.
        let arguments = Arguments::parse();
        let output = Output { json: arguments.json };
        match self.execute(arguments) {
            Ok(exit) => exit,
            Err(failed) => output.fail(&failed),
        }
        .into()
    }

    fn execute(self, arguments: Arguments) -> Result<Exit, Failed> {
        logging::start()?;
        let Arguments { config: path, json, verb } = arguments;
        if let Verb::Demo(demo) = &verb {
            return demo::run(demo, Output { json });
        }
        let kinds = self.registry.kinds();
        let known = Known { kafka: &Librdkafka, kinds: &kinds };
        let config = Config::load(&path, &Environment::process(), &known)?;
        self.registry.check(&config)?;
        let context = Context { config, registry: self.registry, output: Output { json } };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failed::preflight(format!("cannot start threads: {error}")))?;
        runtime.block_on(verb_of(context, verb))
    }
}

async fn verb_of(context: Context, verb: Verb) -> Result<Exit, Failed> {
    match verb {
        // Answered before a configuration was looked for.
        Verb::Demo(demo) => demo::run(&demo, context.output),
        Verb::Run { until_end } => verbs::run::run(context, until_end).await,
        Verb::Check => verbs::check::run(&context).await,
        Verb::Migrate(migrate) => verbs::migrate::run(&context, &migrate).await,
        Verb::Preview(preview) => verbs::preview::run(&context, &preview).await,
        Verb::Status => verbs::status::run(&context).await,
        Verb::Skip(skip) => verbs::skip::run(&context, &skip).await,
        Verb::Resume(resume) => verbs::resume::run(&context, &resume).await,
        Verb::Reset(reset) => verbs::reset::run(&context, &reset).await,
    }
}
