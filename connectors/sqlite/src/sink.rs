//! The sink itself: opened against the catalog, then a function of batch and transaction.
//!
//! Invariant: immutable once opened; whatever changes in the catalog is found in `write` and answered by opening again.

use std::sync::Arc;

use oncesink::plan::{self, Changes, Config, Mapping, Mappings, Mode, Outlook, Preview, Table as _};
use oncesink::sqlite::Tx;
use oncesink::store::Store;
use oncesink::{Batch, Encoded, Failure, Record, Sink, SinkError, Written, async_trait, sqlx};

use crate::catalog::{self, Table};
use crate::write;

/// JSON objects as rows of the tables that their topics name.
#[derive(Debug)]
pub struct Tables {
    mappings: Mappings<Table>,
}

/// What `write` does for a batch.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) work: Vec<Work>,
    pub(crate) written: Written,
}

/// What is to be done to one table.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) table: Arc<Table>,
    pub(crate) mode: Mode,
    pub(crate) key: Vec<usize>,
    pub(crate) changes: Changes,
}

impl Tables {
    /// Finds every topic's table and checks that it can take rows exactly once.
    ///
    /// # Errors
    /// `Fatal` for what a person must mend, naming the table or the key and the remedy; SQLite's errors by class.
    pub async fn open(config: &Config, topics: &[String], tx: &mut Tx) -> Result<Self, SinkError> {
        let mut mappings = Mappings::default();
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for topic in topics {
            let (keys, section) = (config.of(topic), config.section(topic));
            let wrong = |error: String| Failure::fatal(format!("{section}: {error}"));
            let name = plan::expand(keys.table.as_deref().unwrap_or("${topic}"), topic).map_err(wrong)?;
            let read = Arc::new(catalog::read(tx, &name, &section).await?);
            let table = match tables.iter().find(|known| known.name == read.name) {
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

    /// The table that a topic's rows go to; the topic's name for a topic that was not there when the sink was opened.
    pub fn table(&self, topic: &str) -> String {
        self.mappings.of(topic).map_or_else(|| topic.to_owned(), |mapping| mapping.table.display())
    }

    /// Whether the table of a topic holds rows that a first pass would add to: not asked of modes that find their rows by key.
    ///
    /// # Errors
    /// SQLite's, by class.
    pub async fn holds_rows(&self, tx: &mut Tx, topic: &str) -> Result<bool, SinkError> {
        let Some(mapping) = self.mappings.of(topic).filter(|mapping| mapping.mode == Mode::Insert) else {
            return Ok(false);
        };
        let look = format!("SELECT EXISTS (SELECT 1 FROM {})", mapping.table.sql());
        Ok(sqlx::query_scalar(&look).fetch_one(tx.sql()).await.map_err(Failure::from)?)
    }

    fn plan(&self, batch: &Batch) -> Result<Plan, SinkError> {
        let planned = self.mappings.encode(batch)?;
        let work = planned.targets.into_iter().filter_map(|(index, changes)| {
            let target = self.mappings.targets().get(index)?;
            Some(Work {
                table: Arc::clone(&target.table),
                mode: target.mode,
                key: target.key.clone(),
                changes,
            })
        });
        Ok(Plan { work: work.collect(), written: planned.written })
    }

    /// Turns a batch into rows.
    ///
    /// # Errors
    /// All bad records of the batch.
    pub fn encode(&self, batch: &Batch) -> Result<Encoded, SinkError> {
        Ok(Encoded::new(self.plan(batch)?))
    }

    /// Writes what [`Tables::encode`] made of the batch, or encodes it first.
    ///
    /// # Errors
    /// SQLite's, by class.
    pub async fn write(&self, tx: &mut Tx, batch: &Batch) -> Result<Written, SinkError> {
        match batch.encoded::<Plan>() {
            Some(plan) => write::write(tx, batch, plan).await,
            None => write::write(tx, batch, &self.plan(batch)?).await,
        }
    }
}

#[async_trait]
impl<S: Store<Tx = Tx>> Sink<S> for Tables {
    const KIND: &'static str = "sqlite";
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
