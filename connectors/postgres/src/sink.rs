//! The sink itself: opened against the catalog, then a function of batch and transaction.
//!
//! Invariant: immutable once opened; whatever changes in the catalog is found in `write` and answered by opening again.

use std::collections::BTreeMap;
use std::sync::Arc;

use oncesink::postgres::Tx;
use oncesink::store::Store;
use oncesink::{Batch, Encoded, Failure, Sink, SinkError, Written, async_trait};

use crate::catalog::{self, SharedTable};
use crate::config::Config;
use crate::encode::{self, Plan};
use crate::mapping::Mapping;
use crate::template;
use crate::write;

/// JSON objects inserted as rows of the tables that their topics name.
#[derive(Debug)]
pub struct Insert {
    mappings: BTreeMap<String, Mapping>,
}

impl Insert {
    /// Finds every topic's table and checks that it can take rows exactly once.
    ///
    /// # Errors
    /// `Fatal` for what a person must mend, naming the table or the key and the remedy; the server's errors by class.
    pub async fn open(config: &Config, topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        let mut mappings = BTreeMap::new();
        let mut tables: Vec<SharedTable> = Vec::new();
        for topic in topics {
            let (keys, section) = (config.of(topic), config.section(topic));
            let wrong = |error: String| Failure::fatal(format!("{section}: {error}"));
            let name = template::expand(keys.table.as_deref().unwrap_or("${topic}"), topic).map_err(wrong)?;
            let table = catalog::read(tx, &name, &section).await?;
            let known = tables.iter().position(|known| known.fingerprint == table.fingerprint);
            let index = known.unwrap_or_else(|| {
                tables.push(Arc::new(table));
                tables.len() - 1
            });
            if let Some(table) = tables.get(index) {
                mappings.insert(topic.clone(), Mapping::new(keys, Arc::clone(table), index).map_err(wrong)?);
            }
        }
        Ok(Self { mappings })
    }

    /// The table that a topic's rows go to, as `schema.table`; the topic's name for a topic that was not there when the sink was opened.
    pub fn table(&self, topic: &str) -> String {
        self.mappings.get(topic).map_or_else(|| topic.to_owned(), |mapping| mapping.table.display())
    }

    /// Whether the table of a topic holds rows; any of them counts, since `insert` would add to them.
    ///
    /// # Errors
    /// The server's, by class.
    pub async fn holds_rows(&self, tx: &mut Tx, topic: &str) -> Result<bool, SinkError> {
        let Some(mapping) = self.mappings.get(topic) else { return Ok(false) };
        let look = format!("SELECT EXISTS (SELECT FROM {})", mapping.table.sql());
        let holds = oncesink::sqlx::query_scalar(&look).fetch_one(tx.sql()).await.map_err(Failure::from)?;
        Ok(holds)
    }

    fn plan(&self, batch: &Batch) -> Result<Plan, SinkError> {
        encode::encode(batch, |topic| self.mappings.get(topic))
    }

    /// Turns a batch into statements.
    ///
    /// # Errors
    /// All bad records of the batch.
    pub fn encode(&self, batch: &Batch) -> Result<Encoded, SinkError> {
        Ok(Encoded::new(self.plan(batch)?))
    }

    /// Writes what [`Insert::encode`] made of the batch, or encodes it first.
    ///
    /// # Errors
    /// The server's, by class. After an error in mid-COPY `session_alive` is false: the connection must be closed.
    pub async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        match batch.encoded::<Plan>() {
            Some(plan) => write::write(tx, plan).await,
            None => write::write(tx, &self.plan(batch)?).await,
        }
    }
}

#[async_trait]
impl<S: Store<Tx = Tx>> Sink<S> for Insert {
    const KIND: &'static str = "postgres";
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

    fn encode(&self, batch: &Batch) -> Result<Encoded, SinkError> {
        self.encode(batch)
    }

    async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        self.write(tx, batch).await
    }
}
