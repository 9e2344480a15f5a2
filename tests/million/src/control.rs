//! The controls: consumers as they are usually written, which must show duplicates under the damage that the command survives.
//!
//! Apart from where the offset goes they are careful: bad orders are left out, partitions are given up between transactions only, and what was read of them is dropped.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use sqlx::{Connection, Executor, PgConnection, Row};
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::contender::ROWS;
use crate::orders::{Mode, Order, TOPIC};

/// Offsets as the well-known recipe has them, and, to be found by the damage, who has which partition.
pub(crate) const TABLES: &str = "
    CREATE TABLE kafka_offsets (
        topic text, partition_id int, last_offset bigint NOT NULL DEFAULT 0, owner text, PRIMARY KEY (topic, partition_id))";

/// Records taken from the client before they are written, as `max.poll.records` of others.
pub(crate) const FETCHED: usize = 2_000;
pub(crate) const GATHER: Duration = Duration::from_millis(200);

/// What a control is told.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    kind: String,
    #[arg(long)]
    brokers: String,
    #[arg(long)]
    url: String,
    #[arg(long)]
    mode: Mode,
    #[arg(long)]
    session: String,
    #[arg(long)]
    instance: String,
}

/// Runs until SIGTERM. Any error of the database ends it with 1: it is started again by whoever started it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let runtime = Runtime::new().expect("a runtime");
    match consume(arguments, &runtime) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ended: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Context {
    url: String,
    unfenced: bool,
    runtime: Handle,
    rebalanced: AtomicBool,
}

impl ClientContext for Context {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}
    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ConsumerContext for Context {
    /// Served within a poll, so never in the middle of a transaction.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        self.rebalanced.store(true, Ordering::Relaxed);
        if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            consumer.unassign().expect("giving partitions up");
            return;
        }
        self.runtime.block_on(self.take(list)).expect("reading the offsets");
        consumer.assign(list).expect("taking partitions");
        println!("assigned {}", list.count());
    }
}

impl Context {
    /// Writes down who has the partitions, and sets the positions that the database has.
    async fn take(&self, list: &mut TopicPartitionList) -> sqlx::Result<()> {
        let mut connection = PgConnection::connect(&self.url).await?;
        let partitions: Vec<i32> = list.elements().iter().map(|element| element.partition()).collect();
        for partition in partitions {
            let row = sqlx::query(
                "INSERT INTO kafka_offsets (topic, partition_id, owner) VALUES ($1, $2, $3)
                 ON CONFLICT (topic, partition_id) DO UPDATE SET owner = EXCLUDED.owner RETURNING last_offset",
            )
            .bind(TOPIC)
            .bind(partition)
            .bind(format!("control/{}", std::process::id()))
            .fetch_one(&mut connection)
            .await?;
            if self.unfenced {
                let offset = Offset::Offset(row.get(0));
                list.set_partition_offset(TOPIC, partition, offset).expect("an offset");
            }
        }
        connection.close().await
    }
}

fn consumer(arguments: &Arguments, runtime: &Runtime) -> Result<BaseConsumer<Context>, KafkaError> {
    let context = Context {
        url: arguments.url.clone(),
        unfenced: arguments.kind == "unfenced",
        runtime: runtime.handle().clone(),
        rebalanced: AtomicBool::new(false),
    };
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &arguments.brokers)
        .set("group.id", format!("control-{}", arguments.kind))
        .set("session.timeout.ms", &arguments.session)
        .set("heartbeat.interval.ms", "500")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("queued.max.messages.kbytes", "10000");
    if !arguments.instance.is_empty() {
        config.set("group.instance.id", &arguments.instance);
    }
    let consumer: BaseConsumer<Context> = config.create_with_context(context)?;
    consumer.subscribe(&[TOPIC])?;
    Ok(consumer)
}

fn consume(arguments: &Arguments, runtime: &Runtime) -> Result<(), Box<dyn std::error::Error>> {
    let stop = stop_at_sigterm(runtime)?;
    let mut connection = runtime.block_on(PgConnection::connect(&arguments.url))?;
    let consumer = consumer(arguments, runtime)?;
    while !stop.load(Ordering::Relaxed) {
        let fetched = fetch(&consumer);
        for chunk in fetched.chunks(ROWS) {
            runtime.block_on(write(&mut connection, chunk, arguments))?;
        }
        if arguments.kind == "naive" && !fetched.is_empty() {
            // Refused when the group has moved on: the next owner begins where the last commit was.
            let _ = consumer.commit(&ends(&fetched), CommitMode::Sync);
        }
    }
    Ok(())
}

fn stop_at_sigterm(runtime: &Runtime) -> std::io::Result<std::sync::Arc<AtomicBool>> {
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let told = std::sync::Arc::clone(&stop);
    let _guard = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    runtime.spawn(async move {
        terminate.recv().await;
        told.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

/// A record with its offset.
type Fetched = (i64, Order);

fn fetch(consumer: &BaseConsumer<Context>) -> Vec<Fetched> {
    let mut fetched = Vec::new();
    let until = Instant::now() + GATHER;
    while fetched.len() < FETCHED && Instant::now() < until {
        let polled = consumer.poll(Duration::from_millis(20));
        if consumer.context().rebalanced.swap(false, Ordering::Relaxed) {
            fetched.clear();
        }
        if let Some(Ok(message)) = polled {
            let order = serde_json::from_slice(message.payload().unwrap_or_default()).ok();
            let order = order.filter(|order: &Order| order.customer >= 0);
            fetched.extend(order.map(|order| (message.offset(), order)));
        }
    }
    fetched
}

async fn write(connection: &mut PgConnection, chunk: &[Fetched], arguments: &Arguments) -> sqlx::Result<()> {
    connection.execute("BEGIN").await?;
    let insert = format!(
        "INSERT INTO orders SELECT p, s, c, a::numeric, n
         FROM UNNEST($1::int[], $2::bigint[], $3::bigint[], $4::text[], $5::text[]) AS r (p, s, c, a, n){}",
        arguments.mode.conflict()
    );
    sqlx::query(&insert)
        .bind(chunk.iter().map(|(_, order)| order.partition_id).collect::<Vec<_>>())
        .bind(chunk.iter().map(|(_, order)| order.seq).collect::<Vec<_>>())
        .bind(chunk.iter().map(|(_, order)| order.customer).collect::<Vec<_>>())
        .bind(chunk.iter().map(|(_, order)| order.amount.to_string()).collect::<Vec<_>>())
        .bind(chunk.iter().map(|(_, order)| order.note.as_str()).collect::<Vec<_>>())
        .execute(&mut *connection)
        .await?;
    if arguments.kind == "unfenced" {
        for (partition, offset) in next(chunk) {
            sqlx::query(
                "INSERT INTO kafka_offsets (topic, partition_id, last_offset) VALUES ($1, $2, $3)
                 ON CONFLICT (topic, partition_id) DO UPDATE SET last_offset = EXCLUDED.last_offset",
            )
            .bind(TOPIC)
            .bind(partition)
            .bind(offset)
            .execute(&mut *connection)
            .await?;
        }
    }
    connection.execute("COMMIT").await.map(drop)
}

/// The next offset of each partition in a chunk, sorted, so that two owners lock rows in one order.
fn next(chunk: &[Fetched]) -> std::collections::BTreeMap<i32, i64> {
    chunk.iter().map(|(offset, order)| (order.partition_id, offset + 1)).collect()
}

fn ends(fetched: &[Fetched]) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (partition, offset) in next(fetched) {
        list.add_partition_offset(TOPIC, partition, Offset::Offset(offset)).expect("an offset");
    }
    list
}
