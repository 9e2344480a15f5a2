//! The table of inputs by state, and properties over random sequences of inputs.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::kafka::events::ClaimNumber;

const PATIENCE: Duration = Duration::from_secs(5);

fn places(partitions: impl IntoIterator<Item = i32>) -> Vec<TopicPartition> {
    partitions.into_iter().map(|partition| TopicPartition::new("t", partition)).collect()
}

fn start(partition: i32, tenure: u64) -> Start {
    let place = TopicPartition::new("t", partition);
    Start { place, tenure: Tenure(tenure), claim: ClaimNumber(0), offset: 0, leader_epoch: None, writer: 0 }
}

fn refusals(actions: &[Action]) -> Vec<i32> {
    let refused = |action: &Action| match action {
        Action::Send(Event::Refused { place, .. }) => Some(place.partition),
        _ => None,
    };
    actions.iter().filter_map(refused).collect()
}

/// A member with partitions 0 and 1 in tenure 1.
fn member(now: Instant) -> Membership {
    let mut member = Membership::new(PATIENCE);
    let actions = member.step(Input::Assigned(places(0..2)), now);
    let event = Event::Assigned { places: places(0..2), tenure: Tenure(1) };
    assert_eq!(actions, [Action::AnswerAssign, Action::Send(event)]);
    member
}

fn waiting(now: Instant) -> Membership {
    let mut member = member(now);
    let actions = member.step(Input::Revoked(places([1])), now);
    assert_eq!(actions, [Action::Send(Event::Revoked(places([1])))]);
    member
}

#[test]
fn an_assignment_of_nothing_is_answered_and_says_that_we_are_a_member() {
    let mut member = Membership::new(PATIENCE);
    let actions = member.step(Input::Assigned(Vec::new()), Instant::now());
    assert_eq!(actions, [Action::AnswerAssign, Action::Send(Event::Joined)]);
}

fn subscribe(member: &mut Membership, topic: &str, now: Instant) -> Vec<Action> {
    member.step(Input::Subscribe(vec![topic.to_owned()]), now)
}

#[test]
fn a_subscription_changes_at_once_unless_the_group_is_changing() {
    let now = Instant::now();
    let [one, two] = ["one", "two"].map(|topic| Action::Subscribe(vec![topic.to_owned()]));
    assert_eq!(subscribe(&mut Membership::new(PATIENCE), "one", now), [one]);
    // The last of several, when the revoke was answered.
    let mut waiting = waiting(now);
    assert_eq!(subscribe(&mut waiting, "one", now), []);
    assert_eq!(subscribe(&mut waiting, "two", now), []);
    let actions = waiting.step(Input::Unassign { places: places([1]), revoke: true }, now);
    assert_eq!(actions.last(), Some(&two));
    assert_eq!(waiting.step(Input::Tick, now), []);
}

#[test]
fn after_a_loss_a_subscription_waits_for_the_next_assignment_but_not_for_ever() {
    let now = Instant::now();
    let two = Action::Subscribe(vec!["two".to_owned()]);
    let mut lost = member(now);
    lost.step(Input::Lost(places(0..2)), now);
    assert_eq!(subscribe(&mut lost, "two", now), []);
    assert_eq!(lost.step(Input::Assigned(Vec::new()), now).last(), Some(&two));

    let mut alone = member(now);
    alone.step(Input::Lost(places(0..2)), now);
    subscribe(&mut alone, "two", now);
    assert_eq!(alone.step(Input::Tick, now + Duration::from_secs(29)), []);
    assert_eq!(alone.step(Input::Tick, now + SHAKEN_MAX), [two]);
}

#[test]
fn a_revoke_of_nothing_is_answered_at_once() {
    let mut member = Membership::new(PATIENCE);
    let actions = member.step(Input::Revoked(Vec::new()), Instant::now());
    assert_eq!(actions, [Action::AnswerRevoke(Vec::new())]);
    assert_eq!(member.deadline(), None);
}

#[test]
fn a_start_is_carried_out_in_its_tenure_only() {
    let now = Instant::now();
    let mut member = member(now);
    let actions = member.step(Input::Assign(vec![start(0, 1), start(1, 7), start(5, 1)]), now);
    assert_eq!(refusals(&actions), [1, 5]);
    assert_eq!(actions.last(), Some(&Action::Assign(vec![start(0, 1)])));
}

#[test]
fn commands_are_held_back_while_a_revoke_waits_and_keep_their_order() {
    let now = Instant::now();
    let mut member = waiting(now);
    assert_eq!(member.step(Input::Assign(vec![start(0, 1), start(1, 1)]), now), []);
    assert_eq!(member.step(Input::Unassign { places: places([0]), revoke: false }, now), []);
    let actions = member.step(Input::Unassign { places: places([1]), revoke: true }, now);
    assert_eq!(actions[0], Action::AnswerRevoke(places([1])));
    assert_eq!(actions[1], Action::Send(Event::Unassigned { places: places([1]) }));
    assert_eq!(refusals(&actions[2..3]), [1]);
    assert_eq!(actions[3], Action::Assign(vec![start(0, 1)]));
    assert_eq!(actions[4], Action::Unassign(places([0])));
}

#[test]
fn a_late_answer_to_one_revoke_does_not_answer_the_next() {
    let now = Instant::now();
    let mut member = waiting(now);
    let late = member.step(Input::Tick, now + PATIENCE);
    assert_eq!(late, [Action::AnswerRevoke(places([1])), Action::Send(Event::Lost(places([1])))]);
    member.step(Input::Revoked(places([0])), now);
    assert_eq!(member.step(Input::Unassign { places: places([1]), revoke: true }, now), []);
    let actions = member.step(Input::Unassign { places: places([0]), revoke: true }, now);
    assert_eq!(actions[0], Action::AnswerRevoke(places([0])));
}

#[test]
fn a_revoke_waits_for_its_deadline() {
    let now = Instant::now();
    let mut member = waiting(now);
    assert_eq!(member.deadline(), Some(now + PATIENCE));
    assert_eq!(member.step(Input::Tick, now + PATIENCE / 2), []);
    assert_eq!(member.step(Input::Tick, now + PATIENCE).len(), 2);
    assert_eq!(member.deadline(), None);
}

#[test]
fn a_start_from_before_a_loss_is_refused_after_a_new_assignment() {
    let now = Instant::now();
    let mut member = member(now);
    let actions = member.step(Input::Lost(places(0..2)), now);
    assert_eq!(actions, [Action::AnswerRevoke(places(0..2)), Action::Send(Event::Lost(places(0..2)))]);
    member.step(Input::Assigned(places(0..2)), now);
    let actions = member.step(Input::Assign(vec![start(0, 1), start(1, 2)]), now);
    assert_eq!(refusals(&actions), [0]);
    assert_eq!(actions.last(), Some(&Action::Assign(vec![start(1, 2)])));
}

#[derive(Clone, Debug)]
enum Move {
    Assigned(BTreeSet<i32>),
    Revoked(BTreeSet<i32>),
    Lost,
    Assign(i32, u64),
    Unassign(BTreeSet<i32>, bool),
    Wait,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let set = || proptest::collection::btree_set(0..4_i32, 0..4);
    let one = prop_oneof![
        set().prop_map(Move::Assigned),
        set().prop_map(Move::Revoked),
        Just(Move::Lost),
        (0..4_i32, 0..6_u64).prop_map(|(partition, tenure)| Move::Assign(partition, tenure)),
        (set(), any::<bool>()).prop_map(|(places, revoke)| Move::Unassign(places, revoke)),
        Just(Move::Wait),
    ];
    proptest::collection::vec(one, 0..40)
}

/// The group as it behaves: nothing new while a revoke waits, only what is held is revoked.
#[derive(Default)]
struct Group {
    held: BTreeSet<i32>,
    revoking: Option<BTreeSet<i32>>,
    answers: usize,
    asked: usize,
}

impl Group {
    fn check(&mut self, actions: &[Action], commands: &mut usize) {
        for action in actions {
            match action {
                Action::AnswerRevoke(answered) => {
                    self.answers += 1;
                    let revoked = self.revoking.take().unwrap_or_default();
                    let answered: BTreeSet<i32> = answered.iter().map(|place| place.partition).collect();
                    assert!(answered.is_superset(&revoked), "{answered:?} for {revoked:?}");
                    self.held = &self.held - &revoked;
                }
                Action::Assign(starts) => {
                    assert!(self.revoking.is_none(), "assigned while a revoke waits");
                    assert!(starts.iter().all(|start| self.held.contains(&start.place.partition)));
                    *commands -= starts.len();
                }
                Action::Unassign(_) => assert!(self.revoking.is_none(), "unassigned while a revoke waits"),
                Action::Send(Event::Refused { .. } | Event::Unassigned { .. }) => *commands -= 1,
                Action::AnswerAssign | Action::Send(_) | Action::Subscribe(_) => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn each_revoke_and_each_command_is_answered_once(moves in moves()) {
        let (mut member, mut group, mut now) = (Membership::new(PATIENCE), Group::default(), Instant::now());
        let mut commands = 0;
        for next in moves {
            let input = match next {
                Move::Assigned(new) if group.revoking.is_none() => {
                    let new: BTreeSet<i32> = &new - &group.held;
                    group.held.extend(&new);
                    Input::Assigned(places(new))
                }
                Move::Revoked(some) if group.revoking.is_none() => {
                    let some: BTreeSet<i32> = &some & &group.held;
                    group.asked += 1;
                    group.revoking = Some(some.clone());
                    Input::Revoked(places(some))
                }
                Move::Lost if group.revoking.is_none() => {
                    group.asked += 1;
                    group.revoking = Some(group.held.clone());
                    Input::Lost(places(group.held.clone()))
                }
                Move::Assign(partition, tenure) => {
                    commands += 1;
                    Input::Assign(vec![start(partition, tenure)])
                }
                Move::Unassign(some, revoke) => {
                    commands += 1;
                    Input::Unassign { places: places(some), revoke }
                }
                Move::Wait => {
                    now += PATIENCE;
                    Input::Tick
                }
                _ => continue,
            };
            let actions = member.step(input, now);
            group.check(&actions, &mut commands);
        }
        let actions = member.step(Input::Tick, now + PATIENCE);
        group.check(&actions, &mut commands);
        prop_assert_eq!(group.answers, group.asked);
        prop_assert_eq!(commands, 0);
        prop_assert!(group.revoking.is_none());
    }
}
