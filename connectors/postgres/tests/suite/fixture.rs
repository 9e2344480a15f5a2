//! A schema, a store in it, and batches made of literals.

use std::sync::Arc;

use oncesink::plan::Config;
use oncesink::postgres::{Postgres, PostgresConfig, Session, Tx};
use oncesink::store::Store;
use oncesink::{BadRecord, Batch, Failure, Part, SinkError, SliceBuilder, TopicPartition, Written};
use oncesink_postgres::Tables;
use oncesink_test_support::Servers;
use oncesink_test_support::postgres::Schema;

/// One test's world.
pub(crate) struct Fixture {
    pub(crate) schema: Schema,
    store: Postgres,
}

impl Fixture {
    /// A fresh schema in which these statements were run.
    pub(crate) async fn new(stem: &str, sql: &str) -> Self {
        let schema = Servers::shared().await.postgres().schema(stem).await;
        schema.execute(sql).await;
        let store = store(schema.url());
        Self { schema, store }
    }

    /// The same schema through another role of the server.
    pub(crate) fn acting_as(&self, role: &str) -> Self {
        let (before, host) = self.schema.url().split_once('@').unwrap();
        let scheme = before.split_once("://").unwrap().0;
        Self { schema: self.schema.clone(), store: store(&format!("{scheme}://{role}@{host}")) }
    }

    /// An open transaction.
    pub(crate) async fn begin(&self) -> Tx {
        let session = self.store.connect().await.unwrap();
        self.store.begin(session, oncesink::Statements::Foreign).await.unwrap()
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
                assert_eq!(failure.class, oncesink::Class::Fatal, "{failure}");
                failure.message
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Encodes, writes, guards and commits.
    pub(crate) async fn write(&self, sink: &Tables, batch: &mut Batch) -> Result<Written, SinkError> {
        batch.set_encoded(sink.encode(batch)?);
        let mut tx = self.begin().await;
        match sink.write(&mut tx, batch).await {
            Ok(written) => {
                self.store.guard(&mut tx).await.unwrap();
                self.store.commit(tx).await.unwrap();
                Ok(written)
            }
            Err(error) => {
                self.store.rollback(tx).await;
                Err(error)
            }
        }
    }

    /// Writes in a transaction of a given session, rolls back, and gives the session back if it is still usable.
    pub(crate) async fn try_on(
        &self,
        session: Session,
        sink: &Tables,
        batch: &Batch,
    ) -> (Result<Written, SinkError>, Option<Session>) {
        let mut tx = self.store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        let written = sink.write(&mut tx, batch).await;
        (written, self.store.rollback(tx).await)
    }

    /// Writes in a transaction of a given session, commits, and gives the session back.
    pub(crate) async fn commit_on(
        &self,
        session: Session,
        sink: &Tables,
        batch: &Batch,
    ) -> Result<Session, SinkError> {
        let mut tx = self.store.begin(session, oncesink::Statements::Foreign).await.unwrap();
        sink.write(&mut tx, batch).await?;
        self.store.guard(&mut tx).await.unwrap();
        Ok(self.store.commit(tx).await.unwrap())
    }

    /// A session between transactions.
    pub(crate) async fn session(&self) -> Session {
        self.store.connect().await.unwrap()
    }

    /// Opens with these keys and writes these values of topic `t`, partition 0.
    pub(crate) async fn put(&self, config: &str, values: &[&str]) -> Result<Written, SinkError> {
        let sink = self.open(config, &["t"]).await?;
        self.write(&sink, &mut batch(values)).await
    }

    /// The bad records that these values are.
    pub(crate) async fn bad(&self, config: &str, values: &[&str]) -> Vec<BadRecord> {
        match self.put(config, values).await {
            Err(SinkError::Bad(bad)) => bad,
            other => panic!("not bad: {other:?}"),
        }
    }

    /// All rows of a query as text, sorted.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<String> {
        self.schema.column(&format!("SELECT row_to_json(r)::text FROM ({sql}) AS r ORDER BY 1")).await
    }
}

fn store(url: &str) -> Postgres {
    Postgres::new(PostgresConfig::new(url), "sink-tests").unwrap()
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
    Batch::new(vec![part("t", 0, values.iter().map(|value| Some(value.as_ref())))])
}

/// Records of topic `t`, partition 0, from offset 0: key and value.
pub(crate) fn keyed(records: &[(&str, Option<&str>)]) -> Batch {
    let mut slice = SliceBuilder::new(TopicPartition::new("t", 0), 0);
    for (offset, (key, value)) in records.iter().enumerate() {
        slice.push(offset as i64, Some(0), None, Some(key.as_bytes()), value.map(str::as_bytes), []);
    }
    Batch::new(vec![Part::whole(Arc::new(slice.build()))])
}

/// Values of one partition, from offset 0; none is a tombstone.
pub(crate) fn part<'v>(topic: &str, partition: i32, values: impl Iterator<Item = Option<&'v [u8]>>) -> Part {
    let mut slice = SliceBuilder::new(TopicPartition::new(topic, partition), 0);
    for (offset, value) in values.enumerate() {
        slice.push(offset as i64, Some(0), None, None, value, []);
    }
    Part::whole(Arc::new(slice.build()))
}
