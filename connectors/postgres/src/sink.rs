//! The sink itself: opened against the catalog, then a function of batch and transaction.
//!
//! Invariant: immutable once opened; whatever changes in the catalog is found in `write` and answered by opening again.

use std::sync::Arc;

use oncesink::plan::{self, Config, Mapping, Mappings, Outlook, Preview, Table as _};
use oncesink::postgres::Tx;
use oncesink::store::Store;
use oncesink::{Batch, Encoded, Failure, Record, Sink, SinkError, Written, async_trait};

use crate::catalog::{self, Needs, Table};
use crate::encode::{self, Plan};
use crate::write;

/// JSON objects as rows of the tables that their topics name.
#[derive(Debug)]
pub struct Tables {
    mappings: Mappings<Table>,
}

impl Tables {
    /// Finds every topic's table and checks that it can take rows exactly once.
    ///
    /// # Errors
    /// `Fatal` for what a person must mend, naming the table or the key and the remedy; the server's errors by class.
    pub async fn open(config: &Config, topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        let mut mappings = Mappings::default();
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for topic in topics {
            let (keys, section) = (config.of(topic), config.section(topic));
            let wrong = |error: String| Failure::fatal(format!("{section}: {error}"));
            let name = plan::expand(keys.table.as_deref().unwrap_or("${topic}"), topic).map_err(wrong)?;
            let read = Arc::new(catalog::read(tx, &name, &section, Needs::of(keys)).await?);
            let table = match tables.iter().find(|known| known.fingerprint == read.fingerprint) {
                Some(known) => Arc::clone(known),
                None => {
                    tables.push(Arc::clone(&read));
                    read
                }
            };
            mappings.add(topic, Mapping::compile(keys, table).map_err(wrong)?);
        }
        Ok(Self { mappings })
    }

    /// The table that a topic's rows go to, as `schema.table`; the topic's name for a topic that was not there when the sink was opened.
    pub fn table(&self, topic: &str) -> String {
        self.mappings.of(topic).map_or_else(|| topic.to_owned(), |mapping| mapping.table.display())
    }

    /// Whether the table of a topic holds rows that a first pass would add to: not asked of modes that find their rows by key.
    ///
    /// # Errors
    /// The server's, by class.
    pub async fn holds_rows(&self, tx: &mut Tx, topic: &str) -> Result<bool, SinkError> {
        let Some(mapping) = self.mappings.of(topic).filter(|mapping| mapping.mode == plan::Mode::Insert)
        else {
            return Ok(false);
        };
        let look = format!("SELECT EXISTS (SELECT FROM {})", mapping.table.sql());
        let holds = oncesink::sqlx::query_scalar(&look).fetch_one(tx.sql()).await.map_err(Failure::from)?;
        Ok(holds)
    }

    fn plan(&self, batch: &Batch) -> Result<Plan, SinkError> {
        encode::encode(batch, &self.mappings)
    }

    /// Turns a batch into statements.
    ///
    /// # Errors
    /// All bad records of the batch.
    pub fn encode(&self, batch: &Batch) -> Result<Encoded, SinkError> {
        Ok(Encoded::new(self.plan(batch)?))
    }

    /// Writes what [`Tables::encode`] made of the batch, or encodes it first.
    ///
    /// # Errors
    /// The server's, by class. After an error in mid-COPY `session_alive` is false: the connection must be closed.
    pub async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        match batch.encoded::<Plan>() {
            Some(plan) => write::write(tx, batch, plan).await,
            None => write::write(tx, batch, &self.plan(batch)?).await,
        }
    }
}

#[async_trait]
impl<S: Store<Tx = Tx>> Sink<S> for Tables {
    const KIND: &'static str = "postgres";
    const STATEMENTS: oncesink::Statements = oncesink::Statements::Known;
    type Config = Config;

    async fn open(config: Config, topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        Self::open(&config, topics, tx).await
    }

    fn target(&self, topic: &str) -> String {
        self.table(topic)
    }

    async fn holds_rows(&self, tx: &mut Tx, topic: &str) -> Result<bool, SinkError> {
        self.holds_rows(tx, topic).await
    }

    fn outlook(&self, topic: &str, fields: &[&str]) -> Option<Outlook> {
        self.mappings.outlook(topic, fields)
    }

    fn preview(&self, record: &Record<'_>) -> Result<Option<Preview>, SinkError> {
        self.mappings.preview(record)
    }

    fn encode(&self, batch: &Batch) -> Result<Encoded, SinkError> {
        self.encode(batch)
    }

    async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        self.write(tx, batch).await
    }
}
