//! Rows by key: whatever the size of the batch decides about the way of writing, the table is the same.

use oncesink::{Batch, Counts, SinkError};

use crate::fixture::{Fixture, batch, keyed};

const UPSERT: &str = r#"{"table":{"mode":"upsert","key":["id"],"key_from":"value","delete":"none"}}"#;
const BY_KEY: &str = r#"{"table":{"mode":"upsert","key":["id"],"delete":"tombstone"}}"#;
const UPDATE: &str = r#"{"table":{"mode":"update","key":["id"],"key_from":"value","delete":"none"}}"#;

/// Sizes on either side of where another way of writing begins.
const SIZES: [i64; 3] = [1, 300, 2500];

#[tokio::test]
async fn an_absent_column_keeps_its_value_and_children_stay_whatever_the_size() {
    for rows in SIZES {
        let fixture = Fixture::new(
            "upserts",
            "CREATE TABLE t (id bigint PRIMARY KEY, a integer, b integer DEFAULT 7);
             CREATE TABLE child (id bigint REFERENCES t ON DELETE CASCADE);
             CREATE TABLE seen (op text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (TG_OP); RETURN NULL; END $$;
             INSERT INTO t SELECT n, 0, 5 FROM generate_series(1, 5000, 2) n;
             INSERT INTO child SELECT id FROM t;
             CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();",
        )
        .await;
        let sink = fixture.open(UPSERT, &["t"]).await.unwrap();
        let values: Vec<_> = (1..=rows).rev().map(|id| format!(r#"{{"a":{id},"id":{id}}}"#)).collect();
        let written = fixture.write(&sink, &mut batch(&values)).await.unwrap();
        assert_eq!(written.total().records as i64, rows);
        let wrong: i64 = fixture
            .schema
            .value(&format!(
                "SELECT count(*) FROM t WHERE (id <= {rows}) IS DISTINCT FROM (a = id) OR b <> CASE id % 2 WHEN 1 THEN 5 ELSE 7 END"
            ))
            .await;
        assert_eq!(wrong, 0, "{rows}");
        assert_eq!(fixture.schema.count("child").await, 2500);
        let ops: Vec<String> =
            fixture.schema.column("SELECT op || count(*) FROM seen GROUP BY op ORDER BY 1").await;
        let odd = (rows + 1) / 2;
        let mut expected = vec![format!("UPDATE{odd}")];
        if rows > odd {
            expected.insert(0, format!("INSERT{}", rows - odd));
        }
        assert_eq!(ops, expected, "{rows}");
    }
}

#[tokio::test]
async fn the_net_effect_is_that_of_one_by_one_in_every_cut() {
    let records: Vec<(String, Option<String>)> = random_records(600);
    let mut tables = Vec::new();
    for cut in [1, 7, 100, 600] {
        let fixture = Fixture::new(
            "fold",
            "CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer DEFAULT 1, c text)",
        )
        .await;
        let sink = fixture.open(BY_KEY, &["t"]).await.unwrap();
        let mut total = Counts::default();
        for piece in records.chunks(cut) {
            let piece: Vec<_> = piece.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
            let counts = fixture.write(&sink, &mut keyed(&piece)).await.unwrap().total();
            total.records += counts.records;
            total.collapsed += counts.collapsed;
            total.deleted += counts.deleted;
        }
        assert_eq!(total.total(), records.len());
        tables.push(fixture.rows("TABLE t").await);
    }
    assert!(tables[0].len() > 5);
    assert!(tables.iter().all(|table| *table == tables[0]), "{tables:#?}");
}

/// Keys 0 to 19; a third of the records deletes, the others carry some of three columns.
fn random_records(count: u32) -> Vec<(String, Option<String>)> {
    let mut seed = 7_u32;
    let mut next = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    (0..count)
        .map(|nth| {
            let (key, kind) = (next() % 20, next() % 9);
            let value = (kind > 2).then(|| {
                let fields: Vec<_> =
                    [("a", nth.to_string()), ("b", "null".to_owned()), ("c", format!("\"{nth}\""))]
                        .into_iter()
                        .enumerate()
                        .filter(|(bit, _)| kind >> bit & 1 == 1)
                        .map(|(_, (name, value))| format!("\"{name}\":{value}"))
                        .collect();
                format!("{{{}}}", fields.join(","))
            });
            (key.to_string(), value)
        })
        .collect()
}

#[tokio::test]
async fn an_update_needs_its_row_and_names_the_records_that_have_none() {
    for rows in SIZES {
        let fixture = Fixture::new(
            "updates",
            "CREATE TABLE t (id integer PRIMARY KEY, a integer, b text NOT NULL);
             INSERT INTO t SELECT n, 0, 'kept' FROM generate_series(1, 2500) n;",
        )
        .await;
        let sink = fixture.open(UPDATE, &["t"]).await.unwrap();
        let mut values: Vec<_> = (1..=rows).map(|id| format!(r#"{{"a":{id},"id":{id}}}"#)).collect();
        fixture.write(&sink, &mut batch(&values)).await.unwrap();
        let right: i64 = fixture.schema.value("SELECT count(*) FROM t WHERE a = id AND b = 'kept'").await;
        assert_eq!(right, rows);
        values.push(r#"{"id":9000,"a":1}"#.to_owned());
        values.push(r#"{"id":9000,"a":2}"#.to_owned());
        let Err(SinkError::Bad(bad)) = fixture.write(&sink, &mut batch(&values)).await else {
            panic!("not bad")
        };
        assert_eq!(bad.iter().map(|bad| bad.offset).collect::<Vec<_>>(), [rows, rows + 1]);
        assert!(bad[0].message.contains("has this key"), "{}", bad[0].message);
    }
}

#[tokio::test]
async fn insert_ignore_leaves_rows_that_are_there() {
    for rows in SIZES {
        let fixture = Fixture::new(
            "ignores",
            "CREATE TABLE t (id integer PRIMARY KEY, a integer); INSERT INTO t VALUES (1, 0)",
        )
        .await;
        let sink = fixture
            .open(r#"{"table":{"mode":"insert-ignore","key":["id"],"key_from":"value"}}"#, &["t"])
            .await
            .unwrap();
        let mut values: Vec<_> = (1..=rows).map(|id| format!(r#"{{"a":{id},"id":{id}}}"#)).collect();
        values.push(format!(r#"{{"a":-1,"id":{rows}}}"#));
        fixture.write(&sink, &mut batch(&values)).await.unwrap();
        let right: i64 =
            fixture.schema.value("SELECT count(*) FROM t WHERE a = CASE id WHEN 1 THEN 0 ELSE id END").await;
        assert_eq!(right, rows);
    }
}

#[tokio::test]
async fn equal_keys_are_one_key_however_they_are_written() {
    let fixture =
        Fixture::new("equal", "CREATE TABLE t (id numeric, r real, a integer, PRIMARY KEY (id, r))").await;
    let config = r#"{"table":{"mode":"upsert","key":["id","r"],"key_from":"value","delete":"none"}}"#;
    let values =
        [r#"{"id":1,"r":0,"a":1}"#, r#"{"id":1.00,"r":-0.0,"a":2}"#, r#"{"id":"1e0","r":0.0,"a":3}"#];
    let written = fixture.put(config, &values).await.unwrap();
    assert_eq!((written.total().records, written.total().collapsed), (1, 2));
    assert_eq!(fixture.schema.value::<i32>("SELECT a FROM t").await, 3);
}

#[tokio::test]
async fn keys_that_the_table_does_not_keep_unique_are_refused() {
    let fixture = Fixture::new(
        "keyless",
        "CREATE TABLE t (id integer, a integer, j jsonb, UNIQUE (id) DEFERRABLE);
         CREATE UNIQUE INDEX ON t (a) WHERE a > 0; CREATE UNIQUE INDEX ON t (j);",
    )
    .await;
    for (config, expected) in [
        (
            r#"{"table":{"mode":"upsert","key":["id"],"delete":"none"}}"#,
            "no unique index on exactly these columns",
        ),
        (
            r#"{"table":{"mode":"upsert","key":["a"],"delete":"none"}}"#,
            "no unique index on exactly these columns",
        ),
        (r#"{"table":{"mode":"upsert","key":["j"],"delete":"none"}}"#, "two of its values can be equal"),
        (r#"{"table":{"mode":"upsert","key":["nope"],"delete":"none"}}"#, "no column \"nope\""),
    ] {
        let message = fixture.refusal(config, "t").await;
        assert!(
            message.contains(expected) && message.contains("[sinks.<name>.table]"),
            "{config}: {message}"
        );
    }
}

#[tokio::test]
async fn an_empty_batch_of_keys_writes_nothing() {
    let fixture = Fixture::new("nothing", "CREATE TABLE t (id integer PRIMARY KEY)").await;
    let sink = fixture.open(BY_KEY, &["t"]).await.unwrap();
    let written = fixture.write(&sink, &mut Batch::new(Vec::new())).await.unwrap();
    assert_eq!(written.total(), Counts::default());
}
