//! What encoding costs, printed for people; a bound that only a blunder would break.

use std::time::Instant;

use crate::fixture::{Fixture, batch};

#[tokio::test]
async fn encoding_takes_microseconds() {
    let fixture = Fixture::new(
        "speed",
        "CREATE TABLE t (order_id text, customer_id bigint, amount numeric(12,2), status text, payload jsonb, created_at timestamptz)",
    )
    .await;
    let values: Vec<_> = (0..10_000_u32)
        .map(|n| {
            format!(
                r#"{{"order_id":"order-{n:010}","customer_id":{},"amount":{}.{:02},"status":"confirmed","payload":{{"items":[{{"sku":"SKU-{n:06}","qty":2,"price":"19.99"}},{{"sku":"SKU-000002","qty":1,"price":"5.00"}}],"channel":"web-store-1"}},"created_at":"2026-11-30T12:34:56.{:06}Z"}}"#,
                1_000_000 + n, n % 1000, n % 100, n
            )
        })
        .collect();
    let bytes = values.iter().map(String::len).sum::<usize>() / values.len();
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let batch = batch(&values);
    let mut best = u128::MAX;
    for _ in 0..10 {
        let begin = Instant::now();
        sink.encode(&batch).unwrap();
        best = best.min(begin.elapsed().as_nanos() / 10_000);
    }
    println!("encode: {best} ns a record of {bytes} bytes (best of 10 runs of 10,000 records)");
    assert!(best < 100_000, "{best} ns a record");
}
