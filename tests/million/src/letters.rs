//! What is among the dead letters, asked of the database alone: which orders, how often, and what is said to be wrong with them.

use std::fmt;

use sqlx::Row;

use crate::contender::Contender;
use crate::orders::Fault;

/// The account of the command's dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letters {
    count: i64,
    missing: i64,
    doubled: i64,
    /// What else is wrong with them.
    broken: Vec<String>,
}

/// An order is told by its bytes, not by where the record stood.
const LETTERS: &str = "
    SELECT count(*) AS letters, sum(attempts)::bigint AS attempts, count(DISTINCT (partition_id, seq)) FILTER (WHERE @bad) AS different,
           count(*) FILTER (WHERE NOT (@bad)) AS good, count(*) FILTER (WHERE reason = 'not_a_number') AS spoilt,
           count(*) FILTER (WHERE reason = 'check' AND sql_state = '23514') AS refused
    FROM (SELECT (value ->> 'partition_id')::int AS partition_id, (value ->> 'seq')::bigint AS seq, attempts, reason, sql_state
          FROM (SELECT convert_from(record_value, 'UTF8')::json AS value, attempts, reason, sql_state FROM oncesink_dead_letters) AS read) AS each";

impl Letters {
    /// Reads the table.
    pub(crate) async fn read(contender: &Contender) -> Self {
        let orders = contender.orders;
        let sql = LETTERS.replace("@bad", &orders.is_bad());
        let row = sqlx::query(&sql).fetch_one(&contender.pool).await.expect("the dead letters");
        let of = |name: &str| row.get::<Option<i64>, _>(name).unwrap_or(0);
        let [spoilt, refused] = [Fault::Spoilt, Fault::Refused].map(|fault| orders.total_of(fault));
        let mut broken = Vec::new();
        let mut same = |what: &str, seen: i64, expected: i64| {
            if seen != expected {
                broken.push(format!("{seen} dead letters {what}, instead of {expected}"));
            }
        };
        same("of good orders", of("good"), 0);
        same("of a word for an amount", of("spoilt"), spoilt);
        same("of a check that failed", of("refused"), refused);
        let (different, once) = (of("different"), of("different") + of("good"));
        let (missing, doubled) = (spoilt + refused - different, of("attempts") - once);
        Self { count: of("letters"), missing, doubled, broken }
    }

    /// What is wrong with dead letters that should be there once.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.broken.clone();
        if (self.missing, self.doubled) != (0, 0) {
            faults.push(self.to_string());
        }
        faults
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, missing {}, doubled {}", self.count, self.missing, self.doubled)
    }
}
