//! Where a partition is read from after it was given to somebody: at the stored offset, whatever Kafka or the process remembers.

use oncesink_test_support::eventually_within;
use oncesink_test_support::process::Process;
use oncesink_test_support::proxy::{Action, Point, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rebalance::group::{rig, said};
use crate::rig::{PATIENCE, Rig};

/// What a process tells at `/metrics`.
async fn metrics(process: &Process) -> String {
    let line =
        process.wait_for_line(|line| line.text.contains("metrics and health at http://"), PATIENCE).await;
    let (_, address) = line.text.split_once("http://").expect("an address");
    let address: String = address.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
    let mut stream = TcpStream::connect(&address).await.expect("connecting to the metrics");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asking");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// How many records below their partition's next one reached a writer. Some may: the seek that follows an assignment can deliver once more what was
/// fetched before it. Far fewer than lie below the stored offset in these tests.
async fn read_below(process: &Process) -> u64 {
    let text = metrics(process).await;
    let below =
        text.lines().filter(|line| line.starts_with("oncesink_offset_gaps_total") && line.contains("below"));
    below.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Records that are stored before each test, per partition.
const STORED: i64 = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn c053_reading_begins_at_the_stored_offset_and_at_none_below() {
    let mut rig = rig("c053", 2).await;
    rig.produce(STORED).await;
    rig.run_until_end().await;
    rig.produce(100).await;
    let process = rig.run();
    rig.all_once().await;
    let below = read_below(&process).await;
    assert!(below < 1_000, "{below} records below the stored offset were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn c107_a_partition_given_back_goes_on_at_the_stored_offset_whatever_kafka_has() {
    // Below and above the stored offset.
    for committed in [40, STORED + 50] {
        let mut rig = rig("c107", 2).await;
        rig.produce(STORED).await;
        rig.run_until_end().await;
        rig.kafka.commit_offsets(&rig.topic, &rig.topic, &[(0, committed), (1, committed)]).await;
        rig.produce(100).await;
        let first = rig.run();
        rig.all_once().await;
        let second = rig.run();
        rig.shared_by(&[&first, &second]).await;
        second.terminate();
        assert_eq!(second.wait_exit(PATIENCE).await, 0, "{}", second.text());
        rig.owns(&first, |owned| owned == 2).await;
        rig.produce(100).await;
        rig.all_once().await;
        let below = read_below(&first).await;
        assert!(below < 1_000, "{below} records below the stored offset were read");
    }
}

/// An idle owner that has written 12 records.
async fn at_12(stem: &str) -> (Rig, Process) {
    let mut rig = rig(stem, 1).await;
    rig.produce(12).await;
    let process = rig.run();
    rig.all_once().await;
    (rig, process)
}

#[tokio::test(flavor = "multi_thread")]
async fn c001_an_owner_that_others_have_overtaken_writes_nothing_of_theirs() {
    let (mut rig, process) = at_12("c001_ahead").await;
    // Another owner has written the next two records before this one sees them.
    rig.schema
        .execute(&format!(
            "BEGIN;
             INSERT INTO \"{}\" (partition_id, seq) VALUES (0, 12), (0, 13);
             UPDATE kafka_offsets SET last_offset = 14, owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid();
             COMMIT",
            rig.topic
        ))
        .await;
    rig.produce(4).await;
    rig.all_once().await;
    assert!(
        said(&process, "not ours any more") + said(&process, "changed from outside") > 0,
        "{}",
        process.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c001_an_owner_whose_row_has_gone_back_reads_again_from_there() {
    let (mut rig, process) = at_12("c001_back").await;
    // A failover has lost the last commits: rows and offset together.
    rig.schema
        .execute_unguarded(&format!(
            "DELETE FROM \"{}\" WHERE seq >= 8; UPDATE kafka_offsets SET last_offset = 8",
            rig.topic
        ))
        .await;
    rig.produce(2).await;
    rig.all_once().await;
    assert_eq!(rig.stored(0).await, 14);
    assert!(said(&process, "reading again from there") > 0, "{}", process.text());
    let told = "SELECT count(*) FROM oncesink_events WHERE kind = 'rewound' AND new_offset = 8";
    eventually_within(PATIENCE, || rig.schema.value::<i64>(told), |count| *count > 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c059_what_was_buffered_behind_a_failed_batch_is_not_taken_for_done() {
    for action in [Action::CutBefore, Action::CutAfter] {
        let mut rig = rig("c059", 1).await;
        rig.sink_lines = "writers = 1\nbatch = { rows = 36 }".to_owned();
        let proxy = Proxy::start(rig.schema.url());
        // The first batch, and two attempts or batches after it, fail with more behind them.
        proxy.arm_times(3, Point::CommitOf(rig.topic.clone()), action);
        rig.produce(536).await;
        let _process = rig.run_through(proxy.url());
        rig.all_once().await;
        assert_eq!(proxy.seen().cuts, 3);
        assert_eq!(rig.stored(0).await, 536);
    }
}
