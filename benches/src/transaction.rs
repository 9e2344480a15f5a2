//! Single transactions through the store, beside the same rows written by hand.

use std::sync::Arc;
use std::time::Instant;

use oncesink::plan::Config;
use oncesink::position::{Interval, StartPolicy};
use oncesink::postgres::{Postgres, PostgresConfig, Session};
use oncesink::sqlx::{Connection, Executor, PgConnection};
use oncesink::store::{Claim, Fence, Identity, Starts, Step, Store, TopicIdentity, Wanted};
use oncesink::{Batch, Part, SliceBuilder, SliceEnd, TopicPartition};
use oncesink_postgres::Tables;
use oncesink_test_support::postgres::{PostgresServer, Schema};

use crate::data;
use crate::report::{Figure, median};

const TOPIC: &str = "orders";
const GROUP: &str = "bench";

/// A schema with our tables and the table `orders`, a claimed partition, an open sink.
pub(crate) struct Bench {
    pub(crate) schema: Schema,
    store: Postgres,
    pub(crate) sink: Tables,
    fence: Fence,
}

impl Bench {
    pub(crate) async fn new(postgres: &PostgresServer, stem: &str) -> Self {
        let schema = postgres.schema(stem).await;
        schema
            .execute(&format!("CREATE TABLE orders ({}) WITH (autovacuum_enabled = off)", data::COLUMNS))
            .await;
        let store = Postgres::new(PostgresConfig::new(schema.url()), GROUP).expect("a store");
        store.apply(None).await.expect("migrating");
        let fence = claim(&store).await;
        let session = store.connect().await.expect("connecting");
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await.expect("beginning");
        let config: Config = serde_json::from_str("{}").expect("an empty configuration");
        let sink = Tables::open(&config, &[TOPIC.to_owned()], &mut tx).await.expect("opening the sink");
        store.rollback(tx).await;
        Self { schema, store, sink, fence }
    }

    async fn session(&self) -> Session {
        self.store.connect().await.expect("connecting")
    }

    /// The whole transaction as a writer runs it: advance, write, guard, commit. `write` gives the rows.
    async fn guaranteed(&self, session: Session, from: &mut i64, copy: &Copy) -> Session {
        let to = *from + copy.rows as i64;
        let step = Step {
            place: TopicPartition::new(TOPIC, 0),
            fence: self.fence,
            interval: Interval { from: *from, to },
            end: SliceEnd { leader_epoch: Some(1), timestamp: Some(1_700_000_000_000) },
        };
        *from = to;
        let mut tx = self.store.begin(session, oncesink::Statements::Foreign).await.expect("begin");
        let moved = self.store.advance(&mut tx, &[step]).await.expect("advance");
        assert_eq!(moved, [true]);
        copy.send(tx.sql()).await;
        self.store.guard(&mut tx).await.expect("guard");
        self.store.commit(tx).await.expect("commit")
    }

    /// The same as a sink's batch, which goes by UNNEST when it is small.
    async fn sunk(&self, session: Session, from: &mut i64, batch: &Batch) -> Session {
        let (to, mut batch_end) = (*from + batch.len() as i64, SliceEnd::default());
        batch_end.timestamp = Some(1_700_000_000_000);
        let interval = Interval { from: *from, to };
        let step = Step { place: TopicPartition::new(TOPIC, 0), fence: self.fence, interval, end: batch_end };
        *from = to;
        let mut tx = self.store.begin(session, oncesink::Statements::Foreign).await.expect("begin");
        assert_eq!(self.store.advance(&mut tx, &[step]).await.expect("advance"), [true]);
        self.sink.write(&mut tx, batch).await.expect("write");
        self.store.guard(&mut tx).await.expect("guard");
        self.store.commit(tx).await.expect("commit")
    }

    async fn empty(&self) {
        self.schema.execute("TRUNCATE orders").await;
        self.schema.execute("CHECKPOINT").await;
    }
}

async fn claim(store: &Postgres) -> Fence {
    let identity =
        Identity { group: GROUP.into(), sink: "s".into(), cluster_id: "c".into(), owner: "bench".into() };
    let topic = TopicIdentity { name: TOPIC.into(), id: "t".into(), target: "s: orders".into() };
    let starts =
        Starts { topic: topic.clone(), policy: StartPolicy::Earliest, first: vec![0], beginning: vec![0] };
    store.register(&identity, &starts).await.expect("registering");
    let wanted = Wanted { place: TopicPartition::new(TOPIC, 0), topic };
    match store.claim(&identity, &[wanted]).await.expect("claiming").remove(0) {
        Claim::Claimed(claimed) => claimed.fence,
        other => panic!("not claimed: {other:?}"),
    }
}

/// `count` orders of partition 0 from `first` on.
pub(crate) fn batch(first: u64, count: u64) -> Batch {
    let mut slice = SliceBuilder::new(TopicPartition::new(TOPIC, 0), first as i64);
    for n in first..first + count {
        slice.push(n as i64, Some(1_700_000_000_000), Some(1), None, Some(data::order(n).as_bytes()), []);
    }
    Batch::new(vec![Part::whole(Arc::new(slice.build()))])
}

/// A COPY of rows as the server gives them in binary form.
struct Copy {
    rows: u64,
    bytes: Vec<u8>,
}

impl Copy {
    /// The first rows of the series, made by writing them once.
    async fn of(bench: &Bench, rows: u64) -> Self {
        let mut tx =
            bench.store.begin(bench.session().await, oncesink::Statements::Foreign).await.expect("begin");
        bench.sink.write(&mut tx, &batch(0, rows)).await.expect("write");
        let mut bytes = Vec::new();
        {
            let mut stream =
                tx.sql().copy_out_raw("COPY orders TO STDOUT (FORMAT binary)").await.expect("a copy");
            while let Some(chunk) = next(&mut stream).await {
                bytes.extend_from_slice(&chunk.expect("a chunk"));
            }
        }
        bench.store.rollback(tx).await;
        Self { rows, bytes }
    }

    async fn send(&self, connection: &mut PgConnection) {
        let mut copy =
            connection.copy_in_raw("COPY orders FROM STDIN (FORMAT binary)").await.expect("beginning a copy");
        for chunk in self.bytes.chunks(256 * 1024) {
            copy.send(chunk).await.expect("sending");
        }
        assert_eq!(copy.finish().await.expect("finishing a copy"), self.rows);
    }

    /// By hand: no fence, no guard, no offset.
    async fn alone(&self, connection: &mut PgConnection) {
        connection.execute("BEGIN").await.expect("begin");
        self.send(connection).await;
        connection.execute("COMMIT").await.expect("commit");
    }
}

async fn next<S: futures_util::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}

fn since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1000.0
}

/// The regression guard of the driver: without TCP_NODELAY a small COPY takes 44 ms.
pub(crate) async fn copy_100_rows(postgres: &PostgresServer, rounds: usize) -> Figure {
    const TURNS: usize = 50;
    const MOST_MILLISECONDS: f64 = 10.0;
    eprintln!("copy_100_rows_guard ...");
    let bench = Bench::new(postgres, "copy_100").await;
    let (copy, batch) = (Copy::of(&bench, 100).await, batch(0, 100));
    let (mut session, mut from) = (bench.session().await, 0);
    let (mut ratios, mut p50s, mut unnest) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        bench.empty().await;
        let (mut copies, mut inserts) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let began = Instant::now();
            session = bench.guaranteed(session, &mut from, &copy).await;
            copies.push(since(began));
            let began = Instant::now();
            session = bench.sunk(session, &mut from, &batch).await;
            inserts.push(since(began));
        }
        p50s.push(median(&copies));
        unnest.push(median(&inserts));
        ratios.push(median(&copies) / MOST_MILLISECONDS);
    }
    let note = format!(
        "p50 {:.2} ms a transaction; the same rows as the sink writes them, by UNNEST, {:.2} ms",
        median(&p50s),
        median(&unnest)
    );
    let against = "a bound of 10 ms on the p50 of a transaction (time)";
    Figure { name: "copy_100_rows_guard", against, ratios, target: "<= 1", base: false, note }
}

/// COPY transactions with and without fence, guard and offset row.
pub(crate) async fn guarantee(
    postgres: &PostgresServer,
    name: &'static str,
    rows: u64,
    target: &'static str,
    rounds: usize,
) -> Figure {
    eprintln!("{name} ...");
    let bench = Bench::new(postgres, name).await;
    let copy = Copy::of(&bench, rows).await;
    let turns = (200_000 / rows).clamp(20, 100);
    let (mut session, mut from) = (bench.session().await, 0);
    let mut by_hand = bench.schema.connection().await;
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        bench.empty().await;
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for turn in 0..turns {
            // Neither side always comes first: what one leaves behind, such as a full WAL buffer, must not fall to the other alone.
            for side in [turn % 2, 1 - turn % 2] {
                let began = Instant::now();
                if side == 0 {
                    session = bench.guaranteed(session, &mut from, &copy).await;
                    with.push(since(began));
                } else {
                    copy.alone(&mut by_hand).await;
                    without.push(since(began));
                }
            }
        }
        ours.push(median(&with));
        theirs.push(median(&without));
        ratios.push(median(&with) / median(&without));
    }
    by_hand.close().await.expect("closing");
    let note = format!("p50 {:.2} ms with, {:.2} ms without", median(&ours), median(&theirs));
    let against = "BEGIN, the same COPY, COMMIT (time)";
    Figure { name, against, ratios, target, base: false, note }
}
