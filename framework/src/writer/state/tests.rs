//! The machine as a table, and under random sequences of events against a small database that keeps the fence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::batch::SliceBuilder;
use crate::error::{BadRecord, Reason};

fn place(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn fence(epoch: i64) -> Fence {
    Fence { epoch, token: Uuid::from_u128(epoch as u128) }
}

/// A part over records `from..to`, dense.
fn part(partition: i32, from: i64, to: i64) -> Part {
    let mut builder = SliceBuilder::new(place(partition), from);
    for offset in from..to {
        builder.push(offset, Some(offset), Some(0), None, Some(b"v"), []);
    }
    Part::whole(Arc::new(builder.build()))
}

/// A writer that holds partitions 0..n at offset 0 under claim n+1 and has taken `records` of each.
fn writer(partitions: i32, records: i64) -> Writer {
    writer_with(OnBadRecord::Stop, partitions, records)
}

fn writer_with(policy: OnBadRecord, partitions: i32, records: i64) -> Writer {
    let mut writer = Writer::new(policy);
    for partition in 0..partitions {
        let claim = ClaimNumber(partition as u64 + 1);
        writer.step(Event::HandedOver {
            place: place(partition),
            claim,
            fence: fence(1),
            start: 0,
            alone: false,
            waited: 0,
        });
        for offset in 0..records {
            assert_eq!(writer.take(&place(partition), offset), Taken::From(offset));
        }
    }
    writer
}

fn gathered(partitions: i32, records: i64) -> (Writer, Vec<Effect>) {
    gathered_with(OnBadRecord::Stop, partitions, records)
}

fn gathered_with(policy: OnBadRecord, partitions: i32, records: i64) -> (Writer, Vec<Effect>) {
    let mut writer = writer_with(policy, partitions, records);
    let parts = (0..partitions).map(|partition| part(partition, 0, records)).collect();
    let effects = writer.step(Event::Gathered { parts });
    (writer, effects)
}

fn claim(partition: i32) -> ClaimNumber {
    ClaimNumber(partition as u64 + 1)
}

fn bad(partition: i32, offset: i64) -> BadRecord {
    BadRecord {
        place: place(partition),
        offset,
        reason: Reason::Rejected,
        message: "no".into(),
        sql_state: None,
        table: None,
        column: None,
    }
}

fn description() -> BadDescription {
    describing(Reason::Check)
}

fn describing(reason: Reason) -> BadDescription {
    let (message, sql_state) = ("check".into(), Some("23514".into()));
    BadDescription { reason, message, sql_state, table: Some("t".into()), column: None }
}

/// Intervals of every run told, in order.
fn runs(effects: &[Effect]) -> Vec<Vec<(i32, i64, i64)>> {
    let interval = |part: &Part| (part.topic_partition().partition, part.interval().from, part.interval().to);
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Run { parts, .. } => Some(parts.iter().map(interval).collect()),
            _ => None,
        })
        .collect()
}

fn gone(effects: &[Effect]) -> Vec<(i32, Gone)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Report(Report::Gone { place, why, .. }) => Some((place.partition, why.clone())),
            _ => None,
        })
        .collect()
}

fn stored(effects: &[Effect]) -> Vec<(i32, i64)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Report(Report::Stored { place, offset, .. }) => Some((place.partition, *offset)),
            _ => None,
        })
        .collect()
}

fn acknowledged(effects: &[Effect], partition: i32) -> bool {
    let expected = Effect::AcknowledgeRelease { place: place(partition), claim: claim(partition) };
    effects.contains(&expected)
}

#[test]
fn records_are_taken_only_at_or_above_the_next_offset_of_a_partition_that_is_here() {
    let mut writer = writer(1, 3);
    assert_eq!(writer.take(&place(0), 2), Taken::Below);
    assert_eq!(writer.take(&place(0), 9), Taken::From(3));
    assert_eq!(writer.take(&place(7), 0), Taken::Unwanted);
    assert_eq!(writer.pass(&place(0), 10), Taken::Below);
    assert_eq!(writer.pass(&place(0), 12), Taken::From(10));
    writer.step(Event::Broken { place: place(0), why: Break::Error });
    assert_eq!(writer.take(&place(0), 12), Taken::Unwanted);
}

#[test]
fn an_end_of_partition_never_passes_over_records_that_were_not_taken() {
    // Records 3.. are behind an event that is no record: not taken, still to be read when the partition comes back.
    let mut broken = writer(1, 3);
    broken.step(Event::Broken { place: place(0), why: Break::Error });
    assert_eq!(broken.take(&place(0), 3), Taken::Unwanted);
    assert_eq!(broken.pass(&place(0), 10), Taken::Unwanted);
    // Taken and queued ones are within the slice that the end closes.
    let mut queued = writer(1, 3);
    assert_eq!(queued.pass(&place(0), 10), Taken::From(3));
    assert_eq!(queued.take(&place(0), 5), Taken::Below);
}

#[test]
fn records_before_a_damaged_batch_are_stored_before_its_partition_leaves() {
    let (mut writer, _) = gathered(2, 2);
    assert_eq!(writer.take(&place(0), 2), Taken::From(2), "taken, and not yet gathered");
    let broken = |why| Event::Broken { place: place(0), why };
    assert_eq!(writer.step(broken(Break::Error)), []);
    assert_eq!(gone(&writer.step(Event::Committed)), []);
    writer.step(Event::Gathered { parts: vec![part(0, 2, 3)] });
    let effects = writer.step(Event::Committed);
    assert_eq!((stored(&effects), gone(&effects)), (vec![(0, 3)], vec![(0, Gone::Broken(Break::Error))]));

    let (mut writer, _) = gathered(1, 2);
    let effects = writer.step(broken(Break::Truncated));
    assert_eq!(
        gone(&effects),
        [(0, Gone::Broken(Break::Truncated))],
        "what was read of another log is dropped"
    );
    assert_eq!(gone(&writer.step(Event::Committed)), [], "once");
}

#[test]
fn one_run_carries_all_partitions_and_a_commit_stores_each() {
    let (mut writer, effects) = gathered(3, 2);
    assert_eq!(runs(&effects), [[(0, 0, 2), (1, 0, 2), (2, 0, 2)]]);
    let effects = writer.step(Event::Committed);
    assert_eq!(stored(&effects), [(0, 2), (1, 2), (2, 2)]);
    assert!(writer.is_idle());
}

#[test]
fn a_partition_that_is_not_mine_leaves_and_the_rest_runs_again_as_a_new_transaction() {
    let (mut writer, _) = gathered(3, 2);
    let effects = writer.step(Event::NotMine { matched: vec![true, false, true] });
    assert_eq!(gone(&effects), [(1, Gone::NotMine)]);
    assert_eq!(runs(&effects), [[(0, 0, 2), (2, 0, 2)]]);
    assert_eq!(writer.take(&place(1), 2), Taken::Unwanted);
}

#[test]
fn a_contended_partition_leaves_and_a_lock_that_is_free_by_now_is_tried_again() {
    let (mut writer, _) = gathered(3, 2);
    let effects = writer.step(Event::Contended { locked: vec![place(2)] });
    assert_eq!(gone(&effects), [(2, Gone::Contended)]);
    assert_eq!(runs(&effects), [[(0, 0, 2), (1, 0, 2)]]);
    let effects = writer.step(Event::Contended { locked: vec![] });
    assert_eq!(effects, [Effect::BackOff { attempts: 1 }]);
}

#[test]
fn transient_failures_wait_and_run_the_identical_parts() {
    let (mut writer, first) = gathered(2, 2);
    for attempts in 1..4 {
        let effects = writer.step(Event::RolledBack { class: Class::Transient });
        assert_eq!(effects, [Effect::BackOff { attempts }]);
        let again = writer.step(Event::BackedOff);
        assert_eq!(again, first);
    }
}

#[test]
fn in_doubt_is_settled_before_anything_runs_and_the_parts_still_mine_decide() {
    let table = [
        // verdict of partition 0, of partition 1: stored, gone, runs
        (mine(2), mine(2), vec![(0, 2), (1, 2)], vec![], vec![]),
        (mine(0), mine(0), vec![], vec![], vec![vec![(0, 0, 2), (1, 0, 2)]]),
        (Settled::Fenced, mine(2), vec![(1, 2)], vec![(0, Gone::NotMine)], vec![]),
        (Settled::Fenced, mine(0), vec![], vec![(0, Gone::NotMine)], vec![vec![(1, 0, 2)]]),
        (Settled::Fenced, Settled::Fenced, vec![], vec![(0, Gone::NotMine), (1, Gone::NotMine)], vec![]),
        // They disagree: neither is believed.
        (mine(2), mine(0), vec![], vec![(0, Gone::Odd { found: 2 }), (1, Gone::Odd { found: 0 })], vec![]),
        (mine(7), mine(7), vec![], vec![(0, Gone::Odd { found: 7 }), (1, Gone::Odd { found: 7 })], vec![]),
        (
            mine(-1),
            mine(-1),
            vec![],
            vec![(0, Gone::Rewound { found: -1 }), (1, Gone::Rewound { found: -1 })],
            vec![],
        ),
        // A failover took an earlier transaction of one of them with it: the other one stands where it began.
        (mine(-1), mine(0), vec![], vec![(0, Gone::Rewound { found: -1 })], vec![vec![(1, 0, 2)]]),
    ];
    let verdicts = [
        Verdict::Applied,
        Verdict::NotApplied,
        Verdict::Applied,
        Verdict::NotApplied,
        Verdict::Fenced,
        Verdict::Rewound,
        Verdict::Rewound,
        Verdict::Rewound,
        Verdict::Rewound,
    ];
    assert_eq!(table.len(), verdicts.len());
    for ((first, second, expect_stored, expect_gone, expect_runs), verdict) in table.into_iter().zip(verdicts)
    {
        let (mut writer, _) = gathered(2, 2);
        let effects = writer.step(Event::InDoubt);
        assert!(matches!(effects.as_slice(), [Effect::Settle { steps }] if steps.len() == 2), "{effects:?}");
        let effects = writer.step(Event::Settled { verdicts: vec![first, second] });
        assert_eq!(stored(&effects), expect_stored, "{first:?} {second:?}");
        assert_eq!(gone(&effects), expect_gone, "{first:?} {second:?}");
        assert_eq!(runs(&effects), expect_runs, "{first:?} {second:?}");
        assert!(effects.contains(&Effect::Verdict(verdict)), "{first:?} {second:?}: {effects:?}");
    }
}

fn mine(offset: i64) -> Settled {
    Settled::Mine { offset, fence: fence(2) }
}

#[test]
fn a_settle_that_fails_is_tried_again_and_its_fence_is_carried_from_then_on() {
    let (mut writer, _) = gathered(1, 2);
    writer.step(Event::InDoubt);
    assert_eq!(writer.step(Event::SettleFailed), [Effect::BackOff { attempts: 1 }]);
    assert!(matches!(writer.step(Event::BackedOff).as_slice(), [Effect::Settle { .. }]));
    let effects = writer.step(Event::Settled { verdicts: vec![mine(0)] });
    let refenced = Report::Refenced { place: place(0), claim: claim(0), fence: fence(2) };
    assert!(effects.contains(&Effect::Report(refenced)), "{effects:?}");
    let [.., Effect::Run { steps, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(steps[0].fence, fence(2));
    writer.step(Event::Committed);
    writer.take(&place(0), 2);
    let effects = writer.step(Event::Gathered { parts: vec![part(0, 2, 3)] });
    let [Effect::Run { steps, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(steps[0].fence, fence(2));
}

#[test]
fn not_applied_three_times_running_is_tried_apart() {
    let (mut writer, _) = gathered(2, 2);
    for _ in 0..2 {
        writer.step(Event::InDoubt);
        let effects = writer.step(Event::Settled { verdicts: vec![mine(0), mine(0)] });
        assert_eq!(runs(&effects), [[(0, 0, 2), (1, 0, 2)]]);
    }
    writer.step(Event::InDoubt);
    let effects = writer.step(Event::Settled { verdicts: vec![mine(0), mine(0)] });
    assert_eq!(runs(&effects), [[(0, 0, 2)]]);
}

#[test]
fn what_runs_out_of_time_again_is_tried_in_halves_in_order_down_to_a_record() {
    let (mut writer, _) = gathered(1, 4);
    let mut overdue = || {
        let effects = writer.step(Event::RolledBack { class: Class::Timeout });
        assert!(matches!(effects.as_slice(), [Effect::BackOff { .. }]), "{effects:?}");
        runs(&writer.step(Event::BackedOff))
    };
    assert_eq!(overdue(), [[(0, 0, 4)]], "once is chance");
    assert_eq!(overdue(), [[(0, 0, 2)]]);
    assert_eq!(overdue(), [[(0, 0, 1)]]);
    assert_eq!(overdue(), [[(0, 0, 1)]], "nothing is left to be split");
    assert_eq!(runs(&writer.step(Event::Committed)), [[(0, 1, 2)]]);
    assert_eq!(runs(&writer.step(Event::Committed)), [[(0, 2, 4)]]);
    assert_eq!(stored(&writer.step(Event::Committed)), [(0, 4)]);
    assert!(writer.is_idle());
}

#[test]
fn a_known_bad_record_stops_its_partition_right_before_it_and_others_go_on() {
    let (mut writer, _) = gathered(2, 5);
    // The catalog is read once more before a record is called bad.
    let effects = writer.step(Event::Bad { records: vec![bad(1, 3)] });
    assert_eq!(effects.first(), Some(&Effect::Reread));
    let effects = writer.step(Event::Bad { records: vec![bad(1, 4), bad(1, 3)] });
    assert_eq!(runs(&effects), [[(0, 0, 5), (1, 0, 3)]]);
    let effects = writer.step(Event::Committed);
    assert_eq!(stored(&effects), [(0, 5), (1, 3)]);
    assert_eq!(gone(&effects), [(1, Gone::Stopped(bad(1, 3)))]);
    assert_eq!(writer.take(&place(1), 5), Taken::Unwanted);
}

#[test]
fn a_bad_record_without_coordinates_is_found_by_prefix_on_top_of_everything_before_it() {
    let (mut writer, first) = gathered(1, 8);
    writer.step(Event::BadSomewhere { description: description() });
    let mut told = runs(&first);
    let mut committed = 0;
    let mut transactions = 0;
    // The server refuses every run that holds offset 5.
    loop {
        let (_, from, to) = told.last().unwrap()[0];
        assert_eq!(from, committed, "nothing runs beyond an undecided record");
        let event = if (from..to).contains(&5) {
            Event::BadSomewhere { description: description() }
        } else {
            Event::Committed
        };
        if matches!(event, Event::Committed) {
            committed = to;
        }
        let effects = writer.step(event);
        transactions += 1;
        if let [(0, Gone::Stopped(found))] = gone(&effects).as_slice() {
            assert_eq!((found.offset, found.reason), (5, Reason::Check));
            break;
        }
        told = runs(&effects);
    }
    assert_eq!(committed, 5);
    assert!(transactions <= 8, "{transactions}");
    assert!(writer.is_idle());
}

#[test]
fn sick_partitions_run_apart_until_the_sick_one_stands_alone() {
    let (mut writer, _) = gathered(4, 1);
    let effects = writer.step(Event::RolledBack { class: Class::SickObject });
    assert_eq!(runs(&effects), [[(0, 0, 1), (1, 0, 1)]]);
    let effects = writer.step(Event::Committed);
    assert_eq!(runs(&effects), [[(2, 0, 1), (3, 0, 1)]]);
    let effects = writer.step(Event::RolledBack { class: Class::SickObject });
    assert_eq!(runs(&effects), [[(2, 0, 1)]]);
    let effects = writer.step(Event::RolledBack { class: Class::SickObject });
    assert_eq!(gone(&effects), [(2, Gone::Sick)]);
    assert_eq!(runs(&effects), [[(3, 0, 1)]]);
    writer.step(Event::Committed);
    assert!(writer.is_idle());
}

#[test]
fn a_release_waits_for_the_transaction_and_withdraws_it_unless_it_is_to_be_finished() {
    let (mut writer, _) = gathered(2, 2);
    let release = |finish| Event::Released { place: place(0), claim: claim(0), finish };
    let effects = writer.clone().step(release(true));
    assert!(!effects.contains(&Effect::Withdraw) && !acknowledged(&effects, 0), "{effects:?}");
    let effects = writer.step(release(false));
    assert!(effects.contains(&Effect::Withdraw) && !acknowledged(&effects, 0), "{effects:?}");
    let mut committed = writer.clone();
    let effects = writer.step(Event::Withdrawn);
    assert!(acknowledged(&effects, 0), "{effects:?}");
    assert_eq!(runs(&effects), [[(1, 0, 2)]], "the shared transaction runs again without it");
    // COMMIT had been sent: it counts for both.
    let effects = committed.step(Event::Committed);
    assert!(acknowledged(&effects, 0) && stored(&effects) == [(0, 2), (1, 2)], "{effects:?}");
    assert!(committed.is_idle());
}

#[test]
fn a_release_outside_a_transaction_is_acknowledged_at_once() {
    let release = Event::Released { place: place(0), claim: claim(0), finish: false };
    let (mut waiting, _) = gathered(1, 2);
    waiting.step(Event::RolledBack { class: Class::Transient });
    assert!(acknowledged(&waiting.step(release.clone()), 0));
    assert_eq!(waiting.step(Event::BackedOff), []);
    assert!(waiting.is_idle());

    // In doubt: the next owner's claim finds out.
    let (mut doubtful, _) = gathered(2, 2);
    doubtful.step(Event::InDoubt);
    assert!(acknowledged(&doubtful.step(release.clone()), 0));
    let effects = doubtful.step(Event::Settled { verdicts: vec![mine(0), mine(2)] });
    assert_eq!(stored(&effects), [(1, 2)], "its verdict does not count");

    let mut idle = writer(1, 1);
    let effects = idle.step(release);
    assert!(acknowledged(&effects, 0) && effects.contains(&Effect::Discard { place: place(0) }));
}

#[test]
fn an_outcome_of_an_earlier_claim_does_not_touch_the_partition_that_came_back() {
    let (mut writer, _) = gathered(1, 2);
    writer.step(Event::Released { place: place(0), claim: claim(0), finish: false });
    let again = ClaimNumber(9);
    writer.step(Event::HandedOver {
        place: place(0),
        claim: again,
        fence: fence(5),
        start: 0,
        alone: false,
        waited: 0,
    });
    let effects = writer.step(Event::NotMine { matched: vec![false] });
    assert_eq!(gone(&effects), [], "it was released");
    assert_eq!(writer.take(&place(0), 0), Taken::From(0));
    let effects = writer.step(Event::Gathered { parts: vec![part(0, 0, 1)] });
    let [Effect::Run { steps, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(steps[0].fence, fence(5));
}

mod bad;

/// What the property drives: the machine, its loop's buffers, and a database that keeps epoch, token and offset.
#[derive(Default)]
struct World {
    writer: Writer,
    claims: u64,
    epochs: i64,
    rows: BTreeMap<i32, Row>,
    held: BTreeMap<i32, ClaimNumber>,
    gathering: BTreeMap<i32, SliceBuilder>,
    /// Next offset that the queue delivers, by partition.
    queue: BTreeMap<i32, i64>,
    running: Option<(Vec<Part>, Vec<Step>)>,
    settling: Option<Vec<Step>>,
    waiting: bool,
    /// Fence that the present settle writes.
    settle_fence: i64,
    policy: OnBadRecord,
    /// Records below have waited for the rows that they refer to, by partition.
    waited: BTreeMap<i32, i64>,
    /// How often each record was set aside in a committed transaction.
    aside: BTreeMap<(i32, i64), u32>,
}

#[derive(Clone, Copy, Default)]
struct Row {
    epoch: i64,
    offset: i64,
}

const LOG: i64 = 40;
/// Offsets that carry no record: control records.
fn is_control(offset: i64) -> bool {
    offset % 7 == 6
}

/// What is wrong with a record, under a policy that goes on behind it; under stop there is one bad record only.
fn fault(policy: OnBadRecord, partition: i32, offset: i64) -> Option<Reason> {
    match (partition, offset) {
        (1, 33) => Some(Reason::Check),
        _ if policy == OnBadRecord::Stop => None,
        (0, 0 | 39) | (1, 3 | 4 | 34) => Some(Reason::Unique),
        (2, 20 | 21) => Some(Reason::ForeignKey),
        _ => None,
    }
}

impl World {
    fn new(policy: OnBadRecord) -> Self {
        let mut world = Self { writer: Writer::new(policy), policy, ..Self::default() };
        (0..3).for_each(|partition| world.hand_over(partition));
        world
    }

    fn step(&mut self, event: Event) {
        for effect in self.writer.step(event) {
            match effect {
                Effect::Discard { place } => drop(self.gathering.remove(&place.partition)),
                Effect::Run { parts, steps } => {
                    assert!(self.running.is_none() && self.settling.is_none(), "one transaction at a time");
                    self.running = Some((parts, steps));
                    self.waiting = false;
                }
                Effect::Settle { steps } => {
                    assert!(self.running.is_none(), "settled before anything runs");
                    self.settling = Some(steps);
                    self.waiting = false;
                }
                Effect::BackOff { .. } => self.waiting = true,
                Effect::Report(Report::Gone { place, claim, why: Gone::Orphan { bad, read } }) => {
                    let waited = self.waited.entry(place.partition).or_default();
                    assert!(bad.offset >= *waited, "{bad} waits twice");
                    *waited = read;
                    if self.held.get(&place.partition) == Some(&claim) {
                        self.held.remove(&place.partition);
                    }
                }
                Effect::Report(Report::Gone { place, claim, .. })
                    if self.held.get(&place.partition) == Some(&claim) =>
                {
                    self.held.remove(&place.partition);
                }
                Effect::Report(Report::Stored { place, offset, .. }) => {
                    let row = self.rows.entry(place.partition).or_default();
                    assert!(offset <= row.offset, "{place}: {offset} believed, {} stored", row.offset);
                }
                _ => {}
            }
        }
    }

    fn hand_over(&mut self, partition: i32) {
        if let Some(claim) = self.held.remove(&partition) {
            self.step(Event::Released { place: place(partition), claim, finish: false });
        }
        self.claims += 1;
        self.epochs += 1;
        let row = self.rows.entry(partition).or_default();
        row.epoch = self.epochs;
        let (claim, start) = (ClaimNumber(self.claims), row.offset);
        self.queue.insert(partition, start);
        self.held.insert(partition, claim);
        let fence = fence(self.epochs);
        self.step(Event::HandedOver {
            place: place(partition),
            claim,
            fence,
            start,
            alone: self.claims.is_multiple_of(5),
            waited: self.waited.get(&partition).copied().unwrap_or(0),
        });
    }

    /// Another owner claims: the row is not ours any more.
    fn fenced(&mut self, partition: i32) {
        self.epochs += 1;
        self.rows.entry(partition).or_default().epoch = self.epochs;
    }

    fn pop(&mut self, partition: i32, count: i64) {
        for _ in 0..count {
            let Some(offset) = self.queue.get_mut(&partition).filter(|offset| **offset < LOG) else { return };
            let at = *offset;
            *offset += 1;
            let place = place(partition);
            if is_control(at) {
                if let Taken::From(from) = self.writer.pass(&place, at + 1) {
                    let builder =
                        self.gathering.entry(partition).or_insert_with(|| SliceBuilder::new(place, from));
                    builder.pass_to(at + 1);
                }
            } else if let Taken::From(from) = self.writer.take(&place, at) {
                let builder =
                    self.gathering.entry(partition).or_insert_with(|| SliceBuilder::new(place, from));
                builder.push(at, None, None, None, Some(b"v"), []);
            }
        }
    }

    fn gather(&mut self) {
        if self.writer.is_idle() && !self.gathering.is_empty() {
            let parts = std::mem::take(&mut self.gathering)
                .into_values()
                .map(|builder| Part::whole(Arc::new(builder.build())));
            let parts = parts.collect();
            self.step(Event::Gathered { parts });
        }
    }

    /// Runs the transaction in the database; `how` decides what becomes of its answer.
    fn transact(&mut self, how: u8) {
        let Some((parts, steps)) = self.running.take() else { return };
        let matched: Vec<bool> = steps
            .iter()
            .map(|step| {
                let row = self.rows.entry(step.place.partition).or_default();
                row.epoch == step.fence.epoch && row.offset == step.interval.from
            })
            .collect();
        let refused: Vec<BadRecord> = parts
            .iter()
            .flat_map(Part::records)
            .filter_map(|record| {
                let (partition, offset) = (record.partition(), record.offset());
                Some(BadRecord { reason: fault(self.policy, partition, offset)?, ..bad(partition, offset) })
            })
            .collect();
        match how % 8 {
            1 => return self.step(Event::RolledBack { class: Class::Transient }),
            2 => return self.step(Event::RolledBack { class: Class::SickObject }),
            7 if how > 8 => return self.step(Event::RolledBack { class: Class::Timeout }),
            3 => return self.step(Event::InDoubt),
            4 => return self.step(Event::Withdrawn),
            _ => {}
        }
        if matched.contains(&false) {
            return self.step(Event::NotMine { matched });
        }
        if let Some(first) = refused.first() {
            let event = if how.is_multiple_of(2) {
                Event::BadSomewhere { description: describing(first.reason) }
            } else {
                Event::Bad { records: refused }
            };
            return self.step(event);
        }
        for (part, step) in parts.iter().zip(&steps) {
            let interval = step.interval;
            let expected: Vec<i64> =
                (interval.from..interval.to).filter(|offset| !is_control(*offset)).collect();
            let partition = step.place.partition;
            let written: BTreeSet<i64> = part.records().map(|record| record.offset()).collect();
            let aside: BTreeSet<i64> = part.bad_records().map(|(record, _)| record.offset()).collect();
            let is_bad = |offset: &i64| fault(self.policy, partition, *offset).is_some();
            assert!(aside.iter().all(is_bad), "a good record is set aside: {part:?}");
            assert!(!written.iter().any(is_bad), "a bad record is written: {part:?}");
            let all: Vec<i64> = written.union(&aside).copied().collect();
            assert_eq!(all, expected, "each record of exactly the offsets passed over");
            for offset in aside {
                *self.aside.entry((partition, offset)).or_default() += 1;
            }
            self.rows.entry(step.place.partition).or_default().offset = interval.to;
        }
        self.step(if how % 8 == 5 { Event::InDoubt } else { Event::Committed });
    }

    fn settle(&mut self, fails: bool) {
        let Some(steps) = self.settling.take() else { return };
        if self.settle_fence == 0 {
            self.epochs += 1;
            self.settle_fence = self.epochs;
        }
        let new = self.settle_fence;
        let mut verdicts = Vec::new();
        for step in &steps {
            let row = self.rows.entry(step.place.partition).or_default();
            if row.epoch == step.fence.epoch || row.epoch == new {
                row.epoch = new;
                verdicts.push(Settled::Mine { offset: row.offset, fence: fence(new) });
            } else {
                verdicts.push(Settled::Fenced);
            }
        }
        // A settle may be applied and its answer lost: the next attempt writes the same fence.
        if fails {
            return self.step(Event::SettleFailed);
        }
        self.settle_fence = 0;
        self.step(Event::Settled { verdicts });
    }

    fn go_on(&mut self) {
        if std::mem::take(&mut self.waiting) {
            self.step(Event::BackedOff);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: no record is written twice or left out, nothing is believed that is not stored; and when the faults end, everything
    /// up to the one bad record arrives, or everything, with each bad record set aside once and no other.
    #[test]
    fn random_sequences_neither_lose_nor_double(
        policy in prop_oneof![Just(OnBadRecord::Stop), Just(OnBadRecord::DeadLetter), Just(OnBadRecord::Skip)],
        ops in prop::collection::vec((0u8..12, 0i32..3, 0u8..16), 1..120),
    ) {
        let mut world = World::new(policy);
        for (op, partition, how) in ops {
            match op {
                0..=3 => world.pop(partition, i64::from(how % 5) + 1),
                4 | 5 => world.gather(),
                6 | 7 => world.transact(how),
                8 => world.settle(how % 3 == 0),
                9 => world.go_on(),
                10 if how < 6 => world.fenced(partition),
                10 => world.hand_over(partition),
                _ if how < 3 => world.step(Event::Broken { place: place(partition), why: Break::Error }),
                _ => {
                    if let Some(claim) = world.held.remove(&partition) {
                        world.step(Event::Released { place: place(partition), claim, finish: how % 2 == 0 });
                    }
                }
            }
        }
        // The faults end.
        for _ in 0..2_000 {
            for partition in 0..3 {
                if !world.held.contains_key(&partition) && world.rows[&partition].offset < LOG {
                    world.hand_over(partition);
                }
                world.pop(partition, 3);
            }
            world.gather();
            world.transact(0);
            world.settle(false);
            world.go_on();
        }
        let ends = [0, 1, 2].map(|partition| world.rows[&partition].offset);
        prop_assert_eq!(ends, [LOG, if policy == OnBadRecord::Stop { 33 } else { LOG }, LOG]);
        let all = (0..3).flat_map(|partition| (0..LOG).map(move |offset| (partition, offset)));
        let bad = all.filter(|(_, offset)| !is_control(*offset)).filter(|(partition, offset)| fault(policy, *partition, *offset).is_some());
        let expected: BTreeMap<(i32, i64), u32> = match policy {
            OnBadRecord::Stop => BTreeMap::new(),
            _ => bad.map(|place| (place, 1)).collect(),
        };
        prop_assert_eq!(world.aside, expected);
    }
}
