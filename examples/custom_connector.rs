//! A connector of one's own, on SQLite and a Kafka cluster inside this process: `cargo run --example custom_connector`.
//!
//! A movement is written once and its account's balance moves with it; a second delivery would spoil the balance.

use std::sync::Arc;
use std::time::Duration;

use oncesink::kafka::MockCluster;
use oncesink::sqlite::{Sqlite, SqliteConfig, Tx};
use oncesink::sqlx::{self, Connection};
use oncesink::{Batch, Sink, SinkError, SinkSettings, SinkTask, Written, async_trait};

/// Keys of `[sinks.<name>.target]` beside the connection, were it run by the command.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    largest_cents: i64,
}
#[derive(serde::Deserialize)]
struct Movement {
    account: i64,
    cents: i64,
}
struct Ledger {
    config: Config,
}

const MOVE: &str =
    "INSERT INTO movements (account, cents) SELECT value ->> 0, value ->> 1 FROM json_each(?1)";
const ADD_UP: &str = "
    INSERT INTO balances AS b (account, cents) SELECT value ->> 0, sum(value ->> 1) FROM json_each(?1) WHERE true GROUP BY 1
    ON CONFLICT (account) DO UPDATE SET cents = b.cents + excluded.cents";

#[async_trait]
impl Sink<Sqlite> for Ledger {
    const KIND: &'static str = "ledger";
    type Config = Config;

    /// Before anything is consumed, and again on each new connection: a missing table stops the start, by name.
    async fn open(config: Config, _topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        sqlx::query("SELECT 1 FROM movements, balances WHERE false").execute(tx.sql()).await?;
        Ok(Self { config })
    }

    fn target(&self, _topic: &str) -> String {
        "movements".to_owned()
    }

    /// Rows only: offset, COMMIT, retry and dead letters are the framework's, which may call it again with the same batch or a part of it.
    async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        let mut movements = Vec::new();
        for record in batch.records() {
            let movement: Movement = record.json()?; // no movement: this record is bad, the rest go on
            if movement.cents.abs() > self.config.largest_cents {
                return Err(record.reject("more cents than largest_cents allows"));
            }
            movements.push([movement.account, movement.cents]);
        }
        let list = serde_json::json!(movements).to_string();
        sqlx::query(MOVE).bind(&list).execute(tx.sql()).await?; // an error's code gives its class
        sqlx::query(ADD_UP).bind(&list).execute(tx.sql()).await?;
        Ok(Written::records(movements.len()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kafka = MockCluster::start()?;
    kafka.create_topic("movements", 3)?;
    for n in 0..60_000 {
        let movement = format!(r#"{{"account":{},"cents":{n}}}"#, n % 7);
        kafka.produce("movements", n % 3, None, Some(movement.as_bytes()))?;
    }
    kafka.flush()?;
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
    let store = Arc::new(Sqlite::new(SqliteConfig::new(&url), "ledger")?);
    store.apply(None).await?; // what `oncesink migrate` does
    let mut database = sqlx::SqliteConnection::connect(&url).await?;
    let tables =
        "CREATE TABLE movements (account, cents); CREATE TABLE balances (account PRIMARY KEY, cents)";
    sqlx::raw_sql(tables).execute(&mut database).await?;

    // The first run is cut off after some rows; the second one reads on from the database.
    for (until_end, cut) in [(false, Duration::from_millis(400)), (true, Duration::from_secs(60))] {
        let mut settings = SinkSettings::of("ledger", kafka.brokers(), &["movements"]);
        (settings.group, settings.writers, settings.until_end) = ("ledger".into(), 1, until_end);
        settings.batch.rows = 100;
        let config = Arc::new(|| Ok(Config { largest_cents: 1_000_000 }));
        let ledger = SinkTask::new::<Sqlite, Ledger>(settings, Arc::clone(&store), config);
        for (name, ended) in oncesink::run(vec![ledger], tokio::time::sleep(cut)).await {
            let sums = "SELECT count(*), sum(cents), (SELECT sum(cents) FROM balances) FROM movements";
            let (rows, moved, balances): (i64, Option<i64>, Option<i64>) =
                sqlx::query_as(sums).fetch_one(&mut database).await?;
            println!("{name}: {ended:?}: {rows} movements of {moved:?} cents, balances of {balances:?}");
        }
    }
    Ok(())
}
