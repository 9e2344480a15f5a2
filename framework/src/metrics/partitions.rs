//! Series of the partitions that are here now, written as Prometheus text when somebody asks.
//!
//! Invariants: a series whose value is unknown is absent; a lag is never negative; each metric's lines stand together under one HELP and TYPE.

use std::fmt::Write;

/// What is known of one partition, at the moment of the question. What is unknown is `None`, and absent in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSeries {
    /// Kafka group.
    pub group: String,
    /// Topic.
    pub topic: String,
    /// Partition number.
    pub partition: i32,
    /// High watermark minus stored offset.
    pub lag_records: Option<i64>,
    /// Last stable offset minus stored offset: what of the lag can be read now.
    pub lag_readable_records: Option<i64>,
    /// Age of the first record not yet stored, in seconds; 0 at the end. None when a record has no timestamp.
    pub lag_seconds: Option<f64>,
    /// Next offset to read, as the database has it.
    pub stored_offset: Option<i64>,
    /// Next offset that a producer would get.
    pub high_watermark: Option<i64>,
    /// First offset of an open transaction, else the high watermark.
    pub last_stable_offset: Option<i64>,
    /// First offset that the broker still has.
    pub log_start_offset: Option<i64>,
    /// Records read and not yet committed.
    pub buffered_records: u64,
    /// `claiming`, `running`, `blocked`, `stopped`, `paused` or `refused`.
    pub state: &'static str,
}

/// What the runtime answers about itself, at any moment and without waiting.
pub trait Live: Send + Sync + 'static {
    /// The partitions that are here now, in any order.
    fn partition_series(&self) -> Vec<PartitionSeries>;

    /// Whether poll loops and writers tick.
    ///
    /// # Errors
    /// What does not, for people. A stopped partition is no reason: a restart would not help.
    fn healthy(&self) -> Result<(), String>;

    /// Whether this process is connected, has joined its groups, and holds claims on what is assigned; no assigned partition is fine.
    ///
    /// # Errors
    /// What is waited for, for people.
    fn ready(&self) -> Result<(), String>;
}

type Value = fn(&PartitionSeries) -> Option<f64>;

/// Name, help and value of the series per partition, all gauges with labels group, topic, partition.
const GAUGES: [(&str, &str, Value); 8] = [
    ("oncesink_lag_records", "High watermark minus stored offset.", |p| p.lag_records.map(not_negative)),
    ("oncesink_lag_readable_records", "Last stable offset minus stored offset.", |p| {
        p.lag_readable_records.map(not_negative)
    }),
    ("oncesink_lag_seconds", "Age of the first record not yet stored; 0 at the end.", |p| {
        p.lag_seconds.map(|seconds| seconds.max(0.0))
    }),
    ("oncesink_stored_offset", "Next offset to read, as the database has it.", |p| {
        p.stored_offset.map(float)
    }),
    ("oncesink_high_watermark_offset", "Next offset that a producer would get.", |p| {
        p.high_watermark.map(float)
    }),
    ("oncesink_last_stable_offset", "First offset that read_committed cannot read yet.", |p| {
        p.last_stable_offset.map(float)
    }),
    ("oncesink_log_start_offset", "First offset that the broker still has.", |p| {
        p.log_start_offset.map(float)
    }),
    ("oncesink_buffered_records", "Records read and not yet committed.", |p| Some(p.buffered_records as f64)),
];

const STATE: (&str, &str) = ("oncesink_partition_state", "1 for the present state.");

/// Names of all series per partition.
pub const PARTITION_METRICS: [&str; 9] = [
    GAUGES[0].0,
    GAUGES[1].0,
    GAUGES[2].0,
    GAUGES[3].0,
    GAUGES[4].0,
    GAUGES[5].0,
    GAUGES[6].0,
    GAUGES[7].0,
    STATE.0,
];

/// The series as Prometheus text, to follow an exporter's own.
pub fn render(series: &[PartitionSeries]) -> String {
    let mut sorted: Vec<&PartitionSeries> = series.iter().collect();
    sorted.sort_by(|a, b| (&a.group, &a.topic, a.partition).cmp(&(&b.group, &b.topic, b.partition)));
    let labels: Vec<String> = sorted.iter().map(|partition| labels(partition)).collect();

    let mut text = String::new();
    for (name, help, value) in GAUGES {
        let mut lines = String::new();
        for (partition, labels) in sorted.iter().zip(&labels) {
            if let Some(value) = value(partition) {
                let _ = writeln!(lines, "{name}{{{labels}}} {value}");
            }
        }
        family(&mut text, name, help, &lines);
    }
    let mut lines = String::new();
    for (partition, labels) in sorted.iter().zip(&labels) {
        let _ = writeln!(lines, "{}{{{labels},state=\"{}\"}} 1", STATE.0, escaped(partition.state));
    }
    family(&mut text, STATE.0, STATE.1, &lines);
    text
}

fn family(text: &mut String, name: &str, help: &str, lines: &str) {
    if !lines.is_empty() {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{lines}\n");
    }
}

fn labels(partition: &PartitionSeries) -> String {
    format!(
        "group=\"{}\",topic=\"{}\",partition=\"{}\"",
        escaped(&partition.group),
        escaped(&partition.topic),
        partition.partition
    )
}

/// Backslash, quote and line feed: what the text format escapes in a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Offsets fit a double exactly up to 2^53, which is what Prometheus keeps.
fn float(offset: i64) -> f64 {
    offset as f64
}

fn not_negative(records: i64) -> f64 {
    float(records.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(partition: i32) -> PartitionSeries {
        PartitionSeries {
            group: "g".into(),
            topic: "t".into(),
            partition,
            lag_records: Some(7),
            lag_readable_records: Some(-3),
            lag_seconds: None,
            stored_offset: Some(9_007_199_254_740_991),
            high_watermark: Some(50),
            last_stable_offset: None,
            log_start_offset: Some(0),
            buffered_records: 2,
            state: "running",
        }
    }

    #[test]
    fn unknown_is_absent_negative_is_zero_and_families_stand_together() {
        let text = render(&[partition(10), partition(9)]);
        let expected = "# HELP oncesink_lag_records High watermark minus stored offset.\n\
            # TYPE oncesink_lag_records gauge\n\
            oncesink_lag_records{group=\"g\",topic=\"t\",partition=\"9\"} 7\n\
            oncesink_lag_records{group=\"g\",topic=\"t\",partition=\"10\"} 7\n\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("oncesink_lag_readable_records{group=\"g\",topic=\"t\",partition=\"9\"} 0\n"));
        assert!(
            text.contains(
                "oncesink_stored_offset{group=\"g\",topic=\"t\",partition=\"9\"} 9007199254740991\n"
            )
        );
        assert!(!text.contains("lag_seconds") && !text.contains("last_stable"));
        assert!(text.contains(
            "oncesink_partition_state{group=\"g\",topic=\"t\",partition=\"9\",state=\"running\"} 1\n"
        ));
        assert_eq!(text.matches("# TYPE").count(), 7);
    }

    #[test]
    fn labels_are_escaped() {
        let odd = PartitionSeries { group: "a\"b\\c\nd".into(), ..partition(0) };
        assert!(render(&[odd]).contains("{group=\"a\\\"b\\\\c\\nd\",topic"));
    }

    #[test]
    fn nothing_here_renders_nothing() {
        assert_eq!(render(&[]), "");
    }
}
