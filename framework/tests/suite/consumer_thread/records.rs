//! Records on their way from the broker to a writer's queue.

use std::time::{Duration, Instant};

use oncesink::kafka::Item;
use oncesink_test_support::kafka::Record;
use oncesink_test_support::{Servers, unique};

use crate::member::{DEADLINE, Member, Seen, offsets};

#[tokio::test]
async fn a_record_comes_with_all_that_it_has() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("fields", 1).await;
    let full = Record::to(0).key("k").value("v").timestamp(1_700_000_000_123).header("a", Some(b"1"));
    let full = full.header("a", None).header("b", Some(b""));
    kafka.produce(&topic, [full, Record::to(0)]).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;

    let begin = Instant::now();
    let queue = &mut member.queues[0];
    let mut records = 0;
    while records < 2 {
        assert!(begin.elapsed() < DEADLINE, "no records");
        let Some(item) = queue.poll() else {
            queue.wait(Duration::from_millis(50));
            queue.clear_wake();
            continue;
        };
        let Item::Record(record) = item else { continue };
        assert_eq!((record.topic(), record.partition()), (&*topic, 0));
        assert!(record.leader_epoch().is_some());
        match record.offset() {
            0 => {
                assert_eq!((record.key(), record.value()), (Some(&b"k"[..]), Some(&b"v"[..])));
                assert_eq!(record.timestamp(), Some(1_700_000_000_123));
                let headers: Vec<_> = record.headers().collect();
                let expected: [(&[u8], Option<&[u8]>); 3] =
                    [(b"a", Some(b"1")), (b"a", None), (b"b", Some(b""))];
                assert_eq!(headers, expected);
            }
            _ => {
                assert_eq!((record.key(), record.value()), (None, None));
                assert_eq!(record.headers().count(), 0);
            }
        }
        records += 1;
    }
    assert!(member.stop().await);
}

#[tokio::test]
async fn each_partition_goes_to_its_writer_and_ends_there() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("writers", 2).await;
    kafka.produce(&topic, (0..20).map(|n| Record::to(n % 2).value("v"))).await;
    let mut member = Member::join_with(kafka.bootstrap(), &topic, &unique("group"), 2, |_| {});
    member.assigned(2).await;
    let (first, mut second) = (member.start(0, 0), member.start(1, 4));
    second.writer = 1;
    member.begin(vec![first, second]).await;

    let mut seen = [Vec::new(), Vec::new()];
    let begin = Instant::now();
    while !(seen[0].iter().any(|s: &Seen| s.is_end(0, 10)) && seen[1].iter().any(|s| s.is_end(1, 10))) {
        assert!(begin.elapsed() < DEADLINE, "no end: {seen:?}");
        for (writer, seen) in seen.iter_mut().enumerate() {
            seen.extend(member.drain_writer(writer));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(offsets(&seen[0], 0), Vec::from_iter(0..10));
    assert_eq!(offsets(&seen[1], 1), Vec::from_iter(4..10));
    assert!(offsets(&seen[0], 1).is_empty() && offsets(&seen[1], 0).is_empty());
    assert_eq!(member.errors(), []);
    assert!(member.stop().await);
}

#[tokio::test]
async fn a_start_outside_of_the_log_breaks_its_partition_only() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("outside", 2).await;
    kafka.produce(&topic, (0..20).map(|n| Record::to(n % 2).value("v"))).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(2).await;
    let starts = vec![member.start(0, 5000), member.start(1, 0)];
    member.begin(starts).await;
    let mut seen = member.read_until(Seen::is_broken).await;
    if !seen.iter().any(|s| s.is_end(1, 10)) {
        seen.extend(member.read_until(|s| s.is_end(1, 10)).await);
    }
    let broken: Vec<&Seen> = seen.iter().filter(|s| s.is_broken()).collect();
    assert!(
        matches!(broken[..], [Seen::Broken { partition: 0, out_of_range: true, truncated: false, .. }]),
        "{broken:?}"
    );
    assert!(offsets(&seen, 0).is_empty());
    assert_eq!(offsets(&seen, 1), Vec::from_iter(0..10));
    assert!(member.stop().await);
}

#[tokio::test]
async fn each_record_wakes_the_writer() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("wake", 1).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    member.read_until(|s| s.is_end(0, 0)).await;

    let mut queue = member.queues.pop().expect("a queue");
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    // Waits for the descriptor alone: a wake-up that is missed shows as a wait of its full length.
    let writer = std::thread::spawn(move || {
        let mut read = 0;
        let mut missed = 0;
        while read < 50 && missed == 0 {
            let begin = Instant::now();
            queue.wait(DEADLINE);
            missed += u32::from(begin.elapsed() >= DEADLINE);
            queue.clear_wake();
            while let Some(item) = queue.poll() {
                if let Item::Record(record) = item {
                    read += 1;
                    let _ = sender.send(record.offset());
                }
            }
        }
        missed
    });
    for n in 0..50 {
        kafka.produce(&topic, [Record::to(0).value("v")]).await;
        assert_eq!(tokio::time::timeout(DEADLINE, received.recv()).await.expect("a record"), Some(n));
    }
    assert_eq!(writer.join().expect("the writer"), 0);
    assert!(member.stop().await);
}
