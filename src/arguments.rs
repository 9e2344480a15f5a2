//! The command line.
//!
//! Must not: act; what a verb does stands in [`crate::verbs`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Rows from Kafka reach a database exactly once.
#[derive(Debug, Parser)]
#[command(name = "oncesink", version, max_term_width = 110)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", default_value = "oncesink.toml")]
    pub(crate) config: PathBuf,

    /// Print for machines
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the sinks until SIGTERM or SIGINT
    Run {
        /// Stop when what is in the topics now has been stored
        #[arg(long)]
        until_end: bool,
    },
    /// Look at Kafka, the target and the offsets as `run` does at its start, and change nothing
    Check,
    /// See what it is worth: kills in the midst of transactions, beside the usual order of commits. Needs no Kafka, no database server and no file
    Demo(Demo),
    /// Create or upgrade the tables that hold the offsets
    Migrate(Migrate),
    /// Show the first records of the topics and the row that each becomes, and write nothing
    Preview(Preview),
    /// Show where every partition stands
    Status,
    /// Leave out the one record before which a partition stopped
    Skip(Skip),
    /// End a stop: the partition tries again at its stored offset
    Resume(Resume),
    /// Set the stored offset, also after a topic was deleted and created again
    Reset(Reset),
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Demo {
    #[command(subcommand)]
    pub(crate) verb: Option<DemoVerb>,

    /// Orders in the topic
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = clap::value_parser!(i64).range(600..=200_000))]
    pub(crate) orders: i64,

    /// Kills of each side, at least 5
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(5..=50))]
    pub(crate) kills: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoVerb {
    /// Print what a statement reads in demo.db, the file that the sink wrote
    Query {
        /// For instance: SELECT * FROM kafka_offsets
        sql: String,
    },
    /// Become another command, and end with the demo
    #[command(hide = true)]
    Child(Bound),
    /// The usual order of commits
    #[command(hide = true)]
    Naive(Naive),
}

#[derive(Debug, Args)]
pub(crate) struct Bound {
    /// Process id of the demo
    #[arg(long)]
    pub(crate) parent: i32,

    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Naive {
    #[arg(long)]
    pub(crate) brokers: String,

    /// Records of a transaction
    #[arg(long)]
    pub(crate) batch: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Print the SQL instead, for those whose DBA applies it
    #[arg(long)]
    pub(crate) print: bool,

    /// Take over a table of the three-column recipe; says whether its offset is the next one to read or the last one processed
    #[arg(long, value_enum, requires = "group")]
    pub(crate) adopt: Option<Adopt>,

    /// The group that the rows taken over belong to
    #[arg(long, requires = "adopt", value_name = "GROUP")]
    pub(crate) group: Option<String>,
}

/// What an offset of the old recipe means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Adopt {
    /// The next offset to read
    Next,
    /// The last offset processed
    Processed,
}

#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// The sink; all of them when left out
    #[arg(value_name = "SINK")]
    pub(crate) sink: Option<String>,

    /// Records of each topic
    #[arg(long, value_name = "RECORDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
}

#[derive(Debug, Args)]
pub(crate) struct Where {
    /// [SINK] TOPIC/PARTITION; SINK may be left out when there is only one
    #[arg(required = true, num_args = 1..=2, value_name = "PLACE")]
    pub(crate) place: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Skip {
    #[command(flatten)]
    pub(crate) at: Where,

    /// The stored offset, which is the offset of the record to leave out; nothing happens when another stands there
    #[arg(long, value_name = "OFFSET")]
    pub(crate) expect: i64,

    /// Why, for those who read the events later
    #[arg(long, value_name = "TEXT", value_parser = filled)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// [SINK] TOPIC/PARTITION, or [SINK] TOPIC for all its partitions
    #[command(flatten)]
    pub(crate) at: Where,

    /// Why, for those who read the events later
    #[arg(long, value_name = "TEXT", value_parser = filled)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) at: Where,

    /// earliest, latest, an offset, or a time like 2026-11-01T00:00:00Z; without it the sink's start policy
    #[arg(long, value_name = "POSITION", value_parser = target)]
    pub(crate) to: Option<Target>,

    /// The stored offset; nothing happens when another stands there. Only with a partition
    #[arg(long, value_name = "OFFSET")]
    pub(crate) expect: Option<i64>,

    /// Why, for those who read the events later
    #[arg(long, value_name = "TEXT", value_parser = filled)]
    pub(crate) reason: String,
}

/// Where a reset goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Offset(i64),
    Policy(oncesink::position::StartPolicy),
}

fn target(text: &str) -> Result<Target, String> {
    if let Ok(offset) = text.parse::<i64>()
        && offset >= 0
    {
        return Ok(Target::Offset(offset));
    }
    oncesink::config::parse_policy(text)
        .map(Target::Policy)
        .ok_or_else(|| "write earliest, latest, an offset, or a time like 2026-11-01T00:00:00Z".to_owned())
}

fn filled(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use oncesink::position::StartPolicy;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn good_lines() {
        for line in [
            "oncesink run",
            "oncesink --config a.toml run --until-end",
            "oncesink run --until-end --json --config a.toml",
            "oncesink check --json",
            "oncesink demo",
            "oncesink demo --orders 3000 --kills 5",
            "oncesink demo query x",
            "oncesink demo child --parent 1 -- --config a.toml run",
            "oncesink migrate --print",
            "oncesink migrate --adopt next --group g",
            "oncesink preview",
            "oncesink preview shop --limit 20 --json",
            "oncesink status",
            "oncesink skip orders/3 --expect 18271 --reason x",
            "oncesink skip shop orders/3 --expect 18271 --reason x",
            "oncesink resume orders/3",
            "oncesink resume shop orders --reason x",
            "oncesink reset orders/3 --to 5 --expect 6 --reason x",
            "oncesink reset shop orders --reason x",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
    }

    #[test]
    fn bad_lines_exit_2() {
        for line in [
            "oncesink",
            "oncesink rnu",
            "oncesink demo --kills 4",
            "oncesink demo query",
            "oncesink preview --limit 0",
            "oncesink preview a b",
            "oncesink skip orders/3 --reason x",
            "oncesink skip orders/3 --expect 1",
            "oncesink skip --expect 1 --reason x",
            "oncesink skip a b c --expect 1 --reason x",
            "oncesink reset orders/3 --to 5",
            "oncesink reset orders/3 --to soon --reason x",
            "oncesink reset orders/3 --to=-5 --reason x",
            "oncesink migrate --adopt next",
            "oncesink migrate --adopt perhaps --group g",
        ] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
        }
        let empty = ["oncesink", "reset", "orders/3", "--reason", " "];
        assert!(Arguments::try_parse_from(empty).is_err());
    }

    #[test]
    fn targets() {
        assert_eq!(target("0"), Ok(Target::Offset(0)));
        assert_eq!(target("latest"), Ok(Target::Policy(StartPolicy::Latest)));
        assert_eq!(target("1970-01-01T00:00:01Z"), Ok(Target::Policy(StartPolicy::Timestamp(1000))));
    }
}
