//! Many rows, many shapes, many columns.

use crate::fixture::{Fixture, batch};

#[tokio::test]
async fn ten_thousand_rows_in_one_batch() {
    let fixture = Fixture::new("many", "CREATE TABLE t (seq bigint, amount numeric(12,2), note text)").await;
    let note = "é".repeat(100);
    let values: Vec<_> =
        (0..10_000).map(|seq| format!(r#"{{"seq":{seq},"amount":{seq}.25,"note":"{note}"}}"#)).collect();
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let written = fixture.write(&sink, &mut batch(&values)).await.unwrap();
    assert_eq!(written.total().records, 10_000);
    let found = fixture.rows("SELECT count(*), count(DISTINCT seq) AS seqs, sum(seq), sum(amount) AS amount, min(length(note)) AS note FROM t").await;
    assert_eq!(found, [r#"{"count":10000,"seqs":10000,"sum":49995000,"amount":49997500.00,"note":100}"#]);
}

#[tokio::test]
async fn many_shapes_keep_their_defaults() {
    // Every subset of ten fields: 1,024 shapes of one row each.
    let columns: Vec<_> = (0..10).map(|index| format!("c{index} integer DEFAULT -1")).collect();
    let fixture = Fixture::new("shapes", &format!("CREATE TABLE t ({})", columns.join(", "))).await;
    let values: Vec<_> = (0..1024_u32)
        .map(|set| {
            let fields: Vec<_> = (0..10)
                .rev()
                .filter(|bit| set >> bit & 1 == 1)
                .map(|bit| format!(r#""c{bit}":{set}"#))
                .collect();
            format!("{{{}}}", fields.join(","))
        })
        .collect();
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    fixture.write(&sink, &mut batch(&values)).await.unwrap();
    assert_eq!(fixture.schema.count("t").await, 1024);
    let masks: Vec<_> =
        (0..10).map(|index| format!("CASE WHEN c{index} = -1 THEN 0 ELSE {} END", 1 << index)).collect();
    let wrong: i64 = fixture
        .schema
        .value(&format!(
            "SELECT 1024 - count(DISTINCT mask) FROM (SELECT {} AS mask, greatest(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9) AS said FROM t) AS x
              WHERE mask = said OR (mask = 0 AND said = -1)",
            masks.join(" + ")
        ))
        .await;
    assert_eq!(wrong, 0);
}

#[tokio::test]
async fn a_table_of_two_hundred_columns() {
    let columns: Vec<_> = (0..200).map(|index| format!("c{index} integer DEFAULT -1")).collect();
    let fixture = Fixture::new("wide", &format!("CREATE TABLE t ({})", columns.join(", "))).await;
    let sink = fixture.open("{}", &["t"]).await.unwrap();
    let all = |row: usize| {
        let fields: Vec<_> = (0..200).map(|index| format!(r#""c{index}":{}"#, row + index)).collect();
        format!("{{{}}}", fields.join(","))
    };
    let copied: Vec<_> = (0..300).map(all).collect();
    fixture.write(&sink, &mut batch(&copied)).await.unwrap();
    // Two hundred shapes of one column: by VALUES; and all columns in them again, so that parameters are many.
    let mut shapes: Vec<_> = (0..200).map(|index| format!(r#"{{"c{index}":{index}}}"#)).collect();
    shapes.extend((0..400).map(all));
    fixture.write(&sink, &mut batch(&shapes)).await.unwrap();
    assert_eq!(fixture.schema.count("t").await, 900);
    assert_eq!(fixture.schema.value::<i64>("SELECT count(*) FROM t WHERE c199 = c0 + 199").await, 700);
    assert_eq!(fixture.schema.value::<i64>("SELECT count(*) FROM t WHERE c199 = 199 AND c0 = -1").await, 1);
}
