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
/// For an answer of the cluster in the parent process.
const ANSWER: Duration = Duration::from_secs(10);
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
    let mut left = left(&consumer).map_err(kafka)?;
    while !left.is_empty() {
        let fetched = fetch(&consumer, naive.batch * FETCHED).map_err(kafka)?;
        for orders in fetched.orders.chunks(naive.batch) {
            write(&runtime, &mut connection, orders).map_err(|error| tables::failed(path, &error))?;
        }
        // Refused when the group has moved on: then reading begins again where the last commit was.
        if commit(&consumer, &fetched).is_ok() {
            left.retain(|partition, end| fetched.next.get(partition).is_none_or(|next| next < end));
        }
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
        .create()?;
    consumer.subscribe(&[TOPIC])?;
    Ok(consumer)
}

/// The ends of the partitions that are not committed to their ends. Nothing is produced any more, so that they stay so.
fn left(consumer: &BaseConsumer) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let mut all = TopicPartitionList::new();
    all.add_partition_range(TOPIC, 0, PARTITIONS - 1);
    let committed = consumer.committed_offsets(all, ANSWER)?;
    let mut left = BTreeMap::new();
    for place in committed.elements() {
        let (_, end) = consumer.fetch_watermarks(TOPIC, place.partition(), ANSWER)?;
        if place.offset() != Offset::Offset(end) {
            left.insert(place.partition(), end);
        }
    }
    Ok(left)
}

fn fetch(consumer: &BaseConsumer, most: usize) -> Result<Fetched, KafkaError> {
    let mut fetched = Fetched::default();
    let until = Instant::now() + GATHER;
    while fetched.orders.len() < most && Instant::now() < until {
        // Errors of transport and the like: librdkafka tries again.
        let Some(Ok(message)) = consumer.poll(POLL) else { continue };
        let order = serde_json::from_slice(message.payload().unwrap_or_default());
        fetched.orders.push(order.map_err(|error| KafkaError::ClientCreation(format!("no order: {error}")))?);
        fetched.next.insert(message.partition(), message.offset() + 1);
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

fn commit(consumer: &BaseConsumer, fetched: &Fetched) -> Result<(), KafkaError> {
    if fetched.next.is_empty() {
        return Ok(());
    }
    let mut list = TopicPartitionList::new();
    for (partition, offset) in &fetched.next {
        list.add_partition_offset(TOPIC, *partition, Offset::Offset(*offset))?;
    }
    consumer.commit(&list, CommitMode::Sync)
}
