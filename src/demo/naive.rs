//! The other side: a consumer in the usual order of commits. It fetches some records, writes them in transactions of the same size as the sink's, and when all are
//! committed it commits the offsets to Kafka, synchronously and at once. It loses nothing; a kill between its first commit and that last one doubles what was written.
//!
//! This is the only place outside the framework where librdkafka is used directly: to be compared with, not to be copied.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use oncesink::sqlx::sqlite::{SqliteConnection, SqliteSynchronous};
use oncesink::sqlx::{self, ConnectOptions, Connection};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::file::{NAIVE_DATABASE, SESSION_MS};
use super::orders::{PARTITIONS, TOPIC};
use super::tables;
use crate::arguments::Naive;
use crate::exit::{Exit, Failed};

/// Transactions to what is fetched at a time.
const FETCHED: usize = 4;
/// A fetch that does not fill is written after this long.
const GATHER: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(20);

#[derive(Deserialize)]
struct Order {
    order_id: String,
    customer: String,
    amount: f64,
    placed_at: String,
}

/// What came in since the last commit.
#[derive(Default)]
struct Fetched {
    orders: Vec<Order>,
    /// Next offset of each partition.
    next: BTreeMap<i32, i64>,
}

/// Reads all orders, then ends.
pub(super) fn run(naive: &Naive) -> Result<Exit, Failed> {
    let path = Path::new(NAIVE_DATABASE);
    let runtime = tables::runtime()?;
    // Its commits reach the disk as the sink's do.
    let options = tables::options(path).synchronous(SqliteSynchronous::Full);
    let mut connection = runtime.block_on(options.connect()).map_err(|error| tables::failed(path, &error))?;
    let kafka = |error: KafkaError| Failed::preflight(format!("the mock Kafka: {error}"));
    let consumer = consumer(&naive.brokers).map_err(kafka)?;
    let mut ended = BTreeMap::new();
    while ended.len() < usize::try_from(PARTITIONS).unwrap_or(0) {
        let fetched = fetch(&consumer, naive.batch * FETCHED, &mut ended).map_err(kafka)?;
        if fetched.orders.is_empty() {
            continue;
        }
        for orders in fetched.orders.chunks(naive.batch) {
            write(&runtime, &mut connection, orders).map_err(|error| tables::failed(path, &error))?;
        }
        consumer.commit(&offsets(&fetched).map_err(kafka)?, CommitMode::Sync).map_err(kafka)?;
    }
    Ok(Exit::Done)
}

fn consumer(brokers: &str) -> Result<BaseConsumer, KafkaError> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "naive")
        // As the sink has it in the demo.
        .set("session.timeout.ms", SESSION_MS.to_string())
        .set("heartbeat.interval.ms", (SESSION_MS / 4).to_string())
        .set("fetch.wait.max.ms", "20")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("enable.partition.eof", "true")
        .create()?;
    consumer.subscribe(&[TOPIC])?;
    Ok(consumer)
}

/// Gathers records. Partitions whose end was reached are noted; nothing is produced any more, so that they stay so.
fn fetch(consumer: &BaseConsumer, most: usize, ended: &mut BTreeMap<i32, ()>) -> Result<Fetched, KafkaError> {
    let mut fetched = Fetched::default();
    let until = Instant::now() + GATHER;
    while fetched.orders.len() < most && Instant::now() < until {
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                let order = serde_json::from_slice(message.payload().unwrap_or_default());
                let order =
                    order.map_err(|error| KafkaError::ClientCreation(format!("no order: {error}")))?;
                fetched.orders.push(order);
                fetched.next.insert(message.partition(), message.offset() + 1);
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(ended.insert(partition, ())),
            // Transport errors and the like: librdkafka tries again.
            Some(Err(_)) | None => {}
        }
    }
    Ok(fetched)
}

fn write(runtime: &Runtime, connection: &mut SqliteConnection, orders: &[Order]) -> sqlx::Result<()> {
    runtime.block_on(async {
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
        for order in orders {
            sqlx::query("INSERT INTO orders (order_id, customer, amount, placed_at) VALUES (?1, ?2, ?3, ?4)")
                .bind(&order.order_id)
                .bind(&order.customer)
                .bind(order.amount)
                .bind(&order.placed_at)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await
    })
}

fn offsets(fetched: &Fetched) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for (partition, offset) in &fetched.next {
        list.add_partition_offset(TOPIC, *partition, Offset::Offset(*offset))?;
    }
    Ok(list)
}
