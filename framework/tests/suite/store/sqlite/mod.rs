//! The store on SQLite files.

mod admin;
mod busy;
mod claim;
mod dead_letters;
mod doubt;
mod errors;
mod fence;
mod guard;
mod migrate;
mod processes;
mod register;
mod settle;

use std::time::Duration;

use oncesink::sqlite::{Sqlite, SqliteConfig};
use oncesink::store::{Claimed, Identity, Store};
use oncesink_test_support::sqlite::File;

use super::{claimed, names, starts, step, topic, wanted};

/// The store that the shared tests run on.
type Db = Sqlite;

/// A file with our tables, and the trigger that refuses an offset that goes back in silence.
struct Bench {
    schema: File,
    group: String,
}

impl Bench {
    /// No file yet.
    fn empty(stem: &str) -> Self {
        Self { schema: File::new(stem), group: format!("group of {stem}") }
    }

    /// With tables.
    async fn new(stem: &str) -> Self {
        let bench = Self::empty(stem);
        bench.store().apply(None).await.unwrap();
        bench.schema.guard_offsets().await;
        bench
    }

    /// With tables, and topic `t` registered with `count` partitions that begin at 10.
    async fn registered(stem: &str, count: i32) -> Self {
        let bench = Self::new(stem).await;
        bench.store().register(&bench.identity("setup"), &starts("t", count, 10)).await.unwrap();
        bench
    }

    /// The same with a table for rows: `rows (n bigint)`.
    async fn with_rows(stem: &str, count: i32) -> Self {
        let bench = Self::registered(stem, count).await;
        bench.schema.execute("CREATE TABLE rows (n bigint PRIMARY KEY)").await;
        bench
    }

    fn store(&self) -> Sqlite {
        Sqlite::new(SqliteConfig::new(self.schema.url()), &self.group).unwrap()
    }

    /// A store that waits for its turn among many.
    fn patient_store(&self) -> Sqlite {
        let mut config = SqliteConfig::new(self.schema.url());
        config.lock = Duration::from_secs(20);
        Sqlite::new(config, &self.group).unwrap()
    }

    fn identity(&self, owner: &str) -> Identity {
        Identity {
            group: self.group.as_str().into(),
            sink: "s".into(),
            cluster_id: "cluster-1".into(),
            owner: owner.into(),
        }
    }

    /// Claims one partition of topic `t`.
    async fn claim(&self, store: &Sqlite, partition: i32) -> Claimed {
        let claims = store.claim(&self.identity("claimer"), &[wanted("t", partition)]).await.unwrap();
        claimed(&claims[0])
    }

    /// Epoch and offset of a partition of topic `t`.
    async fn stands(&self, partition: i32) -> (i64, i64) {
        let sql =
            format!("SELECT owner_epoch FROM kafka_offsets WHERE topic = 't' AND partition_id = {partition}");
        let epoch = self.schema.value(&sql).await;
        (epoch, self.offset(partition).await)
    }

    async fn offset(&self, partition: i32) -> i64 {
        let sql =
            format!("SELECT last_offset FROM kafka_offsets WHERE topic = 't' AND partition_id = {partition}");
        self.schema.value(&sql).await
    }

    /// The kinds of all events, in order.
    async fn events(&self) -> Vec<String> {
        self.schema.column("SELECT kind FROM oncesink_events ORDER BY id").await
    }
}
