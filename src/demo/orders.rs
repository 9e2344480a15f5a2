//! The topic: orders as a shop would write them, each with an id of its own, so that a lost or a doubled one is seen.

use oncesink::kafka::MockCluster;

use crate::exit::Failed;

/// The topic, and the table that gets its name.
pub(super) const TOPIC: &str = "orders";
pub(super) const PARTITIONS: i32 = 6;

/// 2026-11-01T00:00:00Z, when the first order was placed.
const FIRST_DAY: i64 = 1;
const SECONDS_A_DAY: i64 = 86_400;

/// The id of an order, by its number from 0 on.
pub(super) fn id(number: i64) -> String {
    format!("order-{number:06}")
}

/// The number of an id; none when no order has it.
pub(super) fn number(id: &str) -> Option<i64> {
    id.strip_prefix("order-")?.parse().ok()
}

/// An order as JSON.
pub(super) fn order(number: i64) -> String {
    let cents = number * 7_919 % 99_900 + 100;
    let second = number * 13;
    let (day, second) = (FIRST_DAY + second / SECONDS_A_DAY % 30, second % SECONDS_A_DAY);
    format!(
        "{{\"order_id\":\"{}\",\"customer\":\"customer-{}\",\"amount\":{}.{:02},\"placed_at\":\"2026-11-{day:02}T{:02}:{:02}:{:02}Z\"}}",
        id(number),
        number * 31 % 997,
        cents / 100,
        cents % 100,
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

/// A cluster in this process with all orders, spread over the partitions in turn.
pub(super) fn produce(orders: i64) -> Result<MockCluster, Failed> {
    let failed = |error| Failed::preflight(format!("the mock Kafka: {error}"));
    let cluster = MockCluster::start().map_err(failed)?;
    cluster.create_topic(TOPIC, PARTITIONS).map_err(failed)?;
    for (number, partition) in (0..orders).zip((0..PARTITIONS).cycle()) {
        let key = id(number);
        cluster
            .produce(TOPIC, partition, Some(key.as_bytes()), Some(order(number).as_bytes()))
            .map_err(failed)?;
    }
    cluster.flush().map_err(failed)?;
    Ok(cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_a_small_object_with_an_id_that_tells_its_number() {
        for this in [0, 1, 12_345, 59_999, 199_999] {
            let object: serde_json::Value = serde_json::from_str(&order(this)).unwrap();
            assert_eq!(number(object["order_id"].as_str().unwrap()), Some(this));
            let fields = ["order_id", "customer", "amount", "placed_at"];
            assert!(fields.iter().all(|field| !object[field].is_null()), "{object}");
            assert!(object["amount"].as_f64().unwrap() >= 1.0);
        }
        assert_eq!(number("invoice-000001"), None);
    }
}
