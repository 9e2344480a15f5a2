//! Figures, as a table for people and as JSON for programs.

use serde::Serialize;

/// All names, in the order in which they are measured.
pub(crate) const NAMES: [&str; 8] = [
    "encode",
    "copy_100_rows_guard",
    "guarantee_cost_10000",
    "guarantee_cost_1000",
    "insert_one_writer",
    "insert_two_writers",
    "sqlite_insert",
    "sqlite_upsert_new",
];

/// One ratio, and what it is to be.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// What ours is divided by.
    pub(crate) against: &'static str,
    /// One ratio for each round.
    pub(crate) ratios: Vec<f64>,
    /// `>= x` or `<= x`.
    pub(crate) target: &'static str,
    /// An earlier build: for people only, the program's own list has one figure of a name.
    pub(crate) base: bool,
    /// Absolute figures and what they are, for people.
    pub(crate) note: String,
}

#[derive(Serialize)]
struct Line<'f> {
    name: &'f str,
    against: &'f str,
    ratio: f64,
    target: &'f str,
    command: String,
}

impl Figure {
    fn met(&self) -> bool {
        let (comparison, bound) = self.target.split_once(' ').expect("a comparison and a bound");
        let bound: f64 = bound.parse().expect("a number");
        if comparison == ">=" { median(&self.ratios) >= bound } else { median(&self.ratios) <= bound }
    }
}

pub(crate) struct Report {
    pub(crate) figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "{:<22} {:>7} {:>15}  {:<8} {:<4} {}\n",
            "name", "ratio", "min..max", "target", "met", "against"
        );
        for figure in &self.figures {
            let span = format!("{:.3}..{:.3}", least(&figure.ratios), most(&figure.ratios));
            let met = if figure.met() { "yes" } else { "no" };
            table += &format!(
                "{:<22} {:>7.3} {:>15}  {:<8} {:<4} {}\n",
                figure.name,
                median(&figure.ratios),
                span,
                figure.target,
                met,
                figure.against
            );
            for line in figure.note.lines() {
                table += &format!("    {line}\n");
            }
        }
        table
    }

    pub(crate) fn json(&self) -> String {
        let lines: Vec<_> = self
            .figures
            .iter()
            .filter(|figure| !figure.base)
            .map(|figure| Line {
                name: figure.name,
                against: figure.against,
                ratio: (median(&figure.ratios) * 1000.0).round() / 1000.0,
                target: figure.target,
                command: format!("scripts/bench {}", figure.name),
            })
            .collect();
        serde_json::to_string_pretty(&lines).expect("figures are JSON") + "\n"
    }
}

/// The middle one; the mean of the two in the middle of an even number.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

pub(crate) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(crate) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// `median (min..max)` without decimals.
pub(crate) fn span(values: &[f64]) -> String {
    format!("{:.0} ({:.0}..{:.0})", median(values), least(values), most(values))
}
