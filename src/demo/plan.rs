//! When a side is killed: all along its way, and on until what is to be shown was shown.

use serde::Serialize;

/// Kills without which nothing is shown, and how many of them must hit a transaction.
pub(crate) const KILLS_MIN: u32 = 5;
pub(super) const INSIDE_MIN: u32 = 2;
/// Kills beyond the planned ones come this many times closer together.
const CLOSER: i64 = 10;

/// What was done to a side so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Killed {
    /// By SIGKILL.
    pub(super) kills: u32,
    /// Those of them while a transaction was open.
    pub(super) inside: u32,
}

/// The same for both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) orders: i64,
    pub(super) kills: u32,
}

impl Plan {
    pub(super) fn new(orders: i64, kills: u32) -> Self {
        Self { orders, kills: kills.max(KILLS_MIN) }
    }

    /// After how many rows more the next kill comes; none when enough is `shown` and the side may go on to the end.
    pub(super) fn next(&self, killed: Killed, shown: bool) -> Option<i64> {
        let step = self.orders / (i64::from(self.kills) + 1);
        if killed.kills >= self.kills {
            return (!shown).then_some((step / CLOSER).max(1));
        }
        // Uneven, or a kill might always come when just as much was written as is fetched at a time.
        let percent = 75 + i64::from(killed.kills) * 37 % 50;
        Some((step * percent / 100).max(1))
    }

    /// Whether the next kill must hit a transaction. Three in four must; the others hit what they hit.
    pub(super) fn must_be_inside(killed: Killed) -> bool {
        killed.kills % 4 != 3 || (killed.kills >= KILLS_MIN && killed.inside < INSIDE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_come_all_along_the_way_and_then_closer_until_it_is_shown() {
        let killed = |kills| Killed { kills, inside: 9 };
        for kills in KILLS_MIN..=50 {
            let plan = Plan::new(60_000, kills);
            let next = |done| plan.next(killed(done), true).expect("also when enough was shown");
            let steps: Vec<i64> = (0..kills).map(next).collect();
            let way: i64 = steps.iter().sum();
            assert!((45_000..60_000).contains(&way), "{kills}: {steps:?}");
            assert!(steps.windows(2).all(|pair| pair[0] != pair[1]), "{steps:?}");
        }
        let plan = Plan::new(60_000, 9);
        assert_eq!(plan.next(killed(9), true), None);
        assert_eq!(plan.next(killed(9), false), Some(600));
        assert_eq!(Plan::new(60_000, 0).kills, KILLS_MIN);
    }

    #[test]
    fn three_in_four_kills_must_hit_a_transaction_and_all_if_too_few_did() {
        let must = |kills, inside| Plan::must_be_inside(Killed { kills, inside });
        let of_nine = (0..9).filter(|kills| must(*kills, *kills)).count();
        assert_eq!(of_nine, 7);
        assert!(!must(7, 2) && must(7, 1));
    }
}
