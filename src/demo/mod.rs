//! `demo`: what the guarantee is worth, seen in half a minute without a Kafka and without a database server.
//!
//! A mock cluster in this process holds the orders. Two children read the same records into a SQLite file each, without a key that could hide a duplicate: `oncesink
//! run`, as anybody runs it, and a loop in the usual order of commits. Both are killed again and again; then the rows are counted.
//!
//! Must not: help the sink in any way. It is started by its command line, with a file that could have been written by hand.

mod child;
mod count;
mod file;
mod naive;
mod orders;
mod plan;
mod progress;
mod query;
mod side;
mod tables;

use std::path::Path;
use std::process::Command;

use serde_json::json;

use self::count::{Count, Outcome};
use self::file::{DATABASE, Files, NAIVE_DATABASE};
use self::orders::{PARTITIONS, TOPIC};
use self::plan::Plan;
use self::progress::Board;
use self::side::Side;
use crate::arguments::{Demo, DemoVerb};
use crate::exit::{Exit, Failed};
use crate::output::Output;

/// What stands in one transaction of either side: as many records as Kafka's own consumers fetch at a time, fewer when there are few orders, so that there is
/// something to interrupt.
const BATCH_MAX: i64 = 500;
const BATCHES_MIN: i64 = 100;

/// Does what the command line says after `demo`.
pub(crate) fn run(demo: &Demo, output: Output) -> Result<Exit, Failed> {
    match &demo.verb {
        None => show(demo, output),
        Some(DemoVerb::Query { sql }) => query::run(Path::new(DATABASE), sql, output),
        Some(DemoVerb::Naive(naive)) => naive::run(naive),
        Some(DemoVerb::Child(bound)) => child::become_command(bound),
    }
}

fn show(demo: &Demo, output: Output) -> Result<Exit, Failed> {
    let plan = Plan::new(demo.orders, demo.kills);
    let batch = (plan.orders / BATCHES_MIN).clamp(1, BATCH_MAX);
    let files = Files::prepare()?;
    let cluster = orders::produce(plan.orders)?;
    files.configure(cluster.brokers(), batch)?;
    if !output.json {
        println!(
            "mock Kafka in this process: topic {TOPIC}, {PARTITIONS} partitions, {} orders.  SQLite {DATABASE}: no key that could hide a duplicate",
            progress::grouped(plan.orders)
        );
    }
    migrate(&files)?;
    let once = Side::once(&files);
    let naive = Side::naive(&files, cluster.brokers(), batch);
    let board = Board::default();
    let (once, naive) = std::thread::scope(|scope| {
        let first = scope.spawn(|| once.run(&plan, &board.once));
        let second = scope.spawn(|| naive.run(&plan, &board.naive));
        board.draw(&plan, !output.json, || first.is_finished() && second.is_finished());
        (joined(first.join()), joined(second.join()))
    });
    let outcome = Outcome { orders: plan.orders, once: once?, naive: naive?, ..counted(&plan)? };
    let lines = outcome.table() + "look: oncesink demo query \"SELECT * FROM kafka_offsets\"\n";
    output.print(&json!(outcome), &lines);
    outcome.verdict(&plan).map_err(Failed::refused)?;
    Ok(Exit::Done)
}

fn joined<T>(side: std::thread::Result<Result<T, Failed>>) -> Result<T, Failed> {
    side.unwrap_or_else(|_| Err(Failed::refused("the demo's own thread ended by a panic")))
}

/// Makes the tables of the offsets, by the verb that everybody uses.
fn migrate(files: &Files) -> Result<(), Failed> {
    let mut command = Command::new(child::myself()?);
    command.args(["--config", file::CONFIGURATION, "migrate"]).stdout(files.log()?).stderr(files.log()?);
    let status = command.status().map_err(|error| Failed::preflight(format!("oncesink migrate: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failed::preflight(format!("oncesink migrate ended with {status}; {} says why", file::LOG)))
}

fn counted(plan: &Plan) -> Result<Outcome, Failed> {
    let count =
        |name: &str| -> Result<Count, Failed> { Ok(Count::of(&tables::ids(Path::new(name))?, plan.orders)) };
    Ok(Outcome { once_rows: count(DATABASE)?, naive_rows: count(NAIVE_DATABASE)?, ..Outcome::default() })
}
