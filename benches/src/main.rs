//! `oncesink-bench [--quick] [--json FILE] [--base BINARY] [NAME...]`: every figure is a ratio to what one would do by hand, and both sides were measured in this run.
//!
//! Invariant: the sides take turns (A B A B ...), a round gives one ratio, the median of the rounds is the figure. Must not: compare with a number of
//! another run; absolute figures are printed for people, beside their ratio.

mod cost;
mod data;
mod encode;
mod insert;
mod loads;
mod process;
mod psql;
mod report;
mod transaction;

use std::path::PathBuf;

use oncesink_test_support::kafka::{KafkaCluster, KafkaOptions};
use oncesink_test_support::postgres::PostgresServer;
use tokio::sync::OnceCell;

use crate::report::{Figure, Report};

/// What was asked for.
struct Asked {
    quick: bool,
    json: Option<String>,
    /// An earlier build of the command, to take turns with this one.
    base: Option<PathBuf>,
    names: Vec<String>,
}

impl Asked {
    fn read() -> Result<Self, String> {
        let mut asked = Self { quick: false, json: None, base: None, names: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => asked.quick = true,
                "--json" => asked.json = Some(arguments.next().ok_or("--json needs a file")?),
                "--base" => asked.base = Some(arguments.next().ok_or("--base needs a binary")?.into()),
                name if report::NAMES.contains(&name) => asked.names.push(name.to_owned()),
                other => {
                    let names = report::NAMES.join(" ");
                    return Err(format!(
                        "unknown: {other}\nusage: scripts/bench [--quick] [--json FILE] [--base BINARY] [NAME...]\nnames: {names}"
                    ));
                }
            }
        }
        Ok(asked)
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }

    /// Rounds; each gives one ratio.
    fn rounds(&self) -> usize {
        if self.quick { 3 } else { 5 }
    }
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let asked = match Asked::read() {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("{message}");
            return std::process::ExitCode::from(2);
        }
    };
    let figures = measure(&asked).await;
    let report = Report { figures };
    eprintln!("\n{}", report.table());
    let json = report.json();
    if let Some(file) = &asked.json
        && let Err(error) = std::fs::write(file, &json)
    {
        eprintln!("{file}: {error}");
        return std::process::ExitCode::FAILURE;
    }
    print!("{json}");
    std::process::ExitCode::SUCCESS
}

async fn measure(asked: &Asked) -> Vec<Figure> {
    let mut figures = Vec::new();
    // Commit times come from the server's own books; the rest is nearer to a server's defaults than what tests start.
    let settings = [("track_commit_timestamp", "on"), ("shared_buffers", "128MB"), ("max_wal_size", "1GB")];
    let postgres = PostgresServer::start_with(&settings).await;
    cost::print_load();
    if asked.wants("encode") {
        figures.push(encode::encode(&postgres, asked.rounds()).await);
    }
    if asked.wants("copy_100_rows_guard") {
        figures.push(transaction::copy_100_rows(&postgres, asked.rounds()).await);
    }
    for (name, rows, target) in
        [("guarantee_cost_10000", 10_000, "<= 1.01"), ("guarantee_cost_1000", 1000, "<= 1.03")]
    {
        if asked.wants(name) {
            figures.push(transaction::guarantee(&postgres, name, rows, target, asked.rounds()).await);
        }
    }
    let kafka = OnceCell::new();
    let kafka = async || kafka.get_or_init(|| KafkaCluster::start(KafkaOptions::one().heap_mb(256))).await;
    let rows = if asked.quick { 200_000 } else { 400_000 };
    let (one, two) = (asked.wants("insert_one_writer"), asked.wants("insert_two_writers"));
    if one || two {
        let mut plan = insert::Plan { rows, rounds: asked.rounds(), sides: Vec::new() };
        for writers in [one.then_some(1), two.then_some(2)].into_iter().flatten() {
            plan.sides.push(insert::Side { writers, binary: process::built() });
            plan.sides.extend(asked.base.clone().map(|binary| insert::Side { writers, binary }));
        }
        figures.extend(insert::insert(kafka().await, &postgres, &plan).await);
    }
    let loads: Vec<_> = loads::ASKED.iter().filter(|load| asked.wants(load.name)).collect();
    if !loads.is_empty() {
        let topic = loads::Topic::new(kafka().await, rows).await;
        for load in loads {
            figures.push(topic.measure(load, asked.rounds()).await);
        }
    }
    cost::print_load();
    figures
}
