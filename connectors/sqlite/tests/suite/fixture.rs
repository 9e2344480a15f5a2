//! A file, a store on it, and batches made of literals.

use std::sync::Arc;

use oncesink::plan::Config;
use oncesink::sqlite::{Sqlite, SqliteConfig, Tx};
use oncesink::store::Store;
use oncesink::{BadRecord, Batch, Class, Failure, Part, SinkError, SliceBuilder, TopicPartition, Written};
use oncesink_sqlite::Tables;
use oncesink_test_support::sqlite::File;

/// One test's world.
pub(crate) struct Fixture {
    pub(crate) file: File,
    store: Sqlite,
}

impl Fixture {
    /// A fresh file in which these statements were run.
    pub(crate) async fn new(sql: &str) -> Self {
        let file = File::new("sink");
        file.execute(sql).await;
        let store = Sqlite::new(SqliteConfig::new(file.url()), "sink-tests").unwrap();
        Self { file, store }
    }

    /// The first column of a query as text, in the query's order.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<String> {
        self.file.column(sql).await
    }

    /// An open transaction.
    pub(crate) async fn begin(&self) -> Tx {
        self.store.begin(self.store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap()
    }

    /// A sink for these topics; the keys as JSON.
    pub(crate) async fn open(&self, config: &str, topics: &[&str]) -> Result<Tables, SinkError> {
        let config: Config = serde_json::from_str(config).unwrap();
        let topics: Vec<_> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let mut tx = self.begin().await;
        let opened = Tables::open(&config, &topics, &mut tx).await;
        self.store.rollback(tx).await;
        opened
    }

    /// The message by which a start is refused.
    pub(crate) async fn refusal(&self, config: &str, topic: &str) -> String {
        match self.open(config, &[topic]).await {
            Err(SinkError::Failed(failure)) => {
                assert_eq!(failure.class, Class::Fatal, "{failure}");
                failure.message
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Encodes, writes, guards and commits.
    pub(crate) async fn write(&self, sink: &Tables, batch: &mut Batch) -> Result<Written, SinkError> {
        batch.set_encoded(sink.encode(batch)?);
        let tx = self.begin().await;
        self.write_in(tx, sink, batch).await
    }

    /// The same in a transaction that was prepared.
    pub(crate) async fn write_in(
        &self,
        mut tx: Tx,
        sink: &Tables,
        batch: &Batch,
    ) -> Result<Written, SinkError> {
        let written = match sink.write(&mut tx, batch).await {
            Ok(written) => self.store.guard(&mut tx).await.map(|()| written).map_err(SinkError::from),
            Err(error) => Err(error),
        };
        if written.is_ok() {
            self.store.commit(tx).await.unwrap();
        } else {
            self.store.rollback(tx).await;
        }
        written
    }

    /// Opens with these keys and writes these values of topic `t`, partition 0.
    pub(crate) async fn put<V: AsRef<[u8]>>(&self, config: &str, values: &[V]) -> Result<Written, SinkError> {
        let sink = self.open(config, &["t"]).await?;
        self.write(&sink, &mut batch(values)).await
    }

    /// The bad records that these values are.
    pub(crate) async fn bad<V: AsRef<[u8]>>(&self, config: &str, values: &[V]) -> Vec<BadRecord> {
        match self.put(config, values).await {
            Err(SinkError::Bad(bad)) => bad,
            other => panic!("not bad: {other:?}"),
        }
    }
}

/// The failure behind an error.
pub(crate) fn failure(error: SinkError) -> Failure {
    match error {
        SinkError::Failed(failure) => failure,
        bad => panic!("bad records, not a failure: {bad}"),
    }
}

/// Values of topic `t`, partition 0, from offset 0.
pub(crate) fn batch<V: AsRef<[u8]>>(values: &[V]) -> Batch {
    batch_of("t", values)
}

/// Values of a topic's partition 0, from offset 0.
pub(crate) fn batch_of<V: AsRef<[u8]>>(topic: &str, values: &[V]) -> Batch {
    records(topic, values.iter().map(|value| (None, Some(value.as_ref()))))
}

/// Records of topic `t`, partition 0, from offset 0: key and value.
pub(crate) fn keyed(pairs: &[(&str, Option<&str>)]) -> Batch {
    records("t", pairs.iter().map(|(key, value)| (Some(key.as_bytes()), value.map(str::as_bytes))))
}

fn records<'r>(topic: &str, records: impl Iterator<Item = (Option<&'r [u8]>, Option<&'r [u8]>)>) -> Batch {
    let mut slice = SliceBuilder::new(TopicPartition::new(topic, 0), 0);
    for (offset, (key, value)) in records.enumerate() {
        slice.push(offset as i64, Some(0), None, key, value, []);
    }
    Batch::new(vec![Part::whole(Arc::new(slice.build()))])
}
