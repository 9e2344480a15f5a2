//! A batch into the bytes of a COPY, against a parse of the same bytes into a borrowed struct by serde_json, which converts nothing.

use std::hint::black_box;
use std::time::Instant;

use oncesink_test_support::postgres::PostgresServer;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::data;
use crate::report::{Figure, least, median, span};
use crate::transaction::{Bench, batch};

const RECORDS: u64 = 10_000;
/// Turns of each side in a round.
const TURNS: usize = 20;

/// What a program of one's own would read a record into.
#[derive(Deserialize)]
struct Order<'r> {
    order_id: &'r str,
    customer_id: i64,
    amount: f64,
    status: &'r str,
    #[serde(borrow)]
    payload: &'r RawValue,
    created_at: &'r str,
}

pub(crate) async fn encode(postgres: &PostgresServer, rounds: usize) -> Figure {
    eprintln!("encode ...");
    let bench = Bench::new(postgres, "encode").await;
    let values: Vec<_> = (0..RECORDS).map(data::order).collect();
    let bytes = values.iter().map(String::len).sum::<usize>() / values.len();
    let batch = batch(0, RECORDS);
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (mut encoded, mut parsed) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            encoded.push(nanos(|| drop(black_box(bench.sink.encode(&batch).expect("good records")))));
            parsed.push(nanos(|| values.iter().for_each(|value| parse(value))));
        }
        // What others do on this machine only ever adds; the least of the turns is nearest to the work itself.
        ours.push(least(&encoded));
        theirs.push(least(&parsed));
        ratios.push(least(&encoded) / least(&parsed));
    }
    let note = format!(
        "{} ns a record of {bytes} bytes, the parse {} ns; median of the rounds' best turns, ratio of them {:.3}",
        span(&ours),
        span(&theirs),
        median(&ours) / median(&theirs)
    );
    let against = "serde_json, typed and borrowed, of the same bytes (time)";
    Figure { name: "encode", against, ratios, target: "<= 1.6", base: false, note }
}

fn parse(value: &str) {
    let order: Order<'_> = serde_json::from_slice(value.as_bytes()).expect("a record");
    black_box((
        order.order_id,
        order.customer_id,
        order.amount,
        order.status,
        order.payload,
        order.created_at,
    ));
}

/// Nanoseconds a record.
fn nanos(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / RECORDS as f64
}
