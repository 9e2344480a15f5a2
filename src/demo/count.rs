//! The count at the end, the table, and the verdict.

use serde::Serialize;

use super::orders;
use super::plan::{INSIDE_MIN, KILLS_MIN, Killed, Plan};
use super::progress::grouped;

/// Rows against the orders that were in the topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) rows: i64,
    /// Orders without a row.
    pub(super) missing: i64,
    /// Rows beyond the first of an order, and rows of no order at all.
    pub(super) duplicates: i64,
}

impl Count {
    /// Counts by the rows' own ids, not by what anybody says was written.
    pub(super) fn of(ids: &[String], orders: i64) -> Self {
        let mut seen = vec![false; usize::try_from(orders).unwrap_or(0)];
        let mut first = 0;
        for id in ids {
            let number = orders::number(id).and_then(|number| usize::try_from(number).ok());
            if let Some(seen) = number.and_then(|number| seen.get_mut(number))
                && !std::mem::replace(seen, true)
            {
                first += 1;
            }
        }
        let rows = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        Self { rows, missing: orders - first, duplicates: rows - first }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Outcome {
    pub(super) orders: i64,
    #[serde(rename = "oncesink")]
    pub(super) once_rows: Count,
    #[serde(rename = "naive")]
    pub(super) naive_rows: Count,
    #[serde(rename = "oncesink_kills")]
    pub(super) once: Killed,
    #[serde(rename = "naive_kills")]
    pub(super) naive: Killed,
}

impl Outcome {
    /// The table for people.
    pub(super) fn table(&self) -> String {
        let line = |name: &str, count: &Count| {
            let [rows, missing, duplicates] = [count.rows, count.missing, count.duplicates].map(grouped);
            format!("{name:<8}{rows:>10}{missing:>10}{duplicates:>12}")
        };
        let note = match self.naive_rows.duplicates {
            0 => "",
            _ => "      <- what the usual order of commits costs; also proves that this count can see it",
        };
        format!(
            "{:<8}{:>10}{:>10}{:>12}\n{}\n{}{note}\n",
            "",
            "rows",
            "missing",
            "duplicates",
            line("oncesink", &self.once_rows),
            line("naive", &self.naive_rows),
        )
    }

    /// Whether this shows what it is there to show.
    ///
    /// # Errors
    /// What is wrong: a row lost or doubled, or a run in which none could have been.
    pub(super) fn verdict(&self, plan: &Plan) -> Result<(), String> {
        let Count { missing, duplicates, .. } = self.once_rows;
        if missing != 0 || duplicates != 0 {
            return Err(format!(
                "oncesink lost {missing} rows and doubled {duplicates}: please report it, with demo.log"
            ));
        }
        if self.naive_rows.duplicates == 0 {
            return Err(
                "the naive order of commits shows no duplicate, so this run proves nothing: once more".into(),
            );
        }
        let Killed { kills, inside } = self.once;
        let planned = plan.kills.max(KILLS_MIN);
        if kills < planned || inside < INSIDE_MIN {
            return Err(format!(
                "only {kills} kills, {inside} of them inside a transaction, so this run proves little: once more"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: impl IntoIterator<Item = i64>) -> Vec<String> {
        numbers.into_iter().map(orders::id).collect()
    }

    fn outcome() -> Outcome {
        let count = |rows, missing, duplicates| Count { rows, missing, duplicates };
        Outcome {
            orders: 60_000,
            once_rows: count(60_000, 0, 0),
            naive_rows: count(63_118, 0, 3_118),
            once: Killed { kills: 9, inside: 7 },
            naive: Killed { kills: 9, inside: 3 },
        }
    }

    #[test]
    fn what_is_lost_and_what_is_doubled_do_not_make_up_for_each_other() {
        assert_eq!(Count::of(&ids(0..10), 10), Count { rows: 10, missing: 0, duplicates: 0 });
        assert_eq!(Count::of(&ids((0..9).chain([4])), 10), Count { rows: 10, missing: 1, duplicates: 1 });
        assert_eq!(Count::of(&ids([3, 3, 3]), 10), Count { rows: 3, missing: 9, duplicates: 2 });
        assert_eq!(Count::of(&ids(0..11), 10), Count { rows: 11, missing: 0, duplicates: 1 }, "of no order");
        assert_eq!(Count::of(&["x".into()], 1), Count { rows: 1, missing: 1, duplicates: 1 });
    }

    #[test]
    fn the_table_has_its_shape() {
        assert_eq!(
            outcome().table(),
            "              rows   missing  duplicates\n\
             oncesink    60,000         0           0\n\
             naive       63,118         0       3,118      <- what the usual order of commits costs; also proves that this count can see it\n"
        );
    }

    #[test]
    fn a_row_lost_or_doubled_is_a_failure_and_so_is_a_run_that_shows_nothing() {
        let plan = Plan::new(60_000, 9);
        let verdict = |change: fn(&mut Outcome)| {
            let mut outcome = outcome();
            change(&mut outcome);
            outcome.verdict(&plan)
        };
        assert_eq!(verdict(|_| ()), Ok(()));
        for (change, says) in [
            ((|o| o.once_rows.missing = 1) as fn(&mut Outcome), "lost 1"),
            (|o| o.once_rows.duplicates = 1, "doubled 1"),
            (|o| o.naive_rows.duplicates = 0, "no duplicate"),
            (|o| o.once.kills = 8, "only 8 kills"),
            (|o| o.once.inside = 1, "1 of them inside"),
        ] {
            assert!(verdict(change).unwrap_err().contains(says), "{says}");
        }
    }
}
