//! The gate before COMMIT: either COMMIT is sent, or the transaction was withdrawn, never both.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

const OPEN: u8 = 0;
const COMMITTING: u8 = 1;
const WITHDRAWN: u8 = 2;

/// Shared by the transaction and the writer that may have to take a partition out of it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU8,
    changed: Notify,
}

impl Gate {
    /// Withdraws the transaction unless COMMIT was sent.
    pub(crate) fn withdraw(&self) {
        if self.turn(WITHDRAWN) {
            self.changed.notify_waiters();
        }
    }

    /// Passes to COMMIT; false when the transaction was withdrawn.
    pub(crate) fn pass(&self) -> bool {
        self.turn(COMMITTING)
    }

    /// Whether COMMIT was, or is about to be, sent.
    pub(crate) fn passed(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMMITTING
    }

    /// Waits until the transaction is withdrawn; for ever when it commits.
    pub(crate) async fn withdrawn(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.state.load(Ordering::Acquire) == WITHDRAWN {
                return;
            }
            changed.await;
        }
    }

    fn turn(&self, to: u8) -> bool {
        self.state.compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    #[test]
    fn commit_and_withdrawal_exclude_each_other() {
        let gate = Gate::default();
        assert!(gate.pass());
        gate.withdraw();
        assert!(gate.passed());
        let gate = Gate::default();
        gate.withdraw();
        assert!(!gate.pass() && !gate.passed());
    }
}
