//! The order of a transaction's calls, as a store and a sink see it that write down what they are asked.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use uuid::Uuid;

use super::*;
use crate::batch::{Part, SliceBuilder};
use crate::dead_letter::DeadLetter;
use crate::error::Reason;
use crate::store::{Claim, EventRow, Fence, Identity, Row, Settled, Starts, Wanted};

/// What was called, in order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<&'static str>>>);

impl Calls {
    fn note(&self, call: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn all(&self) -> Vec<&'static str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How the server answers COMMIT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    Done,
    InDoubt,
    Silence,
}

/// A store that does as it is told, and a sink on top of it.
#[derive(Clone)]
struct Told {
    calls: Calls,
    matched: Vec<bool>,
    guarded: bool,
    commit: Commit,
    written: usize,
    kept: bool,
    /// Whether the last record of each partition is bad.
    bad: bool,
    policy: OnBadRecord,
    gate: Arc<Gate>,
    withdrawn_in_write: bool,
}

impl Told {
    /// Everything goes well with two partitions of one record each.
    fn well() -> Self {
        Self {
            calls: Calls::default(),
            matched: vec![true, true],
            guarded: true,
            commit: Commit::Done,
            written: 2,
            kept: true,
            bad: false,
            policy: OnBadRecord::Stop,
            gate: Arc::default(),
            withdrawn_in_write: false,
        }
    }

    async fn run(&self) -> Outcome {
        let batch = Batch::new((0..2).map(|partition| part(partition, self.bad)).collect());
        let steps: Vec<Step> = batch.parts().iter().map(step).collect();
        let work = Work {
            store: &Arc::new(self.clone()),
            sink: self,
            batch: &batch,
            steps: &steps,
            gate: &self.gate,
            policy: self.policy,
            call_max: Duration::from_millis(200),
        };
        let (outcome, session) = transaction(&work, (), &mut Took::default()).await;
        assert!(session.is_none() || !matches!(outcome, Outcome::InDoubt(..)), "its session is used again");
        outcome
    }
}

/// One record, and with `bad` a bad one behind it.
fn part(partition: i32, bad: bool) -> Part {
    let place = TopicPartition::new("t", partition);
    let mut builder = SliceBuilder::new(place.clone(), 7);
    builder.push(7, None, None, None, Some(b"v"), []);
    if !bad {
        return Part::whole(Arc::new(builder.build()));
    }
    builder.push(8, None, None, None, Some(b"w"), []);
    let mut part = Part::whole(Arc::new(builder.build()));
    let message = String::new();
    let (reason, sql_state, table, column) = (Reason::Check, None, None, None);
    assert!(part.set_aside(BadRecord { place, offset: 8, reason, message, sql_state, table, column }));
    part
}

fn step(part: &Part) -> Step {
    Step {
        place: part.topic_partition().clone(),
        fence: Fence { epoch: 1, token: Uuid::nil() },
        interval: part.interval(),
        end: part.end(),
    }
}

#[async_trait]
impl Store for Told {
    type Session = ();
    type SessionId = ();
    type Tx = ();

    async fn begin(&self, (): (), _: crate::Statements) -> Result<(), Failure> {
        self.calls.note("begin");
        Ok(())
    }

    async fn advance(&self, (): &mut (), _: &[Step]) -> Result<Vec<bool>, Failure> {
        self.calls.note("advance");
        Ok(self.matched.clone())
    }

    async fn dead_letters(&self, (): &mut (), letters: &[DeadLetter<'_>]) -> Result<(), Failure> {
        self.calls.note("dead letters");
        let told: Vec<_> = letters.iter().map(|letter| (letter.offset(), letter.value())).collect();
        assert_eq!(told, [(8, Some(&b"w"[..])); 2]);
        if self.kept { Ok(()) } else { Err(Failure::new(Class::BadRecord, "check constraint violated")) }
    }

    async fn guard(&self, (): &mut ()) -> Result<(), Failure> {
        self.calls.note("guard");
        if self.guarded { Ok(()) } else { Err(Failure::fatal("the connector swallowed an error")) }
    }

    async fn commit(&self, (): ()) -> Result<(), CommitFailure> {
        self.calls.note("commit");
        match self.commit {
            Commit::Done => Ok(()),
            Commit::InDoubt => Err(CommitFailure::InDoubt(Failure::new(Class::Transient, "lost"))),
            Commit::Silence => std::future::pending().await,
        }
    }

    async fn rollback(&self, (): ()) -> Option<()> {
        self.calls.note("rollback");
        Some(())
    }

    fn session_id((): &()) {}

    fn tx_session_id((): &()) {}

    async fn end_session(&self, (): ()) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn connect(&self) -> Result<(), Failure> {
        unreachable!()
    }

    async fn verify(&self) -> Result<String, Failure> {
        unreachable!()
    }

    async fn recorded(&self, _: &[Arc<str>]) -> Result<Vec<Option<i32>>, Failure> {
        unreachable!()
    }

    async fn register(&self, _: &Identity, _: &Starts) -> Result<(), Failure> {
        unreachable!()
    }

    async fn claim(&self, _: &Identity, _: &[Wanted]) -> Result<Vec<Claim>, Failure> {
        unreachable!()
    }

    async fn claim_waiting(&self, _: &Identity, _: &Wanted, _: bool) -> Result<Claim, Failure> {
        unreachable!()
    }

    async fn locked(&self, _: &[Step]) -> Result<Vec<TopicPartition>, Failure> {
        unreachable!()
    }

    async fn settle(&self, _: &[Step], _: Uuid) -> Result<Vec<Settled>, Failure> {
        unreachable!()
    }

    async fn rows(&self, _: &[TopicPartition]) -> Result<Vec<Row>, Failure> {
        unreachable!()
    }

    async fn forward(&self, _: &TopicPartition, _: Fence, _: i64, _: i64, _: &str) -> Result<bool, Failure> {
        unreachable!()
    }

    async fn record(&self, _: &EventRow) -> Result<(), Failure> {
        unreachable!()
    }

    async fn note_state(
        &self,
        _: &TopicPartition,
        _: Fence,
        _: &'static str,
        _: Option<&str>,
    ) -> Result<(), Failure> {
        unreachable!()
    }
}

#[async_trait]
impl Sink<Told> for Told {
    const KIND: &'static str = "told";
    type Config = ();

    async fn open((): (), _: &[String], (): &mut ()) -> Result<Self, SinkError> {
        unreachable!()
    }

    fn target(&self, topic: &str) -> String {
        topic.to_owned()
    }

    async fn write(&self, (): &mut (), _: &Batch) -> Result<Written, SinkError> {
        self.calls.note("write");
        if self.withdrawn_in_write {
            self.gate.withdraw();
        }
        Ok(Written::records(self.written))
    }
}

#[tokio::test]
async fn the_offsets_are_advanced_before_a_row_is_written() {
    let told = Told::well();
    let outcome = told.run().await;
    let Outcome::Committed(books) = outcome else { panic!("{outcome:?}") };
    assert_eq!(books.iter().map(|of_topic| of_topic.counts.records).sum::<usize>(), 2);
    assert_eq!(told.calls.all(), ["begin", "advance", "write", "guard", "commit"]);
}

#[tokio::test]
async fn dead_letters_are_kept_between_the_rows_and_the_guard_in_the_same_transaction() {
    let told = Told { bad: true, policy: OnBadRecord::DeadLetter, ..Told::well() };
    let outcome = told.run().await;
    let Outcome::Committed(books) = outcome else { panic!("{outcome:?}") };
    assert_eq!(told.calls.all(), ["begin", "advance", "write", "dead letters", "guard", "commit"]);
    assert_eq!((books[0].read, books[0].counts.records), (4, 2));
    assert_eq!(books[0].dead_lettered, [(Reason::Check, 2)].into());

    let told = Told { bad: true, policy: OnBadRecord::Skip, ..Told::well() };
    let outcome = told.run().await;
    let Outcome::Committed(books) = outcome else { panic!("{outcome:?}") };
    assert_eq!(told.calls.all(), ["begin", "advance", "write", "guard", "commit"]);
    assert_eq!((books[0].read, books[0].counts.records, books[0].counts.skipped), (4, 2, 2));
}

#[tokio::test]
async fn a_bad_record_is_not_passed_over_unless_it_is_kept() {
    let told = Told { bad: true, policy: OnBadRecord::DeadLetter, kept: false, ..Told::well() };
    let outcome = told.run().await;
    assert!(
        matches!(&outcome, Outcome::RolledBack(failure) if failure.class == Class::SickObject),
        "the refusal of our own table is no fault of a record: {outcome:?}"
    );
    assert_eq!(told.calls.all(), ["begin", "advance", "write", "dead letters", "rollback"]);

    let told = Told { bad: true, policy: OnBadRecord::Stop, ..Told::well() };
    let outcome = told.run().await;
    assert!(
        matches!(&outcome, Outcome::RolledBack(failure) if failure.class == Class::Fatal),
        "nothing is set aside under policy stop: {outcome:?}"
    );
    assert_eq!(told.calls.all().last(), Some(&"rollback"));
}

#[tokio::test]
async fn nothing_is_written_unless_every_offset_moved() {
    for matched in [vec![true, false], vec![false, true], vec![true]] {
        let told = Told { matched: matched.clone(), ..Told::well() };
        let outcome = told.run().await;
        assert!(matches!(&outcome, Outcome::NotMine(told) if *told == matched), "{outcome:?}");
        assert_eq!(told.calls.all(), ["begin", "advance", "rollback"]);
    }
}

#[tokio::test]
async fn a_transaction_that_the_guard_refuses_is_never_committed() {
    let told = Told { guarded: false, ..Told::well() };
    let outcome = told.run().await;
    assert!(matches!(&outcome, Outcome::RolledBack(failure) if failure.class == Class::Fatal), "{outcome:?}");
    assert_eq!(told.calls.all(), ["begin", "advance", "write", "guard", "rollback"]);
}

#[tokio::test]
async fn books_that_do_not_balance_are_not_committed() {
    for written in [1, 3] {
        let told = Told { written, ..Told::well() };
        let outcome = told.run().await;
        assert!(
            matches!(&outcome, Outcome::RolledBack(failure) if failure.class == Class::Fatal),
            "{outcome:?}"
        );
        assert_eq!(told.calls.all().last(), Some(&"rollback"));
    }
}

#[tokio::test]
async fn a_transaction_that_was_withdrawn_is_never_committed() {
    let told = Told { withdrawn_in_write: true, ..Told::well() };
    let outcome = told.run().await;
    assert!(matches!(outcome, Outcome::Withdrawn), "{outcome:?}");
    assert!(!told.calls.all().contains(&"commit"), "{:?}", told.calls.all());
}

#[tokio::test]
async fn a_commit_without_a_clear_answer_is_in_doubt_and_sent_once() {
    for commit in [Commit::InDoubt, Commit::Silence] {
        let told = Told { commit, ..Told::well() };
        let outcome = told.run().await;
        assert!(matches!(outcome, Outcome::InDoubt(..)), "{outcome:?}");
        assert_eq!(told.calls.all(), ["begin", "advance", "write", "guard", "commit"]);
    }
}
