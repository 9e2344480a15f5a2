//! `million [--mode insert|upsert] [--target postgres|sqlite] [--bad] [--keep]`: a million orders from a real broker into a real Postgres, by instances of the real command that are killed, frozen, joined and sent
//! away meanwhile; and by two programs of the usual kind under the same damage, which must fail, or the run proves nothing.
//!
//! Exits 0 only if every row is in the table once, with `--bad` every bad order once among the dead letters, the damage was real, and both controls showed what they must.

mod books;
mod contender;
mod control;
mod damage;
mod file;
mod instances;
mod letters;
mod orders;
mod throttle;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use oncesink_test_support::kafka::{KafkaCluster, KafkaOptions};
use oncesink_test_support::postgres::PostgresServer;

use crate::books::Books;
use crate::contender::{Arena, Contender, Kind};
use crate::damage::Damage;
use crate::letters::Letters;
use crate::orders::Mode;

#[derive(Parser)]
struct Arguments {
    /// Leave the database running, and print where it is.
    #[arg(long)]
    keep: bool,
    /// How rows are written.
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Where they are written.
    #[arg(long, value_enum, default_value_t)]
    target: Target,
    /// One order in a hundred is bad, and has to be found once among the dead letters.
    #[arg(long)]
    bad: bool,
    /// Fewer orders, while working on this program.
    #[arg(long, default_value_t = 1_000_000)]
    rows: i64,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// All damage, both controls.
    #[default]
    Postgres,
    /// One process a file: kills and the naive control only.
    Sqlite,
}

#[derive(Subcommand)]
enum Role {
    /// One of the control programs, as a process of its own.
    #[command(hide = true)]
    Control(control::Arguments),
    /// The naive control on a file.
    #[command(hide = true)]
    FileControl(file::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match &arguments.role {
        Some(Role::Control(control)) => return control::run(control),
        Some(Role::FileControl(control)) => return file::run_control(control),
        None => {}
    }
    if arguments.bad && arguments.target == Target::Sqlite {
        eprintln!("--bad goes with --target postgres");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run(&arguments))
}

/// A broker's heap for a topic of 300 MB.
const HEAP_MB: u32 = 192;

async fn run(arguments: &Arguments) -> ExitCode {
    if arguments.target == Target::Sqlite {
        let kafka = KafkaCluster::start(KafkaOptions::one().heap_mb(HEAP_MB)).await;
        let orders = orders::produce(&kafka, arguments.rows, false).await;
        return file::run(kafka.bootstrap(), orders, arguments.mode, arguments.keep).await;
    }
    let (kafka, postgres) =
        tokio::join!(KafkaCluster::start(KafkaOptions::one().heap_mb(HEAP_MB)), PostgresServer::start());
    let orders = orders::produce(&kafka, arguments.rows, arguments.bad).await;
    let (brokers, url) = (kafka.bootstrap().to_owned(), postgres.url().to_owned());
    let arena = Arena { kafka: brokers, postgres: url, orders, mode: arguments.mode };

    let naive = contend(&arena, Kind::Naive);
    let unfenced = contend(&arena, Kind::Unfenced);
    let (naive, unfenced) = tokio::join!(naive, unfenced);
    let result = contend(&arena, Kind::Oncesink).await;

    println!("damage: {}", result.damage);
    println!("control naive: {}", naive.books);
    println!("control unfenced: {}", unfenced.books);
    println!("result: {}", result.books);
    if let Some(letters) = &result.letters {
        println!("dead letters: {letters}");
    }
    let faults = faults(&naive, &unfenced, &result, orders.total_good());
    for fault in &faults {
        eprintln!("failed: {fault}");
    }
    if arguments.keep {
        println!("kept: {}", postgres.keep().await);
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What came of a contender.
struct Outcome {
    damage: Damage,
    /// Rows written twice before anything was frozen.
    doubled_by_kills: i64,
    books: Books,
    /// With bad orders, of the command.
    letters: Option<Letters>,
}

async fn contend(arena: &Arena, kind: Kind) -> Outcome {
    let contender = Contender::new(arena, kind).await;
    let (damage, doubled_by_kills) = damage::inflict(&contender).await;
    let books = Books::read(&contender).await;
    let letters = match contender.orders.with_bad() && kind == Kind::Oncesink {
        true => Some(Letters::read(&contender).await),
        false => None,
    };
    eprintln!("{kind}: {damage}; {books}");
    Outcome { damage, doubled_by_kills, books, letters }
}

/// Everything that makes the run a failure, or void.
fn faults(naive: &Outcome, unfenced: &Outcome, result: &Outcome, rows: i64) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, outcome) in [("result", result), ("control naive", naive), ("control unfenced", unfenced)] {
        faults.extend(outcome.damage.shortcomings().into_iter().map(|short| format!("{name}: {short}")));
    }
    faults.extend(result.books.faults(rows).into_iter().map(|fault| format!("result: {fault}")));
    let letters = result.letters.iter().flat_map(Letters::faults);
    faults.extend(letters.map(|fault| format!("dead letters: {fault}")));
    let mut void = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("void: {what}"));
        }
    };
    void(
        naive.books.missing == 0,
        "control naive lost rows, which its order cannot: its damage is not the one meant",
    );
    void(naive.books.doubled > 0, "control naive shows no duplicates: the kills did no harm");
    void(unfenced.books.missing == 0, "control unfenced lost rows: its damage is not the one meant");
    void(unfenced.doubled_by_kills == 0, "control unfenced did not survive the kills");
    void(unfenced.books.doubled > 0, "control unfenced shows no duplicates: the thaws did no harm");
    faults
}
