//! Values and verdicts from made-up facts.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::batch::{Part, SliceBuilder};
use crate::writer::Holdings;

fn ends(log_start: i64, last_stable: i64, high_watermark: i64) -> Ends {
    Ends { log_start, high_watermark, last_stable, leader_epoch: None }
}

fn shown(stored: Option<i64>, before: Option<i64>, ends: Ends) -> Shown {
    Shown { state: "running", stored, ends: Some((before, ends)) }
}

fn live(partitions: &[(i32, Shown)]) -> LiveSink {
    let live = LiveSink::new("g".into());
    for (partition, shown) in partitions {
        live.partitions().insert(TopicPartition::new("t", *partition), *shown);
    }
    live
}

#[test]
fn lags_are_differences_and_never_negative() {
    let running = shown(Some(9), Some(8), ends(2, 10, 12));
    let series = live(&[(0, running)]).partition_series().remove(0);
    // The stored offset of the time before the ends were read counts, so that a lag is never too small.
    assert_eq!((series.lag_records, series.lag_readable_records), (Some(4), Some(2)));
    assert_eq!((series.stored_offset, series.log_start_offset), (Some(9), Some(2)));
    let ahead = shown(Some(20), Some(20), ends(0, 10, 12));
    let series = live(&[(0, ahead)]).partition_series().remove(0);
    assert_eq!((series.lag_records, series.lag_readable_records), (Some(0), Some(0)));
}

#[test]
fn a_partition_without_a_claim_shows_its_ends_and_no_lag() {
    let refused = Shown { state: "refused", stored: None, ends: Some((None, ends(1, 4, 5))) };
    let series = live(&[(0, refused)]).partition_series().remove(0);
    assert_eq!((series.high_watermark, series.lag_records, series.lag_seconds), (Some(5), None, None));
}

#[test]
fn seconds_come_from_facts() {
    let first = |timestamp| Some(First { from: 3, timestamp });
    let at = |stored| shown(Some(stored), Some(stored), ends(0, 5, 9));
    assert_eq!(lag_seconds(&at(5), None, 10_000), Some(0.0));
    assert_eq!(lag_seconds(&at(3), first(Some(4_000)), 10_000), Some(6.0));
    // A clock that stands behind the producer's.
    assert_eq!(lag_seconds(&at(3), first(Some(11_000)), 10_000), Some(0.0));
    // A record without a timestamp, and one that nobody has seen yet.
    assert_eq!(lag_seconds(&at(3), first(None), 10_000), None);
    assert_eq!(lag_seconds(&at(3), None, 10_000), None);
    // News since the ends were read.
    assert_eq!(lag_seconds(&at(7), first(Some(4_000)), 10_000), Some(6.0));
    let unknown = Shown { state: "claiming", stored: None, ends: None };
    assert_eq!(lag_seconds(&unknown, None, 10_000), None);
}

#[test]
fn a_first_record_counts_only_at_the_stored_offset() {
    let mut slice = SliceBuilder::new(TopicPartition::new("t", 0), 3);
    slice.push(3, Some(1_000), None, None, None, []);
    let mut holdings = Holdings::default();
    holdings.begin(&[Part::whole(Arc::new(slice.build()))]);
    holdings.show_at_once();
    let live = live(&[(0, shown(Some(3), Some(3), ends(0, 4, 4)))]);
    live.set_buffered(vec![holdings.shared(), Arc::new(Mutex::new(HashMap::new()))]);
    let series = live.partition_series().remove(0);
    assert_eq!(series.buffered_records, 1);
    assert!(series.lag_seconds.is_some_and(|seconds| seconds > 1e9));
    // Stored, and the writer has not said so yet.
    live.partitions().insert(TopicPartition::new("t", 0), shown(Some(4), Some(3), ends(0, 4, 4)));
    assert_eq!(live.partition_series().remove(0).lag_seconds, Some(0.0));
}

#[test]
fn a_loop_that_hangs_is_unhealthy_and_one_that_does_not_run_is_not() {
    let live = live(&[]);
    let (now, long) = (Instant::now(), HANGS_AFTER + Duration::from_secs(1));
    assert_eq!(live.healthy_at(now + long), Ok(()), "nothing runs yet: the start is waited for");
    live.beat(Duration::from_secs(1));
    assert_eq!(live.healthy_at(now), Ok(()));
    assert_eq!(live.healthy_at(now + HANGS_AFTER), Ok(()));
    let supervisor = live.healthy_at(Instant::now() + long).unwrap_err();
    assert_eq!(supervisor, "group g: a loop took no turn for 31 s");
    live.beat(long);
    let below = live.healthy_at(Instant::now()).unwrap_err();
    assert_eq!(below, "group g: a loop took no turn for 31 s");
    live.rest();
    assert_eq!(live.healthy_at(now + long), Ok(()));
    live.beat(long);
    live.end();
    assert_eq!(live.healthy_at(now + long), Ok(()));
}

#[test]
fn ready_is_joined_with_everything_claimed() {
    let at = |state| Shown { state, stored: None, ends: None };
    let ready = |states: &[&'static str]| {
        let partitions: Vec<(i32, Shown)> =
            states.iter().zip(0..).map(|(state, partition)| (partition, at(*state))).collect();
        let live = live(&partitions);
        assert!(live.ready().is_err(), "not joined");
        live.set_joined(true);
        assert_eq!(live.healthy(), Ok(()), "readiness is not health");
        live.ready()
    };
    assert_eq!(ready(&[]), Ok(()), "no assigned partition is fine");
    assert_eq!(ready(&["running", "stopped", "refused", "blocked"]), Ok(()));
    assert_eq!(ready(&["running", "claiming"]), Err("group g: t/1 is not claimed yet".to_owned()));

    let ended = live(&[(0, at("claiming"))]);
    ended.end();
    assert_eq!((ended.ready(), ended.partition_series()), (Ok(()), Vec::new()));
}
