//! The log lines of bad records that were set aside: a few a second for a whole sink, then one line that says how many more there were.
//!
//! Must not: bear anything of a record but its coordinates. A line is written when its record was passed over for good, not when it was found.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::OnBadRecord;
use crate::error::BadRecord;

/// Lines within a window.
const LINES_MAX: usize = 5;
const WINDOW: Duration = Duration::from_secs(1);

/// What was told, shared by the writers of a sink.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Window>);

impl Told {
    /// Records were set aside.
    pub(crate) fn aside<'b>(
        &self,
        policy: OnBadRecord,
        records: impl Iterator<Item = &'b BadRecord>,
        now: Instant,
    ) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for bad in records {
            window.rest(now);
            if window.takes(now) {
                line(policy, bad);
            }
        }
    }

    /// Says what was left out, when its time has come. Called often.
    pub(crate) fn rest(&self, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rest(now);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).close();
    }
}

fn line(policy: OnBadRecord, bad: &BadRecord) {
    let what = match policy {
        OnBadRecord::Skip => "skipped",
        OnBadRecord::Stop | OnBadRecord::DeadLetter => "dead-lettered",
    };
    tracing::warn!(
        reason = bad.reason.code(),
        table = bad.table.as_deref(),
        column = bad.column.as_deref(),
        "{}@{} {what}: {}",
        bad.place,
        bad.offset,
        bad.message
    );
}

#[derive(Debug, Default)]
struct Window {
    began: Option<Instant>,
    lines: usize,
    left_out: usize,
}

impl Window {
    /// Whether there is room for a line.
    fn takes(&mut self, now: Instant) -> bool {
        self.began.get_or_insert(now);
        let room = self.lines < LINES_MAX;
        if room {
            self.lines += 1;
        } else {
            self.left_out += 1;
        }
        room
    }

    /// Ends a window that is over; answers how many records it left out.
    fn rest(&mut self, now: Instant) -> usize {
        if self.began.is_some_and(|began| now.saturating_duration_since(began) >= WINDOW) {
            self.close()
        } else {
            0
        }
    }

    fn close(&mut self) -> usize {
        let left_out = self.left_out;
        if left_out > 0 {
            tracing::warn!("{left_out} more bad records were set aside within that second");
        }
        *self = Self::default();
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_a_second_and_then_how_many_more_there_were() {
        let (mut window, began) = (Window::default(), Instant::now());
        let lines = (0..100).filter(|_| window.takes(began)).count();
        assert_eq!(lines, LINES_MAX);
        assert_eq!(window.rest(began + WINDOW / 2), 0, "not yet");
        assert_eq!(window.rest(began + WINDOW), 100 - LINES_MAX);
        assert_eq!(window.rest(began + WINDOW), 0, "told once");
        assert!(window.takes(began + WINDOW));
        assert_eq!(window.rest(began + 3 * WINDOW), 0, "nothing was left out");
    }
}
