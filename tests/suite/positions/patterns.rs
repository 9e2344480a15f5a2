//! Topics by a pattern: those that match now and those that come later, under both protocols of the group.

use oncesink_test_support::eventually_within;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::process::Process;

use super::{QUICK_METADATA, end, says, stands_at, stops, verb};
use crate::rig::{PATIENCE, Rig, row};

const PROTOCOLS: [&str; 2] = ["classic", "consumer"];

/// A sink that reads what matches `^<topic>\.in-`, all into the rig's one ledger.
async fn rig(stem: &str, protocol: &str) -> Rig {
    let mut rig = Rig::new(stem, 1).await;
    rig.kafka_lines = format!("{QUICK_METADATA}group.protocol = \"{protocol}\"\n");
    rig.sink_lines = format!("table = {{ table = \"{}\" }}", rig.topic);
    rig
}

/// The rig's file with this list of topics.
fn file(rig: &Rig, topics: &str) -> String {
    let named = format!("topics = [\"{}\"]", rig.topic);
    rig.config().replace(&named, &format!("topics = [{topics}]"))
}

fn pattern(rig: &Rig) -> String {
    format!("\"^{}\\\\.in-\"", rig.topic.replace('.', "\\\\."))
}

fn run(rig: &Rig, topics: &str) -> Process {
    super::command_with(&file(rig, topics), &["run"]).start()
}

/// A topic of this ending, which is none of the rig's.
async fn create(rig: &Rig, ending: &str, partitions: i32) -> String {
    let name = format!("{}.{ending}", rig.topic);
    rig.kafka.create_topic(&name, partitions, &[]).await;
    name
}

/// Records for a topic's partition; in the ledger they stand under this number, which is no other's.
fn numbered(partition: i32, number: i32, seqs: std::ops::Range<i64>) -> Vec<Record> {
    seqs.map(|seq| Record::to(partition).value(row(number, seq))).collect()
}

/// Waits for rows under a number, and then compares all of them.
async fn all_of(rig: &Rig, number: i32, seqs: std::ops::Range<i64>) {
    let wanted: Vec<i64> = seqs.collect();
    let found = || super::seqs(rig, &rig.topic, number);
    eventually_within(PATIENCE, found, |found| found.len() >= wanted.len()).await;
    assert_eq!(super::seqs(rig, &rig.topic, number).await, wanted, "number {number}");
}

async fn topics_recorded(rig: &Rig) -> Vec<String> {
    let sql =
        "SELECT format('%s %s %s', topic, partition_count, start_policy) FROM oncesink_topics ORDER BY topic";
    let all: Vec<String> = rig.schema.column(sql).await;
    all.into_iter().map(|line| line.replace(&rig.topic, "T")).collect()
}

/// Matches at the first start by the policy; those that come later from their beginning; new partitions too; nothing else is read.
async fn what_matches_now_and_later(protocol: &str) {
    let rig = rig("pattern", protocol).await;
    let first = create(&rig, "in-a", 2).await;
    let other = create(&rig, "out", 1).await;
    rig.kafka.produce(&first, [numbered(0, 0, 0..10), numbered(1, 1, 0..10)].concat()).await;
    rig.kafka.produce(&other, numbered(0, 99, 0..10)).await;
    let mut latest = rig;
    latest.sink_lines.push_str("\nstart = \"latest\"");
    let rig = latest;
    let process = run(&rig, &pattern(&rig));
    stands_at(&rig, &first, 0, 10).await;
    stands_at(&rig, &first, 1, 10).await;
    rig.kafka.produce(&first, [numbered(0, 0, 10..15), numbered(1, 1, 10..15)].concat()).await;
    all_of(&rig, 0, 10..15).await;
    all_of(&rig, 1, 10..15).await;

    // Several at once, full before they are noticed.
    for (index, name) in ["in-b", "in-c", "in-d"].iter().enumerate() {
        let topic = create(&rig, name, 2).await;
        let number = 10 * (index as i32 + 1);
        let records = [numbered(0, number, 0..20), numbered(1, number + 1, 0..20)].concat();
        rig.kafka.produce(&topic, records).await;
    }
    for number in [10, 11, 20, 21, 30, 31] {
        all_of(&rig, number, 0..20).await;
    }

    // A matched topic grows.
    rig.kafka.grow(&first, 3).await;
    rig.kafka.produce(&first, numbered(2, 2, 0..20)).await;
    all_of(&rig, 2, 0..20).await;
    all_of(&rig, 0, 10..15).await;
    assert!(super::seqs(&rig, &rig.topic, 99).await.is_empty(), "an unrelated topic was read");
    assert_eq!(rig.schema.silent_rewinds().await, 0);
    end(process).await;
    let status = rig.command(&["status"]).run(PATIENCE).await.1;
    let told = status.iter().filter(|line| line.text.contains(".in-")).count();
    assert_eq!(told, 9, "{status:?}");
    assert_eq!(
        topics_recorded(&rig).await,
        [
            "^T\\.in- 0 latest",
            "T.in-a 3 latest",
            "T.in-b 2 earliest",
            "T.in-c 2 earliest",
            "T.in-d 2 earliest"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matches_now_and_later_is_read_under_the_classic_protocol() {
    what_matches_now_and_later("classic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matches_now_and_later_is_read_under_the_consumer_protocol() {
    what_matches_now_and_later("consumer").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_while_no_process_ran_is_read_from_its_beginning() {
    let mut rig = rig("pattern_down", "classic").await;
    rig.sink_lines.push_str("\nstart = \"latest\"");
    // Nothing matches at the first start: no error, and a stop in good order.
    let process = run(&rig, &pattern(&rig));
    says(&process, &["no topic matches", "in-"]).await;
    eventually_within(PATIENCE, || topics_recorded(&rig), |all| *all == ["^T\\.in- 0 latest"]).await;
    end(process).await;
    let topic = create(&rig, "in-a", 1).await;
    rig.kafka.produce(&topic, numbered(0, 0, 0..10)).await;
    let process = run(&rig, &pattern(&rig));
    all_of(&rig, 0, 0..10).await;
    end(process).await;
    let (code, lines) =
        super::command_with(&file(&rig, &pattern(&rig)), &["run", "--until-end"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    all_of(&rig, 0, 0..10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_match_beside_a_topic_that_is_not_there() {
    for protocol in PROTOCOLS {
        let rig = rig("pattern_alone", protocol).await;
        let process = run(&rig, &format!("\"{}.absent\", {}", rig.topic, pattern(&rig)));
        says(&process, &["does not exist"]).await;
        let topic = create(&rig, "in-a", 1).await;
        rig.kafka.produce(&topic, numbered(0, 0, 0..10)).await;
        all_of(&rig, 0, 0..10).await;
        let absent = create(&rig, "absent", 1).await;
        rig.kafka.produce(&absent, numbered(0, 1, 0..10)).await;
        all_of(&rig, 1, 0..10).await;
        end(process).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_without_a_table_is_told_and_read_when_it_is_there() {
    let mut rig = rig("pattern_table", "classic").await;
    rig.sink_lines = String::new();
    let first = create(&rig, "in-a", 1).await;
    super::ledger(&rig, &first).await;
    rig.kafka.produce(&first, numbered(0, 0, 0..10)).await;
    let process = run(&rig, &pattern(&rig));
    super::rows_reach(&rig, &first, 10).await;
    let second = create(&rig, "in-b", 1).await;
    rig.kafka.produce(&second, numbered(0, 0, 0..10)).await;
    says(&process, &[&second, "matches and is not read yet", "no table"]).await;
    rig.kafka.produce(&first, numbered(0, 0, 10..20)).await;
    super::rows_reach(&rig, &first, 20).await;
    super::ledger(&rig, &second).await;
    super::rows_reach(&rig, &second, 10).await;
    // One that has rows which are none of ours is not filled.
    let third = create(&rig, "in-c", 1).await;
    super::ledger(&rig, &third).await;
    rig.schema.execute(&format!("INSERT INTO \"{third}\" VALUES (0, 0, 'of somebody else', 1)")).await;
    rig.kafka.produce(&third, numbered(0, 0, 0..10)).await;
    says(&process, &[&third, "matches and is not read yet", "holds rows already"]).await;
    end(process).await;
    assert_eq!(rig.schema.count(&format!("\"{third}\"")).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_that_is_deleted_and_created_again_stops_until_a_reset() {
    let rig = rig("pattern_again", "classic").await;
    let topic = create(&rig, "in-a", 1).await;
    rig.kafka.produce(&topic, numbered(0, 0, 0..10)).await;
    let process = run(&rig, &pattern(&rig));
    all_of(&rig, 0, 0..10).await;
    rig.kafka.delete_topic(&topic).await;
    rig.kafka.create_topic(&topic, 1, &[]).await;
    rig.kafka.produce(&topic, numbered(0, 0, 10..15)).await;
    assert!(stops(&rig, &topic, 0).await.contains("created again"));
    let list = file(&rig, &pattern(&rig));
    let reset = ["reset", &topic, "--to", "earliest", "--reason", "made again"];
    let (code, lines) = super::command_with(&list, &reset).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    all_of(&rig, 0, 0..15).await;
    end(process).await;
    let other = ["reset", &format!("{}.out", rig.topic), "--reason", "none of ours"];
    let (code, lines) = super::command_with(&list, &other).run(PATIENCE).await;
    assert_eq!(code, 1, "{lines:?}");
    assert!(lines.iter().any(|line| line.text.contains("does not read topic")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_looks_at_what_matches_now() {
    let rig = rig("pattern_check", "classic").await;
    let topic = create(&rig, "in-a", 2).await;
    let list = file(&rig, &format!("{}, \"^nothing\\\\.of\\\\.this\"", pattern(&rig)));
    let (code, lines) = super::command_with(&list, &["check"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:?}");
    let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let text = text.join("\n");
    for part in [
        &format!("topic {topic}: 2 partitions"),
        "no topic matches ^nothing\\.of\\.this yet",
        &format!("{topic} -> "),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(topics_recorded(&rig).await.is_empty(), "check writes nothing");
    verb(&rig, &["status"]).await;
}

/// Two instances, a stream of records through topics that match from the start, and topics that come meanwhile, one after the other: nothing is missing, nothing
/// doubled, and what was assigned flows on.
async fn topics_that_come_under_load(protocol: &str) {
    const NEW: i32 = 4;
    let rig = rig("pattern_load", protocol).await;
    let steady = create(&rig, "in-a", 4).await;
    rig.kafka.produce(&steady, (0..4).flat_map(|partition| numbered(partition, partition, 0..1))).await;
    let one = run(&rig, &pattern(&rig));
    let two = run(&rig, &pattern(&rig));
    says(&one, &["partitions claimed"]).await;
    says(&two, &["partitions claimed"]).await;
    rig.schema
        .execute(&format!("ALTER TABLE \"{}\" ADD at timestamptz DEFAULT clock_timestamp()", rig.topic))
        .await;
    let feeding = async {
        for round in 0..60 {
            let next = 1 + round * 10..11 + round * 10;
            let records = (0..4).flat_map(|partition| numbered(partition, partition, next.clone()));
            rig.kafka.produce(&steady, records).await;
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let coming = async {
        for index in 0..NEW {
            let topic = create(&rig, &format!("in-new{index}"), 2).await;
            let number = 100 + 10 * index;
            let records = [numbered(0, number, 0..50), numbered(1, number + 1, 0..50)].concat();
            rig.kafka.produce(&topic, records).await;
            all_of(&rig, number, 0..50).await;
            all_of(&rig, number + 1, 0..50).await;
        }
    };
    tokio::join!(feeding, coming);
    for partition in 0..4 {
        all_of(&rig, partition, 0..601).await;
    }
    end(one).await;
    end(two).await;
    assert_eq!(rig.schema.silent_rewinds().await, 0);
    let gap: f64 = rig
        .schema
        .value(&format!(
            "SELECT COALESCE(max(extract(epoch FROM at - before)), 0)::float8 FROM (
                 SELECT at, lag(at) OVER (PARTITION BY partition_id ORDER BY seq) AS before FROM \"{}\" WHERE partition_id < 4 AND seq > 0) s",
            rig.topic
        ))
        .await;
    println!("{protocol}: the longest gap of a partition that was there: {gap:.2} s");
    // A partition that changes hands is claimed anew, one that stays does not stand still; a resubscribe that gave everything back would take longer.
    assert!(gap < 5.0, "{protocol}: a partition stood still for {gap} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_that_come_under_load_are_read_once_under_the_classic_protocol() {
    topics_that_come_under_load("classic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_that_come_under_load_are_read_once_under_the_consumer_protocol() {
    topics_that_come_under_load("consumer").await;
}
