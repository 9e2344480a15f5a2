//! Ending sessions of our own group that hold a row and do not move.
//!
//! Invariant: only sessions with our application name **and** our role in our database are ended, never foreign ones. What they held is rolled back by
//! the server; a COMMIT already under way is not undone by it.

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use sqlx::Row;
use tracing::{debug, warn};

use super::Postgres;
use super::session::{Session, SessionId};
use crate::error::Failure;

/// How often the watch looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long an answer waits for the look under way.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// Those that block us, are ours, have been in their transaction for some time and do not wait for a lock themselves: who waits is not frozen, and
/// its own lock timeout ends the wait.
const END_BLOCKERS: &str = "
    SELECT a.pid, pg_terminate_backend(a.pid) AS ended, a.state
    FROM UNNEST(pg_blocking_pids($1)) AS b (pid)
    JOIN pg_stat_activity AS a ON a.pid = b.pid
    WHERE a.application_name = current_setting('application_name')
      AND a.usename = session_user
      AND a.datname = current_database()
      AND a.pid NOT IN ($1, pg_backend_pid())
      AND a.wait_event_type IS DISTINCT FROM 'Lock'
      AND a.xact_start < clock_timestamp() - $2 * INTERVAL '1 millisecond'";

const END_SESSION: &str = "
    SELECT pg_terminate_backend(a.pid) AS ended
    FROM pg_stat_activity AS a
    WHERE a.pid = $1
      AND (EXTRACT(EPOCH FROM a.backend_start) * 1000000)::bigint = $2
      AND a.application_name = current_setting('application_name')
      AND a.usename = session_user
      AND a.datname = current_database()";

/// Runs `waiting`, which waits for a lock on the session `waiter`; meanwhile a second session ends those of our own that block it and whose
/// transaction is older than `age`.
pub(super) async fn watched<T>(
    store: &Postgres,
    waiter: SessionId,
    age: Duration,
    waiting: impl Future<Output = T>,
) -> T {
    tokio::pin!(waiting);
    let mut watch = Watch { store, waiter, age, session: None, ended: HashSet::new() };
    loop {
        // First the pause: a row that is free needs no second session.
        tokio::select! {
            biased;
            answer = &mut waiting => return answer,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let look = watch.look();
        tokio::pin!(look);
        tokio::select! {
            biased;
            answer = &mut waiting => {
                // Perhaps it was this look that freed the row, before it heard so itself.
                let _ = tokio::time::timeout(LAST_LOOK, look).await;
                return answer;
            }
            () = &mut look => {}
        }
    }
}

struct Watch<'a> {
    store: &'a Postgres,
    waiter: SessionId,
    age: Duration,
    session: Option<Session>,
    /// A backend that was ended may be listed for a moment longer; it is told and counted once.
    ended: HashSet<i32>,
}

impl Watch<'_> {
    async fn look(&mut self) {
        if let Err(failure) = self.end_blockers().await {
            debug!(%failure, "cannot look for sessions that hold a row");
        }
    }

    async fn end_blockers(&mut self) -> Result<(), Failure> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.store.session().await?,
        };
        let age_ms = i64::try_from(self.age.as_millis()).unwrap_or(i64::MAX);
        let blockers = sqlx::query(END_BLOCKERS)
            .bind(self.waiter.pid)
            .bind(age_ms)
            .fetch_all(&mut session.connection)
            .await?;
        self.session = Some(session);
        for blocker in blockers {
            let (pid, ended): (i32, bool) = (blocker.try_get("pid")?, blocker.try_get("ended")?);
            let state: Option<String> = blocker.try_get("state")?;
            if ended && self.ended.insert(pid) {
                self.store.count_ended();
                warn!(pid, state, "ended a frozen session of this group that held a row");
            }
        }
        Ok(())
    }
}

/// Ends exactly this session, if it is still there and still ours. Answers whether it was.
pub(super) async fn end_session(store: &Postgres, id: SessionId) -> Result<bool, Failure> {
    let mut session = store.session().await?;
    let found = sqlx::query(END_SESSION)
        .bind(id.pid)
        .bind(id.started)
        .fetch_optional(&mut session.connection)
        .await?;
    session.close().await;
    let ended = match found {
        Some(row) => row.try_get("ended")?,
        None => false,
    };
    if ended {
        store.count_ended();
    }
    Ok(ended)
}
