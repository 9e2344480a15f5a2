//! Brokers that tell no topic ids, as before Kafka 2.8: said, stored as nothing, and never believed where an id was told before.

use oncesink::kafka::MockCluster;
use oncesink_test_support::postgres::Schema;
use oncesink_test_support::process::Process;
use oncesink_test_support::{Servers, eventually_within};

use super::{end, says};
use crate::rig::{PATIENCE, row};

const PROMISE: &str = "a topic that is deleted and created again, since these brokers tell no topic ids";
const WARNING: &str = "tell no topic ids, as before Kafka 2.8";

struct Stage {
    cluster: MockCluster,
    schema: Schema,
}

impl Stage {
    async fn new(stem: &str) -> Self {
        let cluster = MockCluster::start().expect("a cluster");
        cluster.create_topic("orders", 1).expect("a topic");
        let schema = Servers::shared().await.postgres().schema(stem).await;
        schema
            .execute(
                "CREATE TABLE orders (partition_id integer, seq bigint, note text, amount numeric(12,2))",
            )
            .await;
        let stage = Self { cluster, schema };
        stage.verb(&["migrate"]).await;
        stage
    }

    fn produce(&self, seqs: std::ops::Range<i64>) {
        for seq in seqs {
            self.cluster.produce("orders", 0, None, Some(row(0, seq).as_bytes())).expect("a record");
        }
        self.cluster.flush().expect("all records");
    }

    fn launch(&self, args: &[&str]) -> oncesink_test_support::process::Launch {
        // Sessions as short as the mock cluster needs for a second start not to wait for the first one's member.
        let config = format!(
            "[kafka]\nbrokers = \"{}\"\n\"session.timeout.ms\" = \"1000\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [sinks.s]\ntopics = [\"orders\"]\ntarget = {{ kind = \"postgres\", url = \"{}\" }}\n",
            self.cluster.brokers(),
            self.schema.url()
        );
        super::command_with(&config, args)
    }

    async fn verb(&self, args: &[&str]) -> String {
        let (code, lines) = self.launch(args).run(PATIENCE).await;
        assert_eq!(code, 0, "{args:?}: {lines:#?}");
        lines.into_iter().map(|line| line.text + "\n").collect()
    }

    async fn id(&self) -> Option<String> {
        self.schema.value("SELECT max(topic_id) FROM kafka_offsets").await
    }

    async fn rows_reach(&self, count: i64) {
        eventually_within(PATIENCE, || self.schema.count("orders"), |rows| *rows >= count).await;
        assert_eq!(self.schema.value::<i64>("SELECT count(DISTINCT seq) FROM orders").await, count);
    }
}

fn count(process: &Process, words: &str) -> usize {
    process.lines().iter().filter(|line| line.text.contains(words)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_topic_ids_rows_arrive_and_what_cannot_be_noticed_is_said_once() {
    let stage = Stage::new("untold").await;
    stage.produce(0..100);
    stage.cluster.without_topic_ids().expect("an older cluster");
    assert!(stage.verb(&["check"]).await.contains(PROMISE));
    let process = stage.launch(&["run"]).start();
    stage.rows_reach(100).await;
    says(&process, &["s: exactly once", PROMISE]).await;
    assert_eq!(count(&process, WARNING), 1, "{}", process.text());
    assert_eq!(stage.id().await, None, "an id of zeros is none");
    end(process).await;

    // Where ids are told, nothing of this is said, and the next claim stores it.
    stage.produce(100..150);
    stage.cluster.with_topic_ids().expect("a newer cluster");
    let process = stage.launch(&["run"]).start();
    stage.rows_reach(150).await;
    assert_eq!((count(&process, PROMISE), count(&process, WARNING)), (0, 0), "{}", process.text());
    assert!(stage.id().await.is_some());
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_stored_and_not_told_now_is_waited_for() {
    let stage = Stage::new("waited").await;
    stage.produce(0..100);
    let process = stage.launch(&["run"]).start();
    stage.rows_reach(100).await;
    let id = stage.id().await;
    assert!(id.is_some());
    end(process).await;

    stage.produce(100..150);
    stage.cluster.without_topic_ids().expect("an older cluster");
    let process = stage.launch(&["run"]).start();
    says(&process, &["claim: orders/0: topic id unknown", "oncesink reset"]).await;
    assert_eq!(stage.schema.count("orders").await, 100, "nothing is read before it can be compared");
    stage.cluster.with_topic_ids().expect("a newer cluster");
    stage.rows_reach(150).await;
    assert_eq!(stage.id().await, id);
    end(process).await;
}
