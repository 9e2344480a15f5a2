//! What is seen while it runs: two bars on a terminal, two plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use super::plan::{Killed, Plan};

const EVERY: Duration = Duration::from_millis(100);
const CELLS: i64 = 20;

/// One side's state, written by the thread that drives it.
#[derive(Debug, Default)]
pub(super) struct Bar {
    rows: AtomicI64,
    kills: AtomicU32,
    inside: AtomicU32,
}

impl Bar {
    pub(super) fn rows(&self, rows: i64) {
        self.rows.store(rows, Ordering::Relaxed);
    }

    pub(super) fn killed(&self, killed: Killed) {
        self.kills.store(killed.kills, Ordering::Relaxed);
        self.inside.store(killed.inside, Ordering::Relaxed);
    }

    fn text(&self, name: &str, orders: i64, says: &str) -> String {
        let rows = self.rows.load(Ordering::Relaxed);
        let full = (rows * CELLS / orders.max(1)).clamp(0, CELLS);
        let cells: String = (0..CELLS).map(|cell| if cell < full { '█' } else { '░' }).collect();
        format!("{name:<9} {cells}  {}/{}   {says}", grouped(rows), grouped(orders))
    }
}

/// Both sides.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) once: Bar,
    pub(super) naive: Bar,
}

impl Board {
    /// Draws until both are over; what was drawn last stays.
    pub(super) fn draw(&self, plan: &Plan, wanted: bool, over: impl Fn() -> bool) {
        let mut out = std::io::stdout();
        let terminal = wanted && out.is_terminal();
        let mut drawn = false;
        loop {
            let last = over();
            if terminal || (wanted && last) {
                // Back to where the bars began, and over them. A line that is wider than the terminal is cut by it, not wrapped.
                let (back, clear) = match (terminal, drawn) {
                    (true, true) => ("\x1b[2A\r\x1b[?7l", "\x1b[K"),
                    (true, false) => ("\x1b[?7l", "\x1b[K"),
                    (false, _) => ("", ""),
                };
                let [once, naive] = self.lines(plan);
                let wrap = if terminal { "\x1b[?7h" } else { "" };
                let _ = writeln!(out, "{back}{once}{clear}\n{naive}{clear}{wrap}").and_then(|()| out.flush());
                drawn = true;
            }
            if last {
                return;
            }
            std::thread::sleep(EVERY);
        }
    }

    fn lines(&self, plan: &Plan) -> [String; 2] {
        let (kills, inside) =
            (self.once.kills.load(Ordering::Relaxed), self.once.inside.load(Ordering::Relaxed));
        let naive = match self.naive.kills.load(Ordering::Relaxed) {
            same if same == kills => "the same kills".to_owned(),
            other => format!("{other} kills"),
        };
        [
            self.once.text(
                "oncesink",
                plan.orders,
                &format!("{kills} kills with SIGKILL, {inside} of them inside a transaction"),
            ),
            self.naive.text("naive", plan.orders, &format!("{naive}; writes rows, then commits to Kafka")),
        ]
    }
}

/// With commas between the thousands.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (63_118, "63,118"), (-1_234_567, "-1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn the_bars_have_their_shape() {
        let board = Board::default();
        let plan = Plan::new(60_000, 9);
        board.once.rows(60_000);
        board.once.killed(Killed { kills: 9, inside: 7 });
        board.naive.rows(30_000);
        board.naive.killed(Killed { kills: 9, inside: 3 });
        assert_eq!(
            board.lines(&plan),
            [
                "oncesink  ████████████████████  60,000/60,000   9 kills with SIGKILL, 7 of them inside a transaction",
                "naive     ██████████░░░░░░░░░░  30,000/60,000   the same kills; writes rows, then commits to Kafka",
            ]
        );
    }
}
