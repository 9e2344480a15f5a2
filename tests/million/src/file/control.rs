//! The naive control on a file: rows first, then the offsets to Kafka. It ends when all it is to read is committed there.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::runtime::Runtime;

use crate::contender::ROWS;
use crate::control::{FETCHED, GATHER};
use crate::orders::{Mode, Order, PARTITIONS, TOPIC};

const PATIENCE: Duration = Duration::from_secs(30);

/// What the control is told.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    mode: Mode,
    #[arg(long)]
    brokers: String,
    #[arg(long)]
    path: PathBuf,
    #[arg(long)]
    session: String,
    #[arg(long)]
    instance: String,
}

/// Runs to the end of the topic.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match consume(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ended: {error}");
            ExitCode::FAILURE
        }
    }
}

fn consume(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new()?;
    let options = SqliteConnectOptions::new().filename(&arguments.path).busy_timeout(PATIENCE);
    let mut file = runtime.block_on(options.connect())?;
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &arguments.brokers)
        .set("group.id", "control-naive-file")
        .set("group.instance.id", &arguments.instance)
        .set("session.timeout.ms", &arguments.session)
        .set("heartbeat.interval.ms", "500")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("queued.max.messages.kbytes", "10000")
        .create()?;
    consumer.subscribe(&[TOPIC])?;
    let mut left = left(&consumer)?;
    while !left.is_empty() {
        let (orders, next) = fetch(&consumer)?;
        for chunk in orders.chunks(ROWS) {
            runtime.block_on(write(&mut file, chunk, arguments.mode))?;
        }
        // Refused when the group has moved on: then reading begins again where the last commit was.
        if commit(&consumer, &next).is_ok() {
            left.retain(|partition, end| next.get(partition).is_none_or(|next| next < end));
        }
    }
    Ok(())
}

/// The ends of the partitions that are not committed to their ends.
fn left(consumer: &BaseConsumer) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let mut all = TopicPartitionList::new();
    all.add_partition_range(TOPIC, 0, PARTITIONS - 1);
    let committed = consumer.committed_offsets(all, PATIENCE)?;
    let mut left = BTreeMap::new();
    for place in committed.elements() {
        let (_, end) = consumer.fetch_watermarks(TOPIC, place.partition(), PATIENCE)?;
        if place.offset() != Offset::Offset(end) {
            left.insert(place.partition(), end);
        }
    }
    Ok(left)
}

/// Orders, and the next offset of each of their partitions.
fn fetch(consumer: &BaseConsumer) -> Result<(Vec<Order>, BTreeMap<i32, i64>), serde_json::Error> {
    let (mut orders, mut next) = (Vec::new(), BTreeMap::new());
    let until = Instant::now() + GATHER;
    while orders.len() < FETCHED && Instant::now() < until {
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(20)) {
            orders.push(serde_json::from_slice(message.payload().unwrap_or_default())?);
            next.insert(message.partition(), message.offset() + 1);
        }
    }
    Ok((orders, next))
}

async fn write(file: &mut SqliteConnection, chunk: &[Order], mode: Mode) -> sqlx::Result<()> {
    let mut tx = file.begin_with("BEGIN IMMEDIATE").await?;
    let insert = format!(
        "INSERT INTO orders (partition_id, seq, customer, amount, note) VALUES (?1, ?2, ?3, ?4, ?5){}",
        mode.conflict()
    );
    for order in chunk {
        sqlx::query(&insert)
            .bind(order.partition_id)
            .bind(order.seq)
            .bind(order.customer)
            .bind(order.amount.to_string())
            .bind(&order.note)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}

fn commit(consumer: &BaseConsumer, next: &BTreeMap<i32, i64>) -> Result<(), KafkaError> {
    if next.is_empty() {
        return Ok(());
    }
    let mut list = TopicPartitionList::new();
    for (partition, offset) in next {
        list.add_partition_offset(TOPIC, *partition, Offset::Offset(*offset))?;
    }
    consumer.commit(&list, CommitMode::Sync)
}
