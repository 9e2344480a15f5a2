//! A case in every cut of its records into batches. Bad records are left out and the rest is written again, as under the policy `dead-letter`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oncesink::plan::Config;
use oncesink::store::Store;
use oncesink::{
    BadRecord, Batch, Class, Failure, Part, Sink, SinkError, SliceBuilder, TopicPartition, Written,
};

use super::case::{Books, Case, Rec};
use super::world::World;

/// Above this many rows the Postgres sink stages them.
const LARGE: usize = 1001;
/// Where a case's records end and the fillers' partition begins.
const FILLERS_PARTITION: i32 = 99;

/// A record and its offset.
type Placed = (Rec, i64);
/// Topic, partition and offset.
type Place = (String, i32, i64);

pub(crate) async fn run<W: World>(name: &str, case: Case) {
    let all = case.records.len().max(1);
    let sizes: BTreeSet<usize> = if case.whole { [all.div_ceil(2), all].into() } else { [1, 2, all].into() };
    for size in sizes {
        cut::<W>(name, &case, size, false).await;
    }
    if !case.fillers.is_empty() {
        cut::<W>(name, &case, all, true).await;
    }
}

/// One cut into batches of so many records; with fillers, each batch goes the large way.
async fn cut<W: World>(name: &str, case: &Case, size: usize, large: bool) {
    let ddl: Vec<&str> = case.ddl_on(W::DATABASE).collect();
    // Names of schemas are cut beyond 63 bytes, and the part behind this one tells them apart.
    let world = W::new(name.get(..32).unwrap_or(name), &ddl).await;
    let placed = placed(&case.records);
    let mut written = Books::default();
    let mut bad: Vec<BadRecord> = Vec::new();
    let sink = open(&world, case, &placed).await;
    let mut session = None;
    for batch in placed.chunks(size) {
        let mut records = batch.to_vec();
        if large {
            records.extend(fillers(case));
        }
        let mut writer =
            Writer { world: &world, sink: &sink, session, bad: BTreeMap::new(), books: Books::default() };
        writer.write(&records).await;
        let Writer { books, bad: found, session: kept, .. } = writer;
        session = kept;
        bad.extend(found.into_values());
        written.read += batch.len();
        written.written += books.written;
        written.collapsed += books.collapsed;
        written.deleted += books.deleted;
        written.skipped += books.skipped;
    }
    written.bad = bad.len();
    if large {
        world.execute(&case.unfill).await;
    }
    let context =
        format!("{name} on {:?}, batches of {size}{}", W::DATABASE, if large { ", large" } else { "" });
    let expected = case.expected_on(W::DATABASE);
    let messages: Vec<&str> = bad.iter().map(|bad| bad.message.as_str()).collect();
    let mut found: Vec<_> = bad
        .iter()
        .map(|bad| {
            (&*bad.place.topic, bad.place.partition, bad.offset, bad.reason.code(), bad.column.as_deref())
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected.bad, "{context}: bad records: {messages:#?}");
    for (query, rows) in &expected.rows {
        assert_eq!(&world.rows(query).await, rows, "{context}: {query}");
    }
    if let Some(books) = expected.books.filter(|_| size >= case.records.len() && !large) {
        assert_eq!(written, books, "{context}: the books");
    }
}

fn placed(records: &[Rec]) -> Vec<Placed> {
    let mut next: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    records
        .iter()
        .map(|rec| {
            let offset = next.entry((&rec.topic, rec.partition)).or_default();
            *offset += 1;
            (rec.clone(), *offset - 1)
        })
        .collect()
}

fn fillers(case: &Case) -> impl Iterator<Item = Placed> + '_ {
    let filled = |text: &Option<Vec<u8>>, n: usize| {
        let text = text.as_ref().map(|bytes| String::from_utf8(bytes.clone()).unwrap());
        text.map(|text| text.replace("{n}", &n.to_string()).into_bytes())
    };
    case.fillers.iter().enumerate().flat_map(move |(nth, template)| {
        (0..LARGE).map(move |row| {
            let n = 1000 + nth * LARGE + row;
            let (key, value) = (filled(&template.key, n), filled(&template.value, n));
            (Rec { key, value, partition: FILLERS_PARTITION, ..template.clone() }, n as i64)
        })
    })
}

async fn open<W: World>(world: &W, case: &Case, records: &[Placed]) -> W::Sink {
    let config: Config = serde_json::from_str(&world.named(&case.keys)).unwrap();
    let topics: BTreeSet<String> = records.iter().map(|(rec, _)| rec.topic.clone()).collect();
    let session = world.store().connect().await.unwrap();
    let mut tx = world.store().begin(session, oncesink::Statements::Foreign).await.unwrap();
    let sink = W::Sink::open(config, &Vec::from_iter(topics), &mut tx).await;
    world.store().rollback(tx).await;
    sink.unwrap_or_else(|error| panic!("{error}"))
}

/// Writes one batch, and knows its bad records.
struct Writer<'w, W: World> {
    world: &'w W,
    sink: &'w W::Sink,
    session: Option<<W::Store as Store>::Session>,
    bad: BTreeMap<Place, BadRecord>,
    books: Books,
}

impl<W: World> Writer<'_, W> {
    /// In one transaction, without the records that are found bad; where the server refuses one and does not say which, in halves, the first one first.
    async fn write(&mut self, records: &[Placed]) {
        loop {
            let rest: Vec<&Placed> =
                records.iter().filter(|placed| !self.bad.contains_key(&place(placed))).collect();
            match self.attempt(&rest).await {
                Ok(written) => return self.count(&rest, &written),
                Err(SinkError::Bad(bad)) => {
                    assert!(!bad.is_empty());
                    for bad in bad {
                        let place = (bad.place.topic.to_string(), bad.place.partition, bad.offset);
                        assert!(self.bad.insert(place, bad).is_none(), "found bad twice");
                    }
                }
                Err(SinkError::Failed(failure)) if failure.class == Class::BadRecord => match rest.as_slice()
                {
                    [one] => {
                        let bad = refused(one, failure);
                        self.bad.insert(place(one), bad);
                    }
                    _ => {
                        let (first, second) = records.split_at(records.len() / 2);
                        Box::pin(self.write(first)).await;
                        return Box::pin(self.write(second)).await;
                    }
                },
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn attempt(&mut self, records: &[&Placed]) -> Result<Written, SinkError> {
        let mut batch = batch(records);
        batch.set_encoded(self.sink.encode(&batch)?);
        let store = self.world.store();
        let session = match self.session.take() {
            Some(session) => session,
            None => store.connect().await?,
        };
        let mut tx = store.begin(session, oncesink::Statements::Foreign).await?;
        let outcome = match self.sink.write(&mut tx, &batch).await {
            Ok(written) => store.guard(&mut tx).await.map(|()| written).map_err(SinkError::from),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(written) => {
                let committed = store.commit(tx).await;
                self.session = Some(committed.unwrap_or_else(|error| panic!("COMMIT: {error:?}")));
                Ok(written)
            }
            Err(error) => {
                self.session = store.rollback(tx).await;
                Err(error)
            }
        }
    }

    fn count(&mut self, records: &[&Placed], written: &Written) {
        let total = written.total();
        assert_eq!(total.total(), records.len(), "the books do not balance");
        self.books.written += total.records;
        self.books.collapsed += total.collapsed;
        self.books.deleted += total.deleted;
        self.books.skipped += total.skipped;
    }
}

fn place((rec, offset): &Placed) -> Place {
    (rec.topic.clone(), rec.partition, *offset)
}

/// What the framework makes of a refusal once a record is alone.
fn refused((rec, offset): &Placed, failure: Failure) -> BadRecord {
    let data = failure.data.expect("what the server refused");
    BadRecord {
        place: TopicPartition::new(rec.topic.as_str(), rec.partition),
        offset: *offset,
        reason: data.reason,
        message: failure.message,
        sql_state: failure.sql_state,
        table: data.table,
        column: data.column,
    }
}

fn batch(records: &[&Placed]) -> Batch {
    let mut slices: BTreeMap<(&str, i32), SliceBuilder> = BTreeMap::new();
    for (rec, offset) in records {
        let slice = slices.entry((&rec.topic, rec.partition)).or_insert_with(|| {
            SliceBuilder::new(TopicPartition::new(rec.topic.as_str(), rec.partition), *offset)
        });
        let headers = rec.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref()));
        slice.push(*offset, Some(rec.timestamp), None, rec.key.as_deref(), rec.value.as_deref(), headers);
    }
    Batch::new(slices.into_values().map(|slice| Part::whole(Arc::new(slice.build()))).collect())
}
