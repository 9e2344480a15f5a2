//! The store on real databases: every rule of the contract, with the fault that would break it.
//!
//! What is promised of all databases stands in `shared/` and runs on each: the files of that name in `postgres/` and `sqlite/` are links to it, and `Bench`
//! and `Db` there are the database's own.

mod postgres;
mod sqlite;

use std::sync::Arc;

use oncesink::SliceEnd;
use oncesink::TopicPartition;
use oncesink::position::{Interval, StartPolicy};
use oncesink::store::{Claim, Claimed, Fence, Starts, Step, TopicIdentity, Wanted};

fn topic(name: &str) -> TopicIdentity {
    TopicIdentity { name: name.into(), id: format!("id of {name}").into(), target: "s: public.rows".into() }
}

fn starts(name: &str, count: i32, at: i64) -> Starts {
    let offsets = vec![at; usize::try_from(count).unwrap()];
    Starts {
        topic: topic(name),
        policy: StartPolicy::Latest,
        first: offsets,
        beginning: vec![0; count as usize],
    }
}

fn wanted(name: &str, partition: i32) -> Wanted {
    Wanted { place: TopicPartition::new(name, partition), topic: topic(name) }
}

#[track_caller]
fn claimed(claim: &Claim) -> Claimed {
    match claim {
        Claim::Claimed(claimed) => claimed.clone(),
        other => panic!("not claimed: {other:?}"),
    }
}

/// A step of topic `t`.
fn step(partition: i32, fence: Fence, from: i64, to: i64) -> Step {
    Step {
        place: TopicPartition::new("t", partition),
        fence,
        interval: Interval { from, to },
        end: SliceEnd { leader_epoch: Some(7), timestamp: Some(1_700_000_000_123) },
    }
}

fn names(topics: &[&str]) -> Vec<Arc<str>> {
    topics.iter().map(|topic| Arc::from(*topic)).collect()
}
