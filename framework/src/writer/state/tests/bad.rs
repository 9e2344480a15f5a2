//! Bad records under the policies that go on behind them.

use super::*;

/// What a server that refuses these records makes of everything that the writer runs: transactions, and what was written and set aside.
#[derive(Default)]
struct Served {
    transactions: usize,
    refused: usize,
    written: Vec<(i32, i64)>,
    aside: Vec<(i32, i64, Reason)>,
    gone: Vec<(i32, Gone)>,
}

/// Runs to the end of what was gathered. The server refuses each run that holds one of `bad`, and does not say which.
fn serve(writer: &mut Writer, mut effects: Vec<Effect>, bad: &[(i32, i64)]) -> Served {
    let mut served = Served::default();
    loop {
        served.gone.extend(gone(&effects));
        let run = effects.into_iter().find_map(|effect| match effect {
            Effect::Run { parts, .. } => Some(parts),
            _ => None,
        });
        let Some(parts) = run else { return served };
        served.transactions += 1;
        let held = |record: &crate::record::Record<'_>| (record.partition(), record.offset());
        if parts.iter().flat_map(Part::records).any(|record| bad.contains(&held(&record))) {
            served.refused += 1;
            effects = writer.step(Event::BadSomewhere { description: description() });
            continue;
        }
        served.written.extend(parts.iter().flat_map(Part::records).map(|record| held(&record)));
        for (record, bad) in parts.iter().flat_map(Part::bad_records) {
            served.aside.push((record.partition(), record.offset(), bad.reason));
        }
        effects = writer.step(Event::Committed);
    }
}

fn aside(effects: &[Effect]) -> Vec<(i32, i64)> {
    let parts = effects.iter().filter_map(|effect| match effect {
        Effect::Run { parts, .. } => Some(parts),
        _ => None,
    });
    let bad = parts.flatten().flat_map(Part::bad_records);
    bad.map(|(record, _)| (record.partition(), record.offset())).collect()
}

#[test]
fn known_bad_records_are_set_aside_and_everything_else_runs_in_one_transaction() {
    for policy in [OnBadRecord::DeadLetter, OnBadRecord::Skip] {
        let (mut writer, _) = gathered_with(policy, 2, 5);
        let records = vec![bad(1, 4), bad(1, 0), bad(0, 2)];
        let effects = writer.step(Event::Bad { records: records.clone() });
        assert_eq!(effects.first(), Some(&Effect::Reread), "the catalog is read once more");
        assert_eq!(aside(&effects), []);
        let effects = writer.step(Event::Bad { records });
        assert_eq!(runs(&effects), [[(0, 0, 5), (1, 0, 5)]]);
        assert_eq!(aside(&effects), [(0, 2), (1, 0), (1, 4)]);
        let effects = writer.step(Event::Committed);
        assert_eq!((stored(&effects), gone(&effects)), (vec![(0, 5), (1, 5)], vec![]));
        assert!(writer.is_idle());
        assert_eq!(writer.take(&place(1), 5), Taken::From(5), "it flows on");
    }
}

#[test]
fn a_record_that_the_server_refuses_by_itself_is_set_aside_and_what_is_behind_it_goes_on() {
    let (mut writer, effects) = gathered_with(OnBadRecord::DeadLetter, 2, 8);
    let served = serve(&mut writer, effects, &[(1, 5)]);
    assert_eq!(served.aside, [(1, 5, Reason::Check)]);
    let expected: Vec<(i32, i64)> =
        (0..2).flat_map(|p| (0..8).map(move |o| (p, o))).filter(|at| *at != (1, 5)).collect();
    assert_eq!(served.written, expected, "in order, each once");
    assert_eq!(served.gone, []);
    assert!(writer.is_idle());
    assert!(served.transactions <= 12, "{}", served.transactions);
}

#[test]
fn bad_records_that_only_the_server_finds_cost_about_their_number_times_the_batchs_logarithm() {
    let (mut writer, effects) = gathered_with(OnBadRecord::DeadLetter, 1, 10_000);
    let bad: Vec<(i32, i64)> = (0..100).map(|nth| (0, nth * 97 + nth % 7)).collect();
    let served = serve(&mut writer, effects, &bad);
    assert_eq!(served.aside.iter().map(|(p, o, _)| (*p, *o)).collect::<Vec<_>>(), bad);
    assert_eq!(served.written.len(), 9_900);
    // 100 * log2(10,000) is 1,329.
    assert!(served.transactions < 1_700, "{} transactions, {} refused", served.transactions, served.refused);
    assert!(served.refused < 900, "{}", served.refused);
}

#[test]
fn no_failure_of_another_class_sets_a_record_aside() {
    let failed = |class| Event::RolledBack { class };
    let outages = [
        failed(Class::Transient),
        failed(Class::WrongServer),
        failed(Class::Timeout),
        Event::Withdrawn,
        Event::InDoubt,
    ];
    for outage in outages {
        let (mut writer, _) = gathered_with(OnBadRecord::DeadLetter, 1, 8);
        // The search goes on until one record stands alone, and then the server is gone.
        let mut told = Vec::new();
        for _ in 0..4 {
            told = writer.step(Event::BadSomewhere { description: description() });
        }
        assert_eq!(runs(&told), [[(0, 0, 1)]]);
        let mut effects = writer.step(outage.clone());
        if effects.iter().any(|effect| matches!(effect, Effect::Settle { .. })) {
            effects = writer.step(Event::Settled { verdicts: vec![mine(0)] });
        }
        if effects.iter().any(|effect| matches!(effect, Effect::BackOff { .. })) {
            effects = writer.step(Event::BackedOff);
        }
        assert_eq!((runs(&effects), aside(&effects)), (vec![vec![(0, 0, 1)]], vec![]), "{outage:?}");
        let served = serve(&mut writer, effects, &[(0, 6)]);
        assert_eq!(served.aside, [(0, 6, Reason::Check)], "{outage:?}");
    }
}

#[test]
fn a_sick_object_or_a_stale_catalog_takes_the_partition_out_and_sets_nothing_aside() {
    for class in [Class::SickObject, Class::StaleCatalog] {
        let (mut writer, _) = gathered_with(OnBadRecord::DeadLetter, 1, 8);
        for _ in 0..4 {
            writer.step(Event::BadSomewhere { description: description() });
        }
        let effects = writer.step(Event::RolledBack { class });
        assert_eq!((gone(&effects), runs(&effects)), (vec![(0, Gone::Sick)], vec![]));
        assert!(writer.is_idle());
    }
}

#[test]
fn a_part_without_anything_to_be_written_that_is_refused_is_sick() {
    let (mut writer, _) = gathered_with(OnBadRecord::DeadLetter, 1, 2);
    let records = vec![bad(0, 0), bad(0, 1)];
    writer.step(Event::Bad { records: records.clone() });
    let effects = writer.step(Event::Bad { records });
    assert_eq!(aside(&effects), [(0, 0), (0, 1)]);
    // Our own table refuses: looked for, but no record is to blame.
    writer.step(Event::BadSomewhere { description: description() });
    let effects = writer.step(Event::BadSomewhere { description: description() });
    assert_eq!((gone(&effects), runs(&effects)), (vec![(0, Gone::Sick)], vec![]));
}

#[test]
fn a_record_is_blamed_only_when_no_bad_one_runs_with_it() {
    let (mut writer, _) = gathered_with(OnBadRecord::DeadLetter, 1, 3);
    let records = vec![bad(0, 0), bad(0, 2)];
    writer.step(Event::Bad { records: records.clone() });
    writer.step(Event::Bad { records });
    let search = || Event::BadSomewhere { description: description() };
    assert_eq!(runs(&writer.step(search())), [[(0, 0, 1)]], "the bad one before it goes first");
    assert_eq!(runs(&writer.step(Event::Committed)), [[(0, 1, 3)]]);
    assert_eq!(runs(&writer.step(search())), [[(0, 1, 2)]], "alone");
    let effects = writer.step(search());
    assert_eq!((runs(&effects), aside(&effects)), (vec![vec![(0, 1, 2)]], vec![(0, 1)]));
    assert_eq!(runs(&writer.step(Event::Committed)), [[(0, 2, 3)]]);
    assert_eq!(stored(&writer.step(Event::Committed)), [(0, 3)]);
}

#[test]
fn a_verdict_on_records_that_do_not_run_here_does_not_loop() {
    let (mut writer, _) = gathered_with(OnBadRecord::DeadLetter, 1, 2);
    let records = vec![bad(0, 1)];
    writer.step(Event::Bad { records: records.clone() });
    writer.step(Event::Bad { records: records.clone() });
    let effects = writer.step(Event::Bad { records });
    assert_eq!((gone(&effects), runs(&effects)), (vec![(0, Gone::Sick)], vec![]), "it is set aside already");
}

#[test]
fn an_orphan_waits_once_with_everything_that_was_read_and_is_set_aside_afterwards() {
    let orphan = |offset| BadRecord { reason: Reason::ForeignKey, ..bad(0, offset) };
    let both = || Event::Bad { records: vec![orphan(4), bad(0, 1), orphan(2)] };
    let (mut writer, _) = gathered_with(OnBadRecord::DeadLetter, 1, 5);
    assert_eq!(writer.take(&place(0), 8), Taken::From(5), "read, and not in the batch");
    writer.step(both());
    let effects = writer.step(both());
    assert_eq!((runs(&effects), aside(&effects)), (vec![vec![(0, 0, 2)]], vec![(0, 1)]));
    let effects = writer.step(Event::Committed);
    assert_eq!(gone(&effects), [(0, Gone::Orphan { bad: orphan(2), read: 9 })]);

    // The wait is over, the rows did not come.
    let again = ClaimNumber(9);
    let fence = fence(2);
    writer.step(Event::HandedOver { place: place(0), claim: again, fence, start: 2, alone: true, waited: 9 });
    (2..5).for_each(|offset| assert_eq!(writer.take(&place(0), offset), Taken::From(offset)));
    writer.step(Event::Gathered { parts: vec![part(0, 2, 5)] });
    writer.step(both());
    let effects = writer.step(both());
    assert_eq!((runs(&effects), aside(&effects)), (vec![vec![(0, 2, 5)]], vec![(0, 2), (0, 4)]));
    assert_eq!(stored(&writer.step(Event::Committed)), [(0, 5)]);
}

#[test]
fn under_policy_stop_an_orphan_waits_by_itself_and_stops_its_partition_afterwards() {
    let orphan = BadRecord { reason: Reason::ForeignKey, ..bad(0, 2) };
    let event = || Event::Bad { records: vec![orphan.clone()] };
    let (mut writer, _) = gathered(1, 5);
    writer.step(event());
    writer.step(event());
    let effects = writer.step(Event::Committed);
    assert_eq!(gone(&effects), [(0, Gone::Orphan { bad: orphan.clone(), read: 3 })]);
    let (again, fence) = (ClaimNumber(9), fence(2));
    writer.step(Event::HandedOver { place: place(0), claim: again, fence, start: 2, alone: true, waited: 3 });
    (2..5).for_each(|offset| assert_eq!(writer.take(&place(0), offset), Taken::From(offset)));
    writer.step(Event::Gathered { parts: vec![part(0, 2, 5)] });
    writer.step(event());
    let effects = writer.step(event());
    assert_eq!(gone(&effects), [(0, Gone::Stopped(orphan.clone()))]);
}
