//! The machine as a table, and under random sequences of events against a consumer and writers that keep the rules of librdkafka.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::error::{BadRecord, Reason};

fn place(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn fence(epoch: i64) -> Fence {
    Fence { epoch, token: Uuid::from_u128(epoch as u128) }
}

const START: Start = Start { offset: 5, leader_epoch: None };

fn assigned(partitions: i32) -> (Partitions, Vec<ClaimNumber>) {
    let mut machine = Partitions::new(2);
    let places = (0..partitions).map(place).collect();
    let effects = machine.step(Event::Assigned { places, tenure: Tenure(1) });
    let claims = effects
        .iter()
        .map(|effect| match effect {
            Effect::Claim { claim, attempts: 0, .. } => *claim,
            other => panic!("{other:?}"),
        })
        .collect();
    (machine, claims)
}

/// Partitions that run.
fn running(partitions: i32) -> (Partitions, Vec<ClaimNumber>) {
    let (mut machine, claims) = assigned(partitions);
    for (partition, claim) in claims.iter().enumerate() {
        let (place, claim) = (place(partition as i32), *claim);
        machine.step(Event::Claimed { place: place.clone(), claim, fence: fence(1), start: START });
        machine.step(Event::HandedOver { place: place.clone(), claim });
        machine.step(Event::Positioned { place, claim });
    }
    assert!(machine.iter().all(|(_, partition)| partition.state() == "running"));
    (machine, claims)
}

#[test]
fn a_partition_is_assigned_at_its_claims_offset_after_its_writer_acknowledged() {
    let (mut machine, claims) = assigned(1);
    let claim = claims[0];
    let effects = machine.step(Event::Claimed { place: place(0), claim, fence: fence(7), start: START });
    assert!(matches!(effects.as_slice(), [Effect::HandOver { start: START, .. }]), "{effects:?}");
    let effects = machine.step(Event::HandedOver { place: place(0), claim });
    assert!(
        matches!(effects.as_slice(), [Effect::Assign { start: START, tenure: Tenure(1), .. }]),
        "{effects:?}"
    );
    assert_eq!(machine.step(Event::HandedOver { place: place(0), claim }), [], "once");
}

#[test]
fn every_assignment_begins_where_its_own_claim_found_the_row() {
    let (mut machine, claims) = running(1);
    machine.step(Event::Stored { place: place(0), claim: claims[0], offset: 9, fence: fence(1) });
    machine.step(Event::Revoked(vec![place(0)]));
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    let effects = machine.step(Event::Assigned { places: vec![place(0)], tenure: Tenure(2) });
    let [Effect::Claim { claim, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let claim = *claim;
    // Meanwhile others stored up to 20.
    let start = Start { offset: 20, leader_epoch: Some(3) };
    let effects = machine.step(Event::Claimed { place: place(0), claim, fence: fence(4), start });
    assert!(
        matches!(effects.last(), Some(Effect::HandOver { start: told, fence: with, .. }) if (*told, *with) == (start, fence(4))),
        "{effects:?}"
    );
    let effects = machine.step(Event::HandedOver { place: place(0), claim });
    let [Effect::Assign { start: told, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(*told, start);
}

#[test]
fn partitions_are_spread_over_the_writers() {
    let (machine, _) = running(6);
    let mut loads = [0; 2];
    for (_, partition) in machine.iter() {
        let Life::Running { writer } = partition.life else { panic!() };
        loads[writer] += 1;
    }
    assert_eq!(loads, [3, 3]);
}

#[test]
fn what_an_older_claim_brings_is_dropped() {
    let (mut machine, claims) = running(1);
    machine.step(Event::Gone { place: place(0), claim: claims[0], why: Gone::NotMine });
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    let effects = machine.step(Event::Unassigned(vec![place(0)]));
    let [Effect::Claim { claim, attempts: 1, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_ne!(*claim, claims[0]);
    for old in [
        Event::Claimed { place: place(0), claim: claims[0], fence: fence(1), start: START },
        Event::HandedOver { place: place(0), claim: claims[0] },
        Event::Positioned { place: place(0), claim: claims[0] },
        Event::Gone { place: place(0), claim: claims[0], why: Gone::Sick },
        Event::Stored { place: place(0), claim: claims[0], offset: 99, fence: fence(1) },
        Event::Released { place: place(0), claim: claims[0] },
    ] {
        assert_eq!(machine.step(old.clone()), [], "{old:?}");
    }
    assert_eq!(machine.get(&place(0)).unwrap().stored, Some(5));
}

#[test]
fn fenced_is_claimed_again_and_never_given_up() {
    let (mut machine, mut claims) = running(1);
    for attempts in 1..20 {
        machine.step(Event::Tick(Duration::from_secs(6 * u64::from(attempts))));
        let effects = machine.step(Event::Gone { place: place(0), claim: claims[0], why: Gone::NotMine });
        assert!(matches!(effects.as_slice(), [Effect::Release { finish: false, .. }]), "{effects:?}");
        let effects = machine.step(Event::Released { place: place(0), claim: claims[0] });
        assert!(matches!(effects.as_slice(), [Effect::Unassign { .. }]), "{effects:?}");
        let effects = machine.step(Event::Unassigned(vec![place(0)]));
        let [Effect::Claim { claim, attempts: told, .. }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(*told, attempts);
        claims[0] = *claim;
        machine.step(Event::Claimed { place: place(0), claim: *claim, fence: fence(1), start: START });
    }
}

#[test]
fn a_revoke_is_answered_when_the_writers_have_let_go_of_exactly_its_partitions() {
    let (mut machine, claims) = running(3);
    let effects = machine.step(Event::Revoked(vec![place(1)]));
    assert!(
        matches!(effects.as_slice(), [Effect::Release { finish: false, .. }, Effect::AwaitRevoke]),
        "{effects:?}"
    );
    let effects = machine.step(Event::Released { place: place(1), claim: claims[1] });
    assert_eq!(effects, [Effect::AnswerRevoke { places: vec![place(1)] }]);
    assert_eq!(machine.iter().count(), 2);
    assert!(machine.iter().all(|(_, partition)| partition.state() == "running"), "the others are untouched");
}

#[test]
fn a_revoke_that_waited_long_enough_is_answered_without_its_writers() {
    let (mut machine, claims) = running(2);
    machine.step(Event::Revoked(vec![place(0), place(1)]));
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    let effects = machine.step(Event::RevokeOverdue);
    assert_eq!(effects, [Effect::AnswerRevoke { places: vec![place(0), place(1)] }]);
    assert_eq!(machine.step(Event::Released { place: place(1), claim: claims[1] }), []);
    assert_eq!(machine.iter().count(), 0);
}

#[test]
fn a_revoke_takes_partitions_out_of_the_pending_claim_and_is_answered_at_once() {
    let (mut machine, claims) = assigned(2);
    let effects = machine.step(Event::Revoked(vec![place(0)]));
    assert_eq!(effects, [Effect::AwaitRevoke, Effect::AnswerRevoke { places: vec![place(0)] }]);
    let late = Event::Claimed { place: place(0), claim: claims[0], fence: fence(1), start: START };
    assert_eq!(machine.step(late), []);
    assert!(!machine.is_current(&place(0), claims[0]) && machine.is_current(&place(1), claims[1]));
}

#[test]
fn lost_partitions_are_withdrawn_and_nothing_is_answered() {
    let (mut machine, _) = running(2);
    let effects = machine.step(Event::Lost(vec![place(0)]));
    assert!(matches!(effects.as_slice(), [Effect::Release { finish: false, .. }]), "{effects:?}");
    assert_eq!(machine.iter().count(), 1);
    let effects = machine.step(Event::ClientLost);
    assert!(matches!(effects.as_slice(), [Effect::Release { finish: false, .. }]), "{effects:?}");
}

#[test]
fn a_bad_record_halts_its_partition_and_a_word_from_outside_claims_it_again() {
    let (mut machine, claims) = running(1);
    let bad = BadRecord {
        place: place(0),
        offset: 5,
        reason: Reason::Rejected,
        message: "no".into(),
        sql_state: None,
        table: None,
        column: None,
    };
    machine.step(Event::Gone { place: place(0), claim: claims[0], why: Gone::Stopped(bad) });
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    let effects = machine.step(Event::Unassigned(vec![place(0)]));
    assert!(
        matches!(effects.as_slice(), [Effect::Halted { halt: Halt { bad_record: true, .. }, .. }]),
        "{effects:?}"
    );
    assert_eq!(machine.get(&place(0)).unwrap().state(), "stopped");
    let effects = machine.step(Event::OutsideWord(place(0)));
    assert!(matches!(effects.as_slice(), [Effect::Claim { attempts: 0, .. }]), "{effects:?}");
}

#[test]
fn a_record_delivered_past_its_writer_is_read_again_and_never_taken_for_a_gap() {
    let out = |machine: &mut Partitions, claim: ClaimNumber| {
        machine.step(Event::Released { place: place(0), claim });
        let effects = machine.step(Event::Unassigned(vec![place(0)]));
        let [Effect::Claim { claim, .. }] = effects.as_slice() else { panic!("{effects:?}") };
        *claim
    };
    let (mut machine, claims) = running(1);
    let below = Event::Stray { place: place(0), offset: START.offset - 1 };
    assert_eq!(machine.step(below), [], "a leftover of an earlier claim");

    let stray = Event::Stray { place: place(0), offset: START.offset };
    let effects = machine.step(stray.clone());
    assert!(matches!(effects.as_slice(), [Effect::Release { finish: false, .. }]), "{effects:?}");
    let claim = out(&mut machine, claims[0]);
    let claimed = |claim, offset| {
        let start = Start { offset, leader_epoch: None };
        Event::Claimed { place: place(0), claim, fence: fence(2), start }
    };
    let effects = machine.step(claimed(claim, START.offset));
    assert!(matches!(effects.as_slice(), [Effect::HandOver { .. }]), "it is read again: {effects:?}");

    machine.step(stray);
    let claim = out(&mut machine, claim);
    let effects = machine.step(claimed(claim, START.offset + 3));
    assert!(matches!(effects.as_slice(), [Effect::Halted { .. }]), "the row has passed it: {effects:?}");
}

#[test]
fn a_halt_wins_over_a_claim_that_was_decided_before_it() {
    let (mut machine, claims) = running(1);
    machine.step(Event::OutsideWord(place(0)));
    machine.step(Event::Halt { place: place(0), halt: Halt::stopped("created again") });
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    machine.step(Event::OutsideWord(place(0)));
    let effects = machine.step(Event::Unassigned(vec![place(0)]));
    assert!(matches!(effects.as_slice(), [Effect::Halted { .. }]), "{effects:?}");
}

#[test]
fn what_a_claim_brings_after_its_partition_halted_hides_no_word_from_outside() {
    let (mut machine, claims) = assigned(1);
    machine.learn(&place(0), claims[0], Found::Mine { fence: fence(1), offset: 10 });
    let halt = Halt::stopped("the topic was created again");
    machine.step(Event::Halt { place: place(0), halt });
    // A person resets, and the claim that was under way finds the row as the reset left it.
    assert!(!machine.is_current(&place(0), claims[0]));
    machine.learn(&place(0), claims[0], Found::Mine { fence: fence(3), offset: 0 });
    let effects =
        machine.step(Event::Claimed { place: place(0), claim: claims[0], fence: fence(3), start: START });
    assert_eq!(effects, []);
    // The look finds another fence than the last one known, and the word is heard.
    assert_eq!(machine.get(&place(0)).and_then(|partition| partition.seen), Some(fence(1)));
    let effects = machine.step(Event::OutsideWord(place(0)));
    assert!(matches!(effects.as_slice(), [Effect::Claim { .. }]), "{effects:?}");
}

#[test]
fn a_stop_finishes_transactions_and_ends_when_all_have_let_go() {
    let (mut machine, claims) = running(2);
    let effects = machine.step(Event::Shutdown);
    assert!(
        effects.iter().all(|effect| matches!(effect, Effect::Release { finish: true, .. })),
        "{effects:?}"
    );
    assert_eq!(machine.step(Event::Assigned { places: vec![place(2)], tenure: Tenure(2) }), []);
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    let overdue = machine.step(Event::DrainOverdue);
    assert!(matches!(overdue.as_slice(), [Effect::Release { finish: false, .. }]), "{overdue:?}");
    let effects = machine.step(Event::Released { place: place(1), claim: claims[1] });
    assert_eq!(effects, [Effect::Drained]);
    assert_eq!(Partitions::new(1).step(Event::Shutdown), [Effect::Drained], "nothing was open");
}

/// A revoke that comes while the sink ends takes its partitions along; nobody is left who could say that they have let go.
#[test]
fn a_stop_ends_when_its_last_partitions_are_revoked_and_their_writer_is_not_waited_for() {
    let (mut machine, claims) = running(1);
    machine.step(Event::Shutdown);
    let effects = machine.step(Event::Revoked(vec![place(0)]));
    assert!(
        matches!(effects.as_slice(), [Effect::Release { finish: false, .. }, Effect::AwaitRevoke]),
        "its transaction is withdrawn: {effects:?}"
    );
    let effects = machine.step(Event::RevokeOverdue);
    assert!(matches!(effects.as_slice(), [Effect::AnswerRevoke { .. }, Effect::Drained]), "{effects:?}");
    assert_eq!(machine.step(Event::Released { place: place(0), claim: claims[0] }), []);
}

#[test]
fn ten_minutes_without_progress_behind_a_damaged_batch_stop_a_partition_and_progress_counts_anew() {
    let minutes = |minutes: u64| Event::Tick(Duration::from_secs(60 * minutes));
    let broken = |claim| Event::Gone { place: place(0), claim, why: Gone::Broken(Break::Error) };
    let (mut machine, claims) = running(2);
    machine.step(minutes(1));
    machine.step(broken(claims[0]));
    assert_eq!(machine.step(minutes(10)), []);
    machine.step(Event::Stored { place: place(0), claim: claims[0], offset: 9, fence: fence(1) });
    assert_eq!(machine.step(minutes(11)), [], "it moved on meanwhile");
    machine.step(broken(claims[0]));
    machine.step(Event::Released { place: place(0), claim: claims[0] });
    machine.step(Event::Unassigned(vec![place(0)]));
    let effects = machine.step(minutes(21));
    let [Effect::Halted { place: stuck, halt }] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(*stuck == place(0) && halt.reason.contains("at offset 9 for 10 minutes"), "{halt:?}");
    assert_eq!(machine.step(minutes(40)), [], "once");
    assert_eq!(machine.get(&place(1)).map(Partition::state), Some("running"));
}

#[test]
fn more_than_ten_fences_within_a_minute_stop_a_partition_and_name_the_other_owner() {
    let fenced = |machine: &mut Partitions, seconds: u64| {
        machine.step(Event::Tick(Duration::from_secs(seconds)));
        let claim = machine.get(&place(0)).expect("here").claim;
        machine.step(Event::Gone { place: place(0), claim, why: Gone::NotMine });
        machine.step(Event::Released { place: place(0), claim });
        let effects = machine.step(Event::Unassigned(vec![place(0)]));
        let claim = machine.get(&place(0)).expect("here").claim;
        machine.step(Event::Claimed { place: place(0), claim, fence: fence(2), start: START });
        machine.name_other(&place(0), Some("elsewhere/7"));
        effects
    };
    let (mut machine, _) = running(1);
    // Once in six seconds is ten times a minute, which is no fight.
    for count in 0..30 {
        assert!(matches!(fenced(&mut machine, count * 6).as_slice(), [Effect::Claim { .. }]));
    }
    for count in 0..10 {
        assert!(matches!(fenced(&mut machine, 1000 + count).as_slice(), [Effect::Claim { .. }]));
    }
    let effects = fenced(&mut machine, 1011);
    let [Effect::Halted { halt, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(halt.reason.contains("by elsewhere/7"), "{halt:?}");
}

#[test]
fn what_a_claim_found_is_compared_with_later_looks_and_only_what_is_mine_is_written_to() {
    let (mut machine, claims) = assigned(3);
    machine.learn(&place(0), claims[0], Found::Others(Some(fence(8))));
    machine.learn(&place(1), claims[1], Found::Mine { fence: fence(3), offset: 100 });
    machine.learn(&place(2), ClaimNumber(99), Found::Mine { fence: fence(3), offset: 100 });
    let known =
        |partition| machine.get(&place(partition)).map(|known| (known.fence, known.seen, known.stored));
    assert_eq!(known(0), Some((None, Some(fence(8)), None)));
    assert_eq!(known(1), Some((Some(fence(3)), Some(fence(3)), Some(100))));
    assert_eq!(known(2), Some((None, None, None)), "of another claim");
}

/// A group, a consumer, claims and writers that answer in any order.
#[derive(Default)]
struct World {
    machine: Partitions,
    tenure: u64,
    epoch: i64,
    /// What the group gives us.
    ours: BTreeSet<i32>,
    /// What the consumer fetches, with the claim it was assigned under.
    fetching: BTreeMap<i32, ClaimNumber>,
    /// What a writer takes records for.
    taking: BTreeMap<i32, ClaimNumber>,
    pending: Vec<Event>,
    /// A revoke that the group waits for.
    revoke: Option<Vec<TopicPartition>>,
}

impl World {
    fn step(&mut self, event: Event) {
        for effect in self.machine.step(event) {
            match effect {
                Effect::Claim { place, claim, .. } => {
                    self.epoch += 1;
                    let (fence, start) = (fence(self.epoch), START);
                    self.pending.push(Event::Claimed { place, claim, fence, start });
                }
                Effect::HandOver { place, claim, .. } => {
                    assert!(
                        !self.fetching.contains_key(&place.partition),
                        "unassigned before a new start is handed over"
                    );
                    self.taking.insert(place.partition, claim);
                    self.pending.push(Event::HandedOver { place, claim });
                }
                Effect::Assign { place, claim, .. } => {
                    assert_eq!(
                        self.taking.get(&place.partition),
                        Some(&claim),
                        "its writer takes exactly this claim"
                    );
                    // The consumer refuses what the group has taken back.
                    if self.ours.contains(&place.partition) && self.revoke.is_none() {
                        assert!(!self.fetching.contains_key(&place.partition));
                        self.fetching.insert(place.partition, claim);
                        self.pending.push(Event::Positioned { place, claim });
                    } else {
                        self.pending.push(Event::NotPositioned { place, claim });
                    }
                }
                Effect::Release { place, claim, .. } => {
                    if self.taking.get(&place.partition) == Some(&claim) {
                        self.taking.remove(&place.partition);
                    }
                    self.pending.push(Event::Released { place, claim });
                }
                Effect::Unassign { place } => {
                    self.fetching.remove(&place.partition);
                    self.pending.push(Event::Unassigned(vec![place]));
                }
                Effect::AnswerRevoke { places } => {
                    let revoke = self.revoke.take();
                    assert_eq!(
                        revoke.as_ref(),
                        Some(&places),
                        "a revoke is answered once, with what it named"
                    );
                    for place in &places {
                        self.fetching.remove(&place.partition);
                    }
                    self.pending.push(Event::Unassigned(places));
                }
                Effect::AwaitRevoke | Effect::Halted { .. } | Effect::Drained => {}
            }
        }
    }

    fn assign(&mut self, partition: i32) {
        if self.revoke.is_none() && self.ours.insert(partition) {
            self.tenure += 1;
            self.step(Event::Assigned { places: vec![place(partition)], tenure: Tenure(self.tenure) });
        }
    }

    fn revoke(&mut self, partition: i32) {
        if self.revoke.is_none() && self.ours.remove(&partition) {
            self.revoke = Some(vec![place(partition)]);
            self.step(Event::Revoked(vec![place(partition)]));
        }
    }

    fn lose(&mut self, partition: i32) {
        if self.revoke.is_none() && self.ours.remove(&partition) {
            self.fetching.remove(&partition);
            self.step(Event::Lost(vec![place(partition)]));
        }
    }

    fn answer(&mut self, which: usize) {
        if !self.pending.is_empty() {
            let event = self.pending.remove(which % self.pending.len());
            self.step(event);
        }
    }

    fn gone(&mut self, partition: i32, how: u8) {
        let Some(claim) = self.taking.remove(&partition) else { return };
        let why = match how % 4 {
            0 => Gone::NotMine,
            1 => Gone::Sick,
            2 => Gone::Contended,
            _ => Gone::Broken(Break::Error),
        };
        self.step(Event::Gone { place: place(partition), claim, why });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Answers in any order, revokes, losses and troubles: every start is handed over unassigned and acknowledged first, every revoke is answered once, and
    /// in the end exactly what the group gives us flows.
    #[test]
    fn in_the_end_exactly_what_the_group_gives_us_flows(ops in prop::collection::vec((0u8..10, 0i32..3, 0u8..8), 1..100)) {
        let mut world = World { machine: Partitions::new(2), ..World::default() };
        for (op, partition, how) in ops {
            match op {
                0 | 1 => world.assign(partition),
                2 => world.revoke(partition),
                3 if how < 3 => world.lose(partition),
                4 => world.gone(partition, how),
                5 if how < 2 => world.step(Event::OutsideWord(place(partition))),
                6 if how < 2 && world.revoke.is_some() => world.step(Event::RevokeOverdue),
                _ => world.answer(usize::from(how)),
            }
        }
        for _ in 0..500 {
            world.answer(0);
        }
        prop_assert!(world.pending.is_empty() && world.revoke.is_none());
        let fetched: BTreeSet<i32> = world.fetching.keys().copied().collect();
        prop_assert_eq!(&fetched, &world.ours);
        prop_assert_eq!(&world.fetching, &world.taking);
        prop_assert!(world.machine.iter().all(|(_, partition)| partition.state() == "running"));
    }
}
