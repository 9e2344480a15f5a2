//! A command with a connector of one's own beside the bundled ones: `run`, `check`, `migrate`, metrics, all of it.
//!
//! A movement is written once and its account's balance moves with it; a second delivery would spoil the balance.

use oncesink::postgres::{Postgres, Tx};
use oncesink::{Batch, Sink, SinkError, Written, async_trait, sqlx};

/// Keys of `[sinks.<name>.target]` beside the connection; unknown ones are refused with the nearest known.
#[derive(serde::Deserialize)]
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

    /// Where rows go, for people; part of the sink's identity beside its name.
    fn target(&self, _topic: &str) -> String {
        "movements".to_owned()
    }

    /// Rows only: offset, COMMIT, retry and dead letters are the framework's. It may call this again with the same batch, or with a part of it, in a
    /// fresh transaction; keep no state outside `tx`.
    async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        let (mut accounts, mut cents) = (Vec::new(), Vec::new());
        for record in batch.records() {
            let movement: Movement = record.json()?; // no movement: this record is bad, the rest go on
            if movement.cents.abs() > self.config.largest_cents {
                return Err(record.reject("more cents than largest_cents allows"));
            }
            accounts.push(movement.account);
            cents.push(movement.cents);
        }
        sqlx::query(WRITE).bind(&accounts).bind(&cents).execute(tx.sql()).await?; // its SQLSTATE gives the class
        Ok(Written::records(accounts.len())) // the books count records; rows may be more
    }
}

fn main() -> std::process::ExitCode {
    oncesink_cli::Command::bundled().with::<_, Ledger>().main()
}
