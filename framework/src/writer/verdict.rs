//! The one word for what a settle found, for metrics.

use crate::store::{Settled, Step};

/// Label of `oncesink_in_doubt_total{settled}`: the steps that are still ours decide for the transaction.
pub(crate) fn verdict(steps: &[Step], settled: &[Settled]) -> &'static str {
    let mut mine = steps.iter().zip(settled).filter_map(|(step, settled)| match settled {
        Settled::Mine { offset, .. } => Some((step.interval, *offset)),
        Settled::Fenced => None,
    });
    let Some((interval, offset)) = mine.next() else { return "fenced" };
    if offset == interval.to && mine.clone().all(|(interval, offset)| offset == interval.to) {
        "applied"
    } else if offset == interval.from && mine.all(|(interval, offset)| offset == interval.from) {
        "not_applied"
    } else {
        "rewound"
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::batch::SliceEnd;
    use crate::position::Interval;
    use crate::record::TopicPartition;
    use crate::store::Fence;

    #[test]
    fn those_that_are_still_ours_decide() {
        let fence = Fence { epoch: 1, token: Uuid::nil() };
        let step = |partition| Step {
            place: TopicPartition::new("t", partition),
            fence,
            interval: Interval { from: 5, to: 9 },
            end: SliceEnd::default(),
        };
        let steps = [step(0), step(1)];
        let mine = |offset| Settled::Mine { offset, fence };
        for (settled, expected) in [
            ([mine(9), mine(9)], "applied"),
            ([mine(9), Settled::Fenced], "applied"),
            ([Settled::Fenced, mine(5)], "not_applied"),
            ([mine(5), mine(5)], "not_applied"),
            ([Settled::Fenced, Settled::Fenced], "fenced"),
            ([mine(3), mine(5)], "rewound"),
            ([mine(9), mine(5)], "rewound"),
        ] {
            assert_eq!(verdict(&steps, &settled), expected, "{settled:?}");
        }
    }
}
