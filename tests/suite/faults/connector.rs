//! Connectors that break the contract, run in this process by the library: ended and named, with nothing doubled.

use std::sync::Arc;
use std::time::Duration;

use oncesink::postgres::{Postgres, PostgresConfig, Tx};
use oncesink::{
    BadRecord, Batch, BatchLimits, Class, ConfigSource, Encoded, Ended, Failure, Reason, Sink, SinkError,
    SinkSettings, SinkTask, Written, async_trait, sqlx,
};

use crate::rig::{PATIENCE, Rig};

/// How a connector misbehaves; which one is asked for is its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
enum Vice {
    None,
    Commits,
    RollsBack,
    CommitsAndBeginsAnew,
    LeavesOneOpen,
    SwallowsAnError,
    MiscountsRecords,
    InventsBadRecords,
    Panics,
    PanicsWhileEncoding,
}

#[derive(Clone, serde::Deserialize)]
struct Config {
    vice: Vice,
    table: String,
}

struct Crooked(Config);

#[async_trait]
impl Sink<Postgres> for Crooked {
    const KIND: &'static str = "crooked";
    type Config = Config;

    async fn open(config: Config, _topics: &[String], _tx: &mut Tx) -> Result<Self, SinkError> {
        Ok(Self(config))
    }

    fn target(&self, _topic: &str) -> String {
        self.0.table.clone()
    }

    fn encode(&self, _batch: &Batch) -> Result<Encoded, SinkError> {
        assert_ne!(self.0.vice, Vice::PanicsWhileEncoding, "by order");
        Ok(Encoded::default())
    }

    async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        let insert = format!(
            "INSERT INTO \"{}\" (partition_id, seq) SELECT * FROM UNNEST($1::int[], $2::bigint[])",
            self.0.table
        );
        let partitions: Vec<i32> = batch.records().map(|record| record.partition()).collect();
        let offsets: Vec<i64> = batch.records().map(|record| record.offset()).collect();
        sqlx::query(&insert).bind(&partitions).bind(&offsets).execute(tx.sql()).await?;
        let statement = match self.0.vice {
            Vice::Commits => "COMMIT",
            Vice::RollsBack => "ROLLBACK",
            Vice::CommitsAndBeginsAnew => "COMMIT; BEGIN; SAVEPOINT mine",
            Vice::LeavesOneOpen => {
                std::mem::forget(sqlx::Connection::begin(tx.sql()).await?);
                "SELECT 1"
            }
            Vice::SwallowsAnError => {
                let _ = sqlx::Executor::execute(tx.sql(), "SELECT 1 / 0").await;
                return Ok(Written::records(offsets.len()));
            }
            Vice::MiscountsRecords => return Ok(Written::records(offsets.len() + 1)),
            Vice::InventsBadRecords => {
                let place = oncesink::TopicPartition::new("nowhere", 7);
                return Err(BadRecord {
                    place,
                    offset: 99,
                    reason: Reason::Rejected,
                    message: "never given".into(),
                    sql_state: None,
                    table: None,
                    column: None,
                }
                .into());
            }
            Vice::Panics => panic!("by order"),
            Vice::None | Vice::PanicsWhileEncoding => "SELECT 1",
        };
        sqlx::Executor::execute(tx.sql(), statement).await?;
        Ok(Written::records(offsets.len()))
    }
}

/// Runs the rig's topic through a crooked sink until it ends by itself.
async fn ended(rig: &Rig, vice: Vice) -> Ended {
    let settings = SinkSettings {
        group: rig.topic.as_str().into(),
        writers: 1,
        batch: BatchLimits { rows: 1_000, bytes: 1 << 20, linger: Duration::from_millis(5) },
        memory: 1 << 24,
        drain: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        until_end: true,
        owner: "test".into(),
        ..SinkSettings::of("crooked", rig.kafka.bootstrap(), &[&rig.topic])
    };
    let store = Postgres::new(PostgresConfig::new(rig.url.as_str()), &rig.topic).expect("a store");
    let config = Config { vice, table: rig.topic.clone() };
    let source: ConfigSource<Config> = Arc::new(move || Ok::<_, Failure>(config.clone()));
    let task = SinkTask::new::<Postgres, Crooked>(settings, Arc::new(store), source);
    let running = oncesink::run(vec![task], std::future::pending());
    let mut ended = tokio::time::timeout(PATIENCE, running).await.expect("an end");
    ended.pop().expect("one sink").1
}

async fn fatal(stem: &str, vice: Vice, told: &str) {
    let mut rig = Rig::new(stem, 2).await;
    rig.produce(200).await;
    let ended = ended(&rig, vice).await;
    let Ended::Fatal(failure) = ended else { panic!("{vice:?}: {ended:?}") };
    assert_eq!(failure.class, Class::Fatal);
    assert!(failure.message.contains(told), "{vice:?}: {failure}");
    // Whatever the connector committed by itself, it committed together with the offset: the same records do not come again.
    let stored = rig.stored(0).await + rig.stored(1).await;
    assert_eq!(rig.schema.count(&rig.topic).await, stored, "{vice:?}");
    let again = ended_well(&rig).await;
    assert!(matches!(again, Ended::Reached), "{again:?}");
    rig.each_once().await;
}

/// A connector without vice takes over.
async fn ended_well(rig: &Rig) -> Ended {
    ended(rig, Vice::None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_commits_by_itself_is_ended_and_named() {
    fatal("commits", Vice::Commits, "ended the transaction by itself").await;
    fatal("begins", Vice::CommitsAndBeginsAnew, "ended the transaction by itself").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_rolls_back_by_itself_is_ended_and_named() {
    fatal("rolls", Vice::RollsBack, "ended the transaction by itself").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_swallows_an_error_is_ended_and_named() {
    fatal("swallows", Vice::SwallowsAnError, "swallowed an error").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_leaves_a_transaction_of_its_own_open_is_ended_and_named() {
    fatal("leaves", Vice::LeavesOneOpen, "open inside ours").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_books_do_not_balance_is_ended_and_named() {
    fatal("books", Vice::MiscountsRecords, "\"crooked\" accounts for").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_calls_records_bad_that_it_was_not_given_is_ended_and_named() {
    fatal("invents", Vice::InventsBadRecords, "not given").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_panics_is_ended_and_named() {
    fatal("panics", Vice::Panics, "\"crooked\" panicked").await;
    fatal("encodes", Vice::PanicsWhileEncoding, "\"crooked\" panicked while it encoded").await;
}
