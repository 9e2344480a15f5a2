//! The end of the thread.

use std::time::{Duration, Instant};

use oncesink::kafka::{Command, Event};
use oncesink_test_support::kafka::Record;
use oncesink_test_support::{Servers, unique};

use crate::member::{Member, Seen};

#[tokio::test]
async fn a_stop_waits_for_the_writers_then_closes_with_records_still_queued() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("stop", 2).await;
    kafka.produce(&topic, (0..2000).map(|n| Record::to(n % 2).value("v"))).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(2).await;
    let starts = vec![member.start(0, 0), member.start(1, 0)];
    member.begin(starts).await;
    // Something has come, most of it is still queued, and the last item is still borrowed from.
    let begin = Instant::now();
    while member.queues[0].poll().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing came");
        member.queues[0].wait(Duration::from_millis(50));
        member.queues[0].clear_wake();
    }
    member.handle.send(Command::Stop { deadline: Duration::from_secs(30) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(member.ready(), None, "it closed under a writer");
    let begin = Instant::now();
    member.queues.clear();
    assert_eq!(member.next().await, Event::Stopped { clean: true });
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    member.handle.join();
}

#[tokio::test]
async fn a_writer_that_does_not_leave_costs_the_deadline_and_its_queue_stays_usable() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("stuck", 1).await;
    kafka.produce(&topic, (0..10).map(|_| Record::to(0).value("v"))).await;
    let mut member = Member::join(kafka, &topic, &unique("group"));
    member.assigned(1).await;
    member.begin_at(0, 0).await;
    member.read_until(|s| matches!(s, Seen::Record { .. })).await;
    member.handle.send(Command::Stop { deadline: Duration::from_millis(300) });
    assert_eq!(member.next().await, Event::Stopped { clean: false });
    member.drain();
    let Member { handle, queues, .. } = member;
    handle.join();
    drop(queues);
}

#[tokio::test]
async fn a_handle_that_is_dropped_stops_its_thread() {
    let kafka = Servers::shared().await.kafka();
    let topic = kafka.topic("dropped", 1).await;
    let settings = oncesink::kafka::ConsumerSettings::new(kafka.bootstrap(), &unique("group"), vec![topic]);
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let (handle, queues) = oncesink::kafka::start(&settings, 2, sender).expect("starting a consumer");
    drop((handle, queues));
    let ended = async {
        while let Some(event) = events.recv().await {
            if event == (Event::Stopped { clean: true }) {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the thread goes on"));
}
