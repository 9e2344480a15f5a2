//! The store on a real Postgres.

mod admin;
mod claim;
mod dead_letters;
mod errors;
mod fence;
mod frozen;
mod guard;
mod held;
mod migrate;
mod register;
mod sessions;
mod settle;

use oncesink::postgres::{Postgres, PostgresConfig};
use oncesink::store::{Claimed, Identity, Store};
use oncesink_test_support::Servers;
use oncesink_test_support::postgres::Schema;

use super::{claimed, names, starts, step, topic, wanted};

/// The store that the shared tests run on.
type Db = Postgres;

/// A schema with our tables, and the trigger that refuses an offset that goes back in silence.
struct Bench {
    schema: Schema,
    group: String,
}

impl Bench {
    /// An empty schema.
    async fn empty(stem: &str) -> Self {
        let schema = Servers::shared().await.postgres().schema(stem).await;
        Self { schema, group: format!("group of {stem}") }
    }

    /// With tables.
    async fn new(stem: &str) -> Self {
        let bench = Self::empty(stem).await;
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

    fn store(&self) -> Postgres {
        self.store_at(self.schema.url())
    }

    /// A store that waits for its turn among many.
    fn patient_store(&self) -> Postgres {
        self.store()
    }

    fn store_at(&self, url: &str) -> Postgres {
        Postgres::new(PostgresConfig::new(url), &self.group).unwrap()
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
    async fn claim(&self, store: &Postgres, partition: i32) -> Claimed {
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
