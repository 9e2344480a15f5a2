//! Keeps the rows from being through before the damage is done: each statement that writes rows is held up by a trigger, for all contenders alike.
//!
//! Transactions are open nearly all the time, too, so that a kill finds one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::contender::Contender;

/// The trigger and the time that it sleeps.
pub(crate) const TABLE: &str = "
    CREATE TABLE throttle (ms int);
    INSERT INTO throttle VALUES (60);
    CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep((SELECT ms FROM throttle) / 1000.0); RETURN NULL; END';
    CREATE TRIGGER hold_up AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION hold_up();";

/// Transactions are at least so long while there is damage to come.
const SHORTEST_MS: i64 = 60;
const LONGEST_MS: i64 = 250;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How much of the damage is done, in thousandths.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU32);

impl Progress {
    pub(crate) fn set(&self, done: usize, of: usize) {
        self.0.store((1000 * done / of.max(1)) as u32, Ordering::Relaxed);
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed).into()
    }
}

/// Holds the rows back to the pace of the damage, for ever, by the partition that is the furthest. Seven tenths of the rows are for
/// the damage; the others are for after it, and so that no partition runs out when its owner is the fastest.
pub(crate) async fn pace(contender: &Contender, progress: &Progress) {
    loop {
        let written = contender.written().await;
        let shares =
            written.iter().zip(0..).map(|(seq, partition)| 1000 * seq / contender.orders.of(partition));
        let ahead = shares.max().unwrap_or(0) - progress.get() * 7 / 10;
        let ms = (SHORTEST_MS + ahead * 10).clamp(SHORTEST_MS, LONGEST_MS);
        set(contender, ms).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Ends holding up.
pub(crate) async fn open(contender: &Contender) {
    set(contender, 0).await;
}

async fn set(contender: &Contender, ms: i64) {
    contender.execute(&format!("UPDATE throttle SET ms = {ms} WHERE ms <> {ms}")).await;
}
