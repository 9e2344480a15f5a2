//! The same topic into a SQLite file: one process a file, so that there are kills and the naive control only, and nothing to take over, to freeze or to leave in doubt.

mod control;
mod side;

pub(crate) use control::{Arguments, run as run_control};

use std::process::ExitCode;

use crate::contender::Kind;
use crate::file::side::Side;
use crate::orders::{Mode, Orders};

/// Runs both sides, prints what came of it, and judges it.
pub(crate) async fn run(brokers: &str, orders: Orders, mode: Mode, keep: bool) -> ExitCode {
    let side = async |kind| {
        let side = Side::new(brokers, orders, mode, kind).await;
        let damage = side.inflict().await;
        let books = side.books().await;
        eprintln!("{kind}: {damage}; {books}");
        (side, damage, books)
    };
    let ((_naive, naive_damage, naive), (once, damage, result)) =
        tokio::join!(side(Kind::Naive), side(Kind::Oncesink));
    println!("damage: {damage}");
    println!("control naive: {naive}");
    println!("result: {result}");
    let named = |name: &str, short: Vec<String>| short.into_iter().map(|s| format!("{name}: {s}")).collect();
    let mut faults: Vec<String> = named("result", damage.shortcomings_of_kills());
    faults.extend::<Vec<_>>(named("control naive", naive_damage.shortcomings_of_kills()));
    faults.extend::<Vec<_>>(named("result", result.faults(orders.total_good())));
    if naive.missing != 0 {
        faults.push(
            "void: control naive lost rows, which its order cannot: its damage is not the one meant".into(),
        );
    }
    if naive.doubled == 0 {
        faults.push("void: control naive shows no duplicates: the kills did no harm".into());
    }
    for fault in &faults {
        eprintln!("failed: {fault}");
    }
    if keep {
        println!("kept: {}", once.keep());
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
