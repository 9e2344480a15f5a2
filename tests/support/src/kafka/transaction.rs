//! Kafka transactions: committed, aborted, or left open.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::producer::{BaseProducer, Producer};

use super::client::Kafka;
use super::produce::{Deliveries, Record, producer, send_all};
use crate::eventually;

const DEADLINE: Duration = Duration::from_secs(60);

/// An open transaction. Dropped without an end it hangs until its timeout, as that of a killed producer does, and the
/// last stable offset stands at its first record meanwhile.
pub struct Transaction {
    kafka: Kafka,
    producer: Arc<BaseProducer<Deliveries>>,
    /// The last offset written, by topic and partition.
    written: Vec<(String, i32, i64)>,
}

impl Kafka {
    /// Opens a transaction that the coordinator aborts after `timeout` (and up to 10 s more) if nobody ends it.
    pub async fn begin(&self, timeout: Duration) -> Transaction {
        let mut config = self.client_config();
        config.set("transactional.id", crate::unique("tx"));
        config.set("transaction.timeout.ms", timeout.as_millis().to_string());
        let producer = tokio::task::spawn_blocking(move || {
            let producer = producer(config);
            producer.init_transactions(DEADLINE).expect("initialising transactions");
            producer.begin_transaction().expect("beginning a transaction");
            producer
        })
        .await
        .expect("beginning a transaction");
        Transaction {
            kafka: Kafka::connect(self.bootstrap()),
            producer: Arc::new(producer),
            written: Vec::new(),
        }
    }

    /// Writes the records in one transaction and commits it; gives their offsets.
    pub async fn produce_committed(
        &self,
        topic: &str,
        records: impl IntoIterator<Item = Record>,
    ) -> Vec<i64> {
        let mut transaction = self.begin(DEADLINE).await;
        let offsets = transaction.produce(topic, records).await;
        transaction.commit().await;
        offsets
    }

    /// Writes the records in one transaction and aborts it; gives the offsets that they take up.
    pub async fn produce_aborted(&self, topic: &str, records: impl IntoIterator<Item = Record>) -> Vec<i64> {
        let mut transaction = self.begin(DEADLINE).await;
        let offsets = transaction.produce(topic, records).await;
        transaction.abort().await;
        offsets
    }
}

impl Transaction {
    /// Writes records into the transaction; they are on the broker when this returns.
    pub async fn produce(&mut self, topic: &str, records: impl IntoIterator<Item = Record>) -> Vec<i64> {
        let records: Vec<Record> = records.into_iter().collect();
        let partitions: Vec<i32> = records.iter().map(Record::partition).collect();
        let (producer, name) = (Arc::clone(&self.producer), topic.to_owned());
        let offsets = tokio::task::spawn_blocking(move || send_all(&producer, &name, &records))
            .await
            .expect("producing in a transaction");
        for (partition, offset) in partitions.into_iter().zip(&offsets) {
            self.written.retain(|(known, p, _)| known != topic || *p != partition);
            self.written.push((topic.to_owned(), partition, *offset));
        }
        offsets
    }

    /// Commits, and waits until the markers stand in the partitions.
    pub async fn commit(self) {
        let producer = Arc::clone(&self.producer);
        tokio::task::spawn_blocking(move || producer.commit_transaction(DEADLINE).expect("committing"))
            .await
            .expect("committing");
        self.wait_for_markers().await;
    }

    /// Aborts, and waits until the markers stand in the partitions.
    pub async fn abort(self) {
        let producer = Arc::clone(&self.producer);
        tokio::task::spawn_blocking(move || producer.abort_transaction(DEADLINE).expect("aborting"))
            .await
            .expect("aborting");
        self.wait_for_markers().await;
    }

    /// Leaves the transaction open, as a killed producer would.
    pub fn hang(self) {}

    async fn wait_for_markers(&self) {
        for (topic, partition, last) in &self.written {
            // The marker takes the offset after the last record.
            eventually(DEADLINE, || async {
                (self.kafka.high_watermark(topic, *partition).await >= last + 2).then_some(())
            })
            .await;
        }
    }
}
