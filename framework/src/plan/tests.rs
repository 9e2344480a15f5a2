//! The plan against a table that lives in memory: what a batch comes to equals its records applied one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, Part, SliceBuilder};
use crate::error::{Reason, SinkError};
use crate::record::TopicPartition;
use crate::value::{Fault, Form};

/// Columns `id`, `a`, `b` and `p`; in a table that reaches, deleting a row deletes those whose `p` names it.
#[derive(Debug)]
struct Memory {
    columns: Vec<Column>,
    reaches: bool,
}

const ID: usize = 0;
const P: usize = 3;

impl Memory {
    fn new(reaches: bool) -> Self {
        let columns = ["id", "a", "b", "p"].map(|name| Column {
            name: name.to_owned(),
            type_name: "number".to_owned(),
            takes: Takes::Plain,
            not_null: name == "id",
            required: name == "id",
            insert_only: false,
            insertable: true,
            updatable: true,
        });
        Self { columns: columns.into(), reaches }
    }
}

impl Table for Memory {
    fn display(&self) -> String {
        "t".to_owned()
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn encode(&self, _: usize, cell: Cell<'_>, _: &Form, out: &mut Vec<u8>) -> Result<(), Fault> {
        match cell {
            Cell::Json(raw) => out.extend_from_slice(raw.as_bytes()),
            Cell::Bytes(_) => return Err(Fault::new(Reason::WrongType, "bytes")),
        }
        Ok(())
    }

    /// 1 and 1.0 are one key.
    fn key_form(&self, _: usize, encoded: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(encoded.strip_suffix(b".0").unwrap_or(encoded));
    }

    fn check_key(&self, _: &[usize]) -> Result<(), String> {
        Ok(())
    }

    fn deletes_reach_other_rows(&self) -> bool {
        self.reaches
    }

    fn json_types(&self) -> &'static str {
        "none"
    }
}

/// What is done to one key.
#[derive(Clone, Debug)]
enum Change {
    Delete,
    /// By column but the key: what the record carries; null is a value.
    Put(BTreeMap<usize, Option<u8>>),
}

#[derive(Clone, Debug)]
struct Step {
    partition: i32,
    key: u8,
    /// Writes the key as 1.0.
    long: bool,
    change: Change,
}

type Row = BTreeMap<usize, Option<String>>;
type Rows = BTreeMap<String, Row>;
type Places = BTreeSet<(usize, i64)>;

fn key_of(text: &str) -> String {
    text.strip_suffix(".0").unwrap_or(text).to_owned()
}

fn batch(steps: &[Step], without: &Places) -> Batch {
    let parts = (0..2).map(|partition| {
        let mut slice = SliceBuilder::new(TopicPartition::new("t", partition), 0);
        for (offset, step) in steps.iter().filter(|step| step.partition == partition).enumerate() {
            if without.contains(&(partition as usize, offset as i64)) {
                continue;
            }
            let key = format!("{}{}", step.key, if step.long { ".0" } else { "" });
            let value = match &step.change {
                Change::Delete => None,
                Change::Put(fields) => {
                    let field = |(column, value): (&usize, &Option<u8>)| {
                        let value = value.map_or("null".to_owned(), |value| value.to_string());
                        format!("\"{}\":{value}", ["id", "a", "b", "p"][*column])
                    };
                    Some(format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(",")))
                }
            };
            slice.push(
                offset as i64,
                None,
                None,
                Some(key.as_bytes()),
                value.as_deref().map(str::as_bytes),
                [],
            );
        }
        Part::whole(Arc::new(slice.build()))
    });
    Batch::new(parts.collect())
}

fn delete(rows: &mut Rows, key: &str, reaches: bool) {
    if rows.remove(key).is_none() || !reaches {
        return;
    }
    let children = rows.iter().filter(|(_, row)| row.get(&P).and_then(Option::as_deref) == Some(key));
    let children: Vec<String> = children.map(|(child, _)| child.clone()).collect();
    children.iter().for_each(|child| delete(rows, child, reaches));
}

fn put(rows: &mut Rows, mode: Mode, key: &str, cells: Row) {
    match mode {
        Mode::InsertIgnore if rows.contains_key(key) => {}
        // No row is made by an update; the records behind it were found missing.
        Mode::Update if !rows.contains_key(key) => {}
        _ => rows.entry(key.to_owned()).or_default().extend(cells),
    }
}

/// The records one by one: the rows, and the places of those that change a row that is not there.
fn one_by_one(steps: &[Step], mode: Mode, reaches: bool, rows: &mut Rows) -> Places {
    let mut bad = Places::new();
    for partition in 0..2 {
        for (offset, step) in steps.iter().filter(|step| step.partition == partition).enumerate() {
            let key = step.key.to_string();
            match &step.change {
                Change::Delete => delete(rows, &key, reaches),
                Change::Put(_) if mode == Mode::Update && !rows.contains_key(&key) => {
                    bad.insert((partition as usize, offset as i64));
                }
                Change::Put(fields) => {
                    let cells = fields.iter().map(|(c, v)| (*c, v.map(|v| v.to_string()))).collect();
                    put(rows, mode, &key, cells);
                }
            }
        }
    }
    bad
}

/// What a connector does with changes. It ends where rows are missing, before it changes any, and answers their records.
fn apply(changes: &Changes, mode: Mode, reaches: bool, rows: &mut Rows) -> Places {
    let key_at = |chosen: &Chosen<'_>, nth: usize| {
        let at = chosen.group.columns.binary_search(&ID).unwrap();
        key_of(std::str::from_utf8(chosen.cells(nth).nth(at).unwrap().unwrap()).unwrap())
    };
    let missing = |rows: &Rows, chosen: &Chosen<'_>| -> Places {
        let lacks = |nth: &usize| !rows.contains_key(&key_at(chosen, *nth));
        let of = |nth: usize| chosen.sources[nth].iter().map(|at| (at.part, at.offset));
        (0..chosen.sources.len()).filter(lacks).flat_map(of).collect()
    };
    let bad = missing(rows, &changes.changed_before_deletes());
    if !bad.is_empty() {
        return bad;
    }
    let deletes = changes.deletes();
    (0..deletes.len()).for_each(|nth| delete(rows, &key_at(&deletes, nth), reaches));
    let bad: Places = changes.groups().flat_map(|chosen| missing(rows, &chosen)).collect();
    if !bad.is_empty() {
        return bad;
    }
    for chosen in changes.groups() {
        for nth in 0..chosen.len() {
            let text = |cell: Option<&[u8]>| cell.map(|cell| String::from_utf8(cell.to_vec()).unwrap());
            let cells = chosen.group.columns.iter().copied().zip(chosen.cells(nth).map(text));
            let cells = cells.filter(|(column, _)| *column != ID).collect();
            put(rows, mode, &key_at(&chosen, nth), cells);
        }
    }
    bad
}

fn mappings(mode: Mode, reaches: bool) -> Mappings<Memory> {
    let delete = if mode.folds() { r#","delete":"tombstone""# } else { "" };
    let keys = format!(r#"{{"mode":"{}","key":["id"]{delete}}}"#, mode.name());
    let mut mappings = Mappings::default();
    mappings.add(
        "t",
        Mapping::compile(&serde_json::from_str(&keys).unwrap(), Arc::new(Memory::new(reaches))).unwrap(),
    );
    mappings
}

/// The whole batch, without its bad records as they come up: the rows, and the bad ones.
fn folded(steps: &[Step], mode: Mode, reaches: bool, before: &Rows) -> (Rows, Places) {
    let mappings = mappings(mode, reaches);
    let mut bad = Places::new();
    loop {
        let batch = batch(steps, &bad);
        let planned = match mappings.encode(&batch) {
            Ok(planned) => planned,
            Err(SinkError::Bad(found)) => {
                bad.extend(found.iter().map(|bad| (bad.place.partition as usize, bad.offset)));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(planned.written.total().total(), batch.len(), "the books");
        let mut rows = before.clone();
        let missing: Places = planned
            .targets
            .iter()
            .map(|(_, changes)| apply(changes, mode, reaches, &mut rows))
            .find(|missing| !missing.is_empty())
            .unwrap_or_default();
        if missing.is_empty() {
            return (rows, bad);
        }
        bad.extend(missing);
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fields = proptest::collection::btree_map(1..4_usize, proptest::option::of(0..5_u8), 0..=3);
    let change = prop_oneof![1 => Just(Change::Delete), 2 => fields.prop_map(Change::Put)];
    let step = (0..2_i32, 0..5_u8, any::<bool>(), change).prop_map(|(partition, key, long, change)| Step {
        partition,
        key,
        long,
        change,
    });
    proptest::collection::vec(step, 0..24)
}

proptest! {
    #[test]
    fn what_a_batch_comes_to_equals_its_records_one_by_one(
        mut steps in steps(),
        mode in prop_oneof![Just(Mode::Upsert), Just(Mode::Update), Just(Mode::InsertIgnore)],
        reaches in any::<bool>(),
    ) {
        if !mode.folds() {
            steps.retain(|step| matches!(step.change, Change::Put(_)));
        }
        let before: Rows = (0..3).map(|key: u8| (key.to_string(), Row::from([(1, Some("9".to_owned()))]))).collect();
        let mut expected = before.clone();
        let expected_bad = one_by_one(&steps, mode, reaches, &mut expected);
        let (rows, bad) = folded(&steps, mode, reaches, &before);
        prop_assert_eq!(bad, expected_bad);
        prop_assert_eq!(rows, expected);
    }
}

/// Changes of one batch of key and value, in partition 0.
fn changes_of(keys: &str, records: &[(Option<&str>, Option<&str>)]) -> Result<Planned, SinkError> {
    let mut mappings = Mappings::default();
    let mapping = Mapping::compile(&serde_json::from_str(keys).unwrap(), Arc::new(Memory::new(false)));
    mappings.add("t", mapping.unwrap());
    let mut slice = SliceBuilder::new(TopicPartition::new("t", 0), 0);
    for (offset, (key, value)) in records.iter().enumerate() {
        let header = [(b"h".as_slice(), Some(b"\xff".as_slice()))];
        slice.push(offset as i64, None, None, key.map(str::as_bytes), value.map(str::as_bytes), header);
    }
    mappings.encode(&Batch::new(vec![Part::whole(Arc::new(slice.build()))]))
}

#[test]
fn a_record_that_deletes_is_read_for_its_key_only() {
    let keys = r#"{"mode":"upsert","key":["id"],"delete":"tombstone","columns":{"a":"header.h"}}"#;
    let planned = changes_of(keys, &[(Some("1"), None)]).unwrap();
    assert_eq!(planned.written.total().deleted, 1);
    assert!(changes_of(keys, &[(Some("1"), Some("{}"))]).is_err(), "the header is no text");
}

#[test]
fn key_from_value_names_fields_also_where_others_are_not_found_by_name() {
    let keys = r#"{"mode":"upsert","key":["id"],"key_from":"value","delete":"none","by_name":false,"columns":{"a":"value.x"}}"#;
    let planned = changes_of(keys, &[(None, Some(r#"{"id":1,"x":2}"#))]).unwrap();
    assert_eq!(planned.targets[0].1.groups().next().unwrap().group.columns, [0, 1]);
}

#[test]
fn a_null_beside_a_key_is_another_key() {
    let keys = r#"{"mode":"upsert","key":["id"],"delete":"none"}"#;
    let error = changes_of(keys, &[(Some("1"), Some(r#"{"id":null}"#))]).unwrap_err();
    assert!(matches!(&error, SinkError::Bad(bad) if bad[0].reason == Reason::Rejected), "{error}");
    assert!(changes_of(keys, &[(Some("1"), Some(r#"{"id":1.0}"#))]).is_ok());
}

#[test]
fn without_a_key_rows_of_several_shapes_keep_the_order_of_their_records() {
    let values = [r#"{"id":1}"#, r#"{"id":2,"a":1}"#, r#"{"id":2}"#].map(|value| (None, Some(value)));
    let planned = changes_of(r#"{"mode":"insert-ignore"}"#, &values).unwrap();
    let order: Vec<_> =
        planned.targets[0].1.in_order().map(|(group, row)| (group.columns.len(), row)).collect();
    assert_eq!(order, [(1, 0), (2, 0), (1, 1)]);
}

#[test]
fn the_outlook_counts_fields_that_go_somewhere() {
    let mut mappings = Mappings::default();
    let keys = r#"{"mode":"upsert","key":["id"],"delete":"none","columns":{"a":"value.x"}}"#;
    let mapping = Mapping::compile(&serde_json::from_str(keys).unwrap(), Arc::new(Memory::new(false)));
    mappings.add("t", mapping.unwrap());
    let outlook = mappings.outlook("t", &["id", "x", "b", "z"]).unwrap();
    assert_eq!((outlook.known, outlook.way.as_str()), (3, "mode upsert, key (id)"));
    assert_eq!(mappings.outlook("u", &[]), None);
}

#[test]
fn a_delete_has_its_key_columns_in_the_tables_order_whatever_the_files() {
    let keys = r#"{"mode":"upsert","key":["b","id"],"delete":"tombstone"}"#;
    let planned = changes_of(keys, &[(Some(r#"{"b":2,"id":1}"#), None)]).unwrap();
    let deletes = planned.targets[0].1.deletes();
    assert_eq!(deletes.group.columns, [0, 2]);
    assert_eq!(deletes.cells(0).collect::<Vec<_>>(), [Some(b"1".as_slice()), Some(b"2")]);
}
