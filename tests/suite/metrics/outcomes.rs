//! Counters of what went wrong: fenced, rewound, in doubt, rolled back.

use oncesink_test_support::proxy::{Action, Point, Proxy};

use super::{caught_up, running, scraped};
use crate::rig::{PATIENCE, Rig};

#[tokio::test(flavor = "multi_thread")]
async fn a_slice_whose_row_is_anothers_is_counted_as_fenced() {
    let mut rig = Rig::new("fenced", 1).await;
    rig.produce(10).await;
    let (_process, http) = running(&rig).await;
    scraped(&http, |scrape| caught_up(&rig, scrape)).await;
    let usurp = "UPDATE kafka_offsets SET owner_epoch = owner_epoch + 1, owner_token = gen_random_uuid()";
    // The look once a second may notice the new owner before the records do: then nothing is fenced, and it is tried again.
    let mut fenced = 0.0;
    for _ in 0..20 {
        scraped(&http, |scrape| caught_up(&rig, scrape)).await;
        rig.schema.execute(usurp).await;
        rig.produce(10).await;
        rig.all_once().await;
        fenced = http.scrape().await.sum("oncesink_fenced_total", &[("topic", &rig.topic)]);
        if fenced > 0.0 {
            break;
        }
    }
    assert!(fenced > 0.0);
    let scrape = http.scrape().await;
    assert_eq!(scrape.sum("oncesink_rewound_total", &[]), 0.0);
    assert!(scrape.value("oncesink_transactions_total", &[("outcome", "rolled_back")]).unwrap() >= 1.0);
    assert!(scrape.sum("oncesink_claim_seconds_count", &[]) >= 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_offset_that_went_back_is_counted_as_rewound() {
    let mut rig = Rig::new("rewound", 1).await;
    rig.produce(100).await;
    let (_process, http) = running(&rig).await;
    scraped(&http, |scrape| caught_up(&rig, scrape)).await;
    // A restore from before the last 40 records: rows and offset together.
    rig.schema
        .execute_unguarded(&format!(
            "DELETE FROM \"{}\" WHERE seq >= 60; UPDATE kafka_offsets SET last_offset = 60",
            rig.topic
        ))
        .await;
    rig.produce(5).await;
    rig.all_once().await;
    let scrape = scraped(&http, |scrape| caught_up(&rig, scrape)).await;
    assert_eq!(scrape.sum("oncesink_rewound_total", &[("topic", &rig.topic)]), 1.0);
    assert_eq!(rig.stored(0).await, 105);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_in_doubt_and_settled_once() {
    for (action, settled) in [(Action::CutAfter, "applied"), (Action::CutBefore, "not_applied")] {
        let mut rig = Rig::new("doubt", 1).await;
        rig.produce(10).await;
        let proxy = Proxy::start(&rig.url);
        rig.url = proxy.url().to_owned();
        let (process, http) = running(&rig).await;
        scraped(&http, |scrape| caught_up(&rig, scrape)).await;
        proxy.arm(Point::CommitOf(rig.topic.clone()), action);
        rig.produce(10).await;
        rig.all_once().await;
        assert_eq!(proxy.seen().cuts, 1, "the COMMIT was cut");
        let scrape = scraped(&http, |scrape| caught_up(&rig, scrape)).await;
        let of = |name: &str, labels: &[(&str, &str)]| scrape.value(name, labels).unwrap();
        assert_eq!(of("oncesink_transactions_total", &[("outcome", "in_doubt")]), 1.0);
        for verdict in ["applied", "not_applied", "fenced", "rewound"] {
            let expected = f64::from(u8::from(verdict == settled));
            assert_eq!(of("oncesink_in_doubt_total", &[("settled", verdict)]), expected, "{verdict}");
        }
        process.terminate();
        assert_eq!(process.wait_exit(PATIENCE).await, 0);
        rig.each_once().await;
    }
}
