//! The closed list: name, kind, labels, unit and meaning of each metric that goes through the facade.
//!
//! Must not: hold a label whose values grow with the records, such as a key or an SQL state; those go to the log.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Names, for those who emit.
pub mod names {
    /// See [`super::LIST`].
    pub const RECORDS_READ: &str = "oncesink_records_read_total";
    /// See [`super::LIST`].
    pub const RECORDS_WRITTEN: &str = "oncesink_records_written_total";
    /// See [`super::LIST`].
    pub const RECORDS_COLLAPSED: &str = "oncesink_records_collapsed_total";
    /// See [`super::LIST`].
    pub const RECORDS_DELETED: &str = "oncesink_records_deleted_total";
    /// See [`super::LIST`].
    pub const RECORDS_SKIPPED: &str = "oncesink_records_skipped_total";
    /// See [`super::LIST`].
    pub const RECORDS_DEAD_LETTERED: &str = "oncesink_records_dead_lettered_total";
    /// See [`super::LIST`].
    pub const TRANSACTIONS: &str = "oncesink_transactions_total";
    /// See [`super::LIST`].
    pub const RETRIES: &str = "oncesink_retries_total";
    /// See [`super::LIST`].
    pub const FENCED: &str = "oncesink_fenced_total";
    /// See [`super::LIST`].
    pub const REWOUND: &str = "oncesink_rewound_total";
    /// See [`super::LIST`].
    pub const IN_DOUBT: &str = "oncesink_in_doubt_total";
    /// See [`super::LIST`].
    pub const REBALANCES: &str = "oncesink_rebalances_total";
    /// See [`super::LIST`].
    pub const OFFSET_GAPS: &str = "oncesink_offset_gaps_total";
    /// See [`super::LIST`].
    pub const TRANSACTION_SECONDS: &str = "oncesink_transaction_seconds";
    /// See [`super::LIST`].
    pub const BATCH_ROWS: &str = "oncesink_batch_rows";
    /// See [`super::LIST`].
    pub const BATCH_BYTES: &str = "oncesink_batch_bytes";
    /// See [`super::LIST`].
    pub const COMMIT_LATENCY_SECONDS: &str = "oncesink_commit_latency_seconds";
    /// See [`super::LIST`].
    pub const CLAIM_SECONDS: &str = "oncesink_claim_seconds";
    /// See [`super::LIST`].
    pub const REBALANCE_STALL_SECONDS: &str = "oncesink_rebalance_stall_seconds";
    /// See [`super::LIST`].
    pub const INFO: &str = "oncesink_info";
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Any value.
    Gauge,
    /// Counts by upper bounds.
    Histogram(&'static [f64]),
}

/// One metric of the facade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name, its unit last.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// Label names.
    pub labels: &'static [&'static str],
    /// Unit.
    pub unit: Unit,
    /// For people.
    pub help: &'static str,
}

const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// From a commit at once to a backlog of a day.
const LATENCIES: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0, 3600.0, 86400.0];
const ROWS: &[f64] = &[1.0, 10.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];
const BYTES: &[f64] =
    &[1024.0, 16384.0, 65536.0, 262144.0, 1048576.0, 2097152.0, 4194304.0, 8388608.0, 33554432.0];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, unit: Unit::Count, help }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    unit: Unit,
    bounds: &'static [f64],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram(bounds), labels, unit, help }
}

/// All metrics of the facade.
pub const LIST: &[Metric] = &[
    counter(
        names::RECORDS_READ,
        &["group", "topic"],
        "Records of committed transactions; read = written + collapsed + deleted + skipped + dead-lettered.",
    ),
    counter(names::RECORDS_WRITTEN, &["group", "topic"], "Records that became rows."),
    counter(
        names::RECORDS_COLLAPSED,
        &["group", "topic"],
        "Records folded into a later one of the same key.",
    ),
    counter(names::RECORDS_DELETED, &["group", "topic"], "Records that deleted a row."),
    counter(
        names::RECORDS_SKIPPED,
        &["group", "topic"],
        "Records left out by configuration; bad ones too, where they are to be skipped.",
    ),
    counter(
        names::RECORDS_DEAD_LETTERED,
        &["group", "topic", "reason"],
        "Bad records kept as dead letters, by what is wrong with them, such as not_a_number or unique; under on_bad_record = \"dead-letter\" only.",
    ),
    counter(
        names::TRANSACTIONS,
        &["group", "outcome"],
        "Transactions by outcome: committed, rolled_back, in_doubt.",
    ),
    counter(
        names::RETRIES,
        &["group", "class"],
        "Transactions tried again, by class: transient, wrong_server, sick_object, timeout, stale_catalog, and bad_record while one is looked for.",
    ),
    counter(
        names::FENCED,
        &["group", "topic"],
        "Slices that were not written because another owner or an operator holds the partition.",
    ),
    counter(
        names::REWOUND,
        &["group", "topic"],
        "Stored offsets found below the expected one, after a failover or a restore.",
    ),
    counter(
        names::IN_DOUBT,
        &["group", "settled"],
        "Transactions whose COMMIT was not answered, by what settling found: applied, not_applied, fenced, rewound.",
    ),
    counter(names::REBALANCES, &["group", "kind"], "Rebalances: assign, revoke, lost."),
    counter(
        names::OFFSET_GAPS,
        &["group", "topic", "cause"],
        "Steps from one offset to another than the next, by cause: missing (no record there: a transaction's marker, an aborted or a compacted record), below, unwanted (both dropped).",
    ),
    histogram(
        names::TRANSACTION_SECONDS,
        &["group", "phase"],
        Unit::Seconds,
        SECONDS,
        "Time of a transaction by phase: advance, write, guard, commit.",
    ),
    histogram(names::BATCH_ROWS, &["group"], Unit::Count, ROWS, "Records in a transaction."),
    histogram(names::BATCH_BYTES, &["group"], Unit::Bytes, BYTES, "Bytes of the records in a transaction."),
    histogram(
        names::COMMIT_LATENCY_SECONDS,
        &["group", "topic"],
        Unit::Seconds,
        LATENCIES,
        "From a record's timestamp to its commit, of the last record in each slice.",
    ),
    histogram(names::CLAIM_SECONDS, &["group"], Unit::Seconds, SECONDS, "From an assignment to its claim."),
    histogram(
        names::REBALANCE_STALL_SECONDS,
        &["group", "kind"],
        Unit::Seconds,
        SECONDS,
        "How long partitions stood still, by kind: assign (until all of them are claimed), revoke (until it is answered), lost (until what is assigned next is claimed).",
    ),
    Metric {
        name: names::INFO,
        kind: Kind::Gauge,
        labels: &["group", "owner", "host", "version"],
        unit: Unit::Count,
        help: "Always 1; who this process is.",
    },
];

/// Gives every metric its help text and unit; call once, after a recorder is installed.
pub fn describe() {
    for metric in LIST {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.unit, metric.help),
            Kind::Gauge => describe_gauge!(metric.name, metric.unit, metric.help),
            Kind::Histogram(_) => describe_histogram!(metric.name, metric.unit, metric.help),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_bear_prefix_unit_and_kind() {
        let mut seen = BTreeSet::new();
        for metric in LIST {
            assert!(seen.insert(metric.name), "{} twice", metric.name);
            assert!(metric.name.starts_with("oncesink_"), "{}", metric.name);
            assert!(metric.labels.contains(&"group"), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            assert_eq!(metric.name.ends_with("_seconds"), metric.unit == Unit::Seconds, "{}", metric.name);
            if let Kind::Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted_by(|a, b| a < b), "{}", metric.name);
            }
        }
    }
}
