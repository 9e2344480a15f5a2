//! Polling with a deadline, the only way that these tests wait for something.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// Calls `look` until it gives `Some`, at least once.
///
/// # Panics
/// When `deadline` has passed.
#[track_caller]
pub fn eventually<T, F, Looking>(deadline: Duration, mut look: F) -> impl Future<Output = T>
where
    F: FnMut() -> Looking,
    Looking: Future<Output = Option<T>>,
{
    let caller = std::panic::Location::caller();
    async move {
        let begin = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(begin.elapsed() < deadline, "not seen within {deadline:?}, waited for at {caller}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Calls `look` until `wanted` holds for what it gives, and gives that back.
///
/// # Panics
/// When `deadline` has passed; the message shows the last value seen.
#[track_caller]
pub fn eventually_within<T, F, Looking>(
    deadline: Duration,
    mut look: F,
    wanted: impl Fn(&T) -> bool,
) -> impl Future<Output = T>
where
    T: Debug,
    F: FnMut() -> Looking,
    Looking: Future<Output = T>,
{
    let caller = std::panic::Location::caller();
    async move {
        let begin = Instant::now();
        loop {
            let seen = look().await;
            if wanted(&seen) {
                return seen;
            }
            assert!(
                begin.elapsed() < deadline,
                "not seen within {deadline:?}, waited for at {caller}; last seen: {seen:?}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}
