//! The list is closed: what a run shows and what the list says are the same names, types and labels.

use std::collections::{BTreeMap, BTreeSet};

use oncesink::metrics::{Kind, LIST, PARTITION_METRICS};

use super::{caught_up, running, scraped};
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_the_list_and_nothing_else() {
    let mut rig = Rig::new("closed", 2).await;
    // Under the other policies there is no series of dead letters.
    rig.sink_lines = "on_bad_record = \"dead-letter\"".to_owned();
    rig.produce(100).await;
    let (process, http) = running(&rig).await;
    let scrape = scraped(&http, |scrape| caught_up(&rig, scrape) && scrape.types.len() > 20).await;

    let mut expected: BTreeMap<&str, (&str, BTreeSet<&str>)> = BTreeMap::new();
    for metric in LIST {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        expected.insert(metric.name, (kind, metric.labels.iter().copied().collect()));
    }
    for name in PARTITION_METRICS {
        let mut labels: BTreeSet<&str> = ["group", "topic", "partition"].into();
        if name == "oncesink_partition_state" {
            labels.insert("state");
        }
        expected.insert(name, ("gauge", labels));
    }

    let types: BTreeMap<&str, &str> = scrape.types.iter().map(|(name, kind)| (&**name, &**kind)).collect();
    let wanted: BTreeMap<&str, &str> = expected.iter().map(|(name, (kind, _))| (*name, *kind)).collect();
    assert_eq!(types, wanted);
    let helped: BTreeSet<&str> = scrape.helped.iter().map(|name| &**name).collect();
    assert_eq!(helped, wanted.keys().copied().collect());

    let mut seen = BTreeSet::new();
    for sample in &scrape.samples {
        let (family, (kind, labels)) = expected
            .iter()
            .find(|(name, (kind, _))| {
                let part = sample.name.strip_prefix(**name);
                part == Some("")
                    || (*kind == "histogram" && matches!(part, Some("_bucket" | "_sum" | "_count")))
            })
            .unwrap_or_else(|| panic!("{} is not in the list", sample.name));
        let mut own: BTreeSet<&str> = sample.labels.keys().map(|label| &**label).collect();
        assert_eq!(own.remove("le"), *kind == "histogram" && sample.name.ends_with("_bucket"), "{sample:?}");
        assert_eq!(&own, labels, "{sample:?}");
        assert_eq!(sample.labels.get("group"), Some(&rig.topic), "{sample:?}");
        seen.insert(*family);
    }
    assert_eq!(seen, expected.keys().copied().collect(), "each shows a sample");

    let info: Vec<_> = scrape.of("oncesink_info", &[]).collect();
    assert_eq!(info.len(), 1);
    let label = |name: &str| info[0].labels[name].clone();
    assert_eq!(info[0].value, 1.0);
    assert_eq!(label("owner"), format!("{}/{}", label("host"), process.pid()));
    assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
    let owner: String = rig.schema.value("SELECT DISTINCT owner FROM kafka_offsets").await;
    assert_eq!(owner, label("owner"), "the same word as in the database");
}
