//! A sink of one's own inside one's own tokio program, without the command.
//!
//! A movement is written once, and its account's balance moves with it: a second delivery would spoil the balance.
//!
//! `KAFKA=localhost:9092 DATABASE_URL=postgres://app@localhost/shop cargo run --example embedded`, after `oncesink migrate` and
//! `CREATE TABLE movements (account bigint, cents bigint); CREATE TABLE balances (account bigint PRIMARY KEY, cents bigint)`.

use std::sync::Arc;

use oncesink::postgres::{Postgres, PostgresConfig, Tx};
use oncesink::{Batch, Sink, SinkError, SinkSettings, SinkTask, Written, async_trait, sqlx};

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

const WRITE: &str = "
    WITH moved AS (SELECT * FROM UNNEST($1::bigint[], $2::bigint[]) AS m (account, cents)),
    totals AS (
        INSERT INTO balances AS b (account, cents)
        SELECT account, sum(cents) FROM moved GROUP BY account ORDER BY account
        ON CONFLICT (account) DO UPDATE SET cents = b.cents + EXCLUDED.cents)
    INSERT INTO movements (account, cents) SELECT account, cents FROM moved";

#[async_trait]
impl Sink<Postgres> for Ledger {
    const KIND: &'static str = "ledger";
    type Config = Config;

    /// Before anything is consumed, and again on each new connection: a missing table stops the start, by name.
    async fn open(config: Config, _topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        sqlx::query("SELECT FROM movements, balances WHERE false").execute(tx.sql()).await?;
        Ok(Self { config })
    }

    fn target(&self, _topic: &str) -> String {
        "movements".to_owned()
    }

    /// Rows only: offset, COMMIT and retry are the framework's.
    async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        let (mut accounts, mut cents) = (Vec::new(), Vec::new());
        for record in batch.records() {
            let movement: Movement = record.json()?; // no movement: this record is bad
            if movement.cents.abs() > self.config.largest_cents {
                return Err(record.reject("more cents than largest_cents allows"));
            }
            accounts.push(movement.account);
            cents.push(movement.cents);
        }
        sqlx::query(WRITE).bind(&accounts).bind(&cents).execute(tx.sql()).await?; // its SQLSTATE gives the class
        Ok(Written::records(accounts.len()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let topic = setting("TOPIC", "movements");
    let mut settings = SinkSettings::of("ledger", &setting("KAFKA", "localhost:9092"), &[&topic]);
    settings.group = setting("GROUP", "oncesink-ledger").into();
    settings.until_end = std::env::var_os("UNTIL_END").is_some();

    let database = PostgresConfig::new(setting("DATABASE_URL", "postgres://app@localhost/shop"));
    let store = Arc::new(Postgres::new(database, &settings.group)?);
    let ledger = SinkTask::new::<Postgres, Ledger>(
        settings,
        store,
        Arc::new(|| Ok(Config { largest_cents: 1_000_000 })),
    );
    let shutdown = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    for (name, ended) in oncesink::run(vec![ledger], shutdown).await {
        println!("{name}: {ended:?}");
    }
    Ok(())
}
