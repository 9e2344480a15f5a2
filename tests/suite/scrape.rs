//! `/metrics` as a scraper sees it: families and samples, read strictly, so that a text that a scraper would refuse fails here.

use std::collections::{BTreeMap, BTreeSet};

use oncesink_test_support::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::PATIENCE;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// One answer of `/metrics`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrape {
    /// Type of each family.
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) helped: BTreeSet<String>,
    pub(crate) samples: Vec<Sample>,
}

/// The listener of a running command.
#[derive(Clone, Debug)]
pub(crate) struct Http(String);

impl Http {
    /// Finds the port that the command picked and logged.
    pub(crate) async fn of(process: &Process) -> Self {
        let line = process.wait_for_line(|line| line.text.contains("metrics and health at "), PATIENCE).await;
        let (_, rest) = line.text.split_once("http://").expect("an address");
        Self(rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ':')).collect())
    }

    /// Status and body.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.0).await.expect("the listener");
        let request = format!("GET {path} HTTP/1.1\r\nHost: oncesink\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("asking");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        assert!(!head.contains("chunked"), "{head}");
        (status, body.to_owned())
    }

    pub(crate) async fn scrape(&self) -> Scrape {
        let (status, text) = self.get("/metrics").await;
        assert_eq!(status, 200, "{text}");
        Scrape::read(&text)
    }
}

impl Scrape {
    /// # Panics
    /// For a line that is none of the format, a family that comes twice, a sample outside of its family, a series that comes twice.
    fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut family = String::new();
        let mut series = BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a name and a help");
                assert!(!help.is_empty() && scrape.helped.insert(name.to_owned()), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert!(
                    scrape.types.insert(name.to_owned(), kind.to_owned()).is_none(),
                    "two families: {line}"
                );
                family = name.to_owned();
            } else {
                let sample = Sample::read(line);
                assert!(sample.name.starts_with(&family), "{line} within {family}");
                assert!(series.insert((sample.name.clone(), sample.labels.clone())), "twice: {line}");
                scrape.samples.push(sample);
            }
        }
        scrape
    }

    /// Samples of a name whose labels include these.
    pub(crate) fn of<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&str, &str)],
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            sample.name == name
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|v| v == value))
        })
    }

    /// The value of the one sample; none when there is none.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.of(name, labels);
        let value = found.next().map(|sample| sample.value);
        assert!(found.next().is_none(), "several of {name} {labels:?}");
        value
    }

    /// The sum over all samples.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.of(name, labels).map(|sample| sample.value).sum()
    }

    /// A gauge of a partition of a topic.
    pub(crate) fn partition(&self, name: &str, topic: &str, partition: i32) -> Option<f64> {
        self.value(name, &[("topic", topic), ("partition", &partition.to_string())])
    }

    /// The state of a partition.
    pub(crate) fn state(&self, topic: &str, partition: i32) -> Option<String> {
        let number = partition.to_string();
        let labels = [("topic", topic), ("partition", &*number)];
        let mut found = self.of("oncesink_partition_state", &labels);
        let sample = found.next()?;
        assert!(found.next().is_none() && sample.value == 1.0, "one state at a time");
        sample.labels.get("state").cloned()
    }

    /// Numbers of the partitions of a topic that are shown.
    pub(crate) fn partitions(&self, topic: &str) -> BTreeSet<i32> {
        let number = |sample: &Sample| sample.labels.get("partition").and_then(|number| number.parse().ok());
        let shown: BTreeSet<i32> =
            self.of("oncesink_partition_state", &[("topic", topic)]).filter_map(number).collect();
        let any: BTreeSet<i32> = self
            .samples
            .iter()
            .filter(|s| s.labels.get("topic").is_some_and(|t| t == topic))
            .filter_map(number)
            .collect();
        assert_eq!(shown, any, "a partition shows all of its series or none");
        shown
    }
}

impl Sample {
    fn read(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').expect("a series and a value");
        let value = value.parse().expect("a number");
        let Some((name, rest)) = series.split_once('{') else {
            return Self { name: series.to_owned(), labels: BTreeMap::new(), value };
        };
        let mut rest = rest.strip_suffix('}').expect("the labels' end");
        let mut labels = BTreeMap::new();
        while let Some((label, tail)) = rest.split_once("=\"") {
            let end = tail.find('"').expect("the value's end");
            let (text, tail) = tail.split_at(end);
            assert!(!text.contains('\\'), "no label here needs escapes: {line}");
            assert!(labels.insert(label.to_owned(), text.to_owned()).is_none(), "{line}");
            rest = tail.trim_start_matches('"').trim_start_matches(',');
        }
        assert!(rest.is_empty(), "{line}");
        Self { name: name.to_owned(), labels, value }
    }
}
