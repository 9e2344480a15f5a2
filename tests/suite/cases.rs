//! What `scripts/cases` makes of cargo's words and of its table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TABLE: &str = "# words\ncase\tpostgres\tsqlite\n\
    C001\ttest\tone process a file\n\
    C003\ttest\ttest\n\
    C005\ttest\ttest\n\
    C007\ttest\ttest\n\
    C009\tarrays\tarrays\n\
    C011\ttest\ttest\n";

const OUTPUT: &str = "\
     Running tests/suite/main.rs (target/debug/deps/suite-0)\n\
test faults::c001_concerns_no_database_in_particular ... ok\n\
test behaviour::c003_keys::postgres ... ok\n\
test behaviour::c003_keys::sqlite ... FAILED\n\
test behaviour::sqlite::c005_c007_both ... ok\n\
test behaviour::sqlite::c005_c007_more ... ok\n\
test postgres::c005_here ... ignored, for now\n\
test values::c009_shown_all_the_same_on_sqlite ... ok\n\
a line of a test that says c011_ ... ok\n\
test values::not_c011_this ... ok\n\
test result: FAILED. 5 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n";

fn scripts_cases(folder: &Path, output: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let (table, log) = (folder.join("cases.tsv"), folder.join("output"));
    fs::write(&table, TABLE).expect("writing a table");
    fs::write(&log, output).expect("writing an output");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts/cases");
    let mut command = Command::new(script);
    command.arg("--from").arg(&log).arg("--table").arg(&table).args(arguments);
    let output = command.output().expect("running scripts/cases");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("oncesink-cases-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("making a folder");
    folder
}

#[test]
fn each_case_and_database_has_its_line_with_test_or_reason() {
    let folder = folder("lines");
    let (code, lines) = scripts_cases(&folder, OUTPUT, &[]);
    let expected = "\
C001\tpostgres\tpass\tfaults::c001_concerns_no_database_in_particular\n\
C001\tsqlite\tn/a\tone process a file\n\
C003\tpostgres\tpass\tbehaviour::c003_keys::postgres\n\
C003\tsqlite\tfail\tbehaviour::c003_keys::sqlite (failed)\n\
C005\tpostgres\tfail\tpostgres::c005_here (ignored)\n\
C005\tsqlite\tpass\tbehaviour::sqlite::c005_c007_both, behaviour::sqlite::c005_c007_more\n\
C007\tpostgres\tfail\tno test\n\
C007\tsqlite\tpass\tbehaviour::sqlite::c005_c007_both, behaviour::sqlite::c005_c007_more\n\
C009\tpostgres\tn/a\tarrays\n\
C009\tsqlite\tpass\tvalues::c009_shown_all_the_same_on_sqlite\n\
C011\tpostgres\tfail\tno test\n\
C011\tsqlite\tfail\tno test\n";
    assert_eq!(lines, expected);
    assert_eq!(code, Some(1));
    fs::remove_dir_all(folder).expect("removing the folder");
}

#[test]
fn it_ends_well_only_when_all_that_was_asked_for_is_covered() {
    let folder = folder("exit");
    for (case, code) in [("C001", 0), ("C009", 0), ("C003", 1), ("C011", 1)] {
        assert_eq!(scripts_cases(&folder, OUTPUT, &[case]).0, Some(code), "{case}");
    }
    assert_eq!(scripts_cases(&folder, OUTPUT, &["C999"]).0, Some(2), "not in the table");
    let list =
        "behaviour::c003_keys::postgres: test\nbehaviour::c003_keys::sqlite: test\n\n2 tests, 0 benchmarks\n";
    assert_eq!(scripts_cases(&folder, list, &["C003"]).0, Some(1), "a list is no run");
    let (code, lines) = scripts_cases(&folder, list, &["--check", "C003"]);
    assert_eq!((code, lines.matches("\tthere\t").count()), (Some(0), 2), "{lines}");
    fs::remove_dir_all(folder).expect("removing the folder");
}

#[test]
fn the_table_has_a_word_for_every_case_and_database() {
    let table = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases.tsv"));
    let table = table.expect("the table");
    let mut names = Vec::new();
    for line in table.lines().filter(|line| line.starts_with('C')) {
        let cells: Vec<&str> = line.split('\t').collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.trim().is_empty()), "{line}");
        names.push(cells[0]);
    }
    assert!(names.is_sorted() && names.len() >= 57, "{} cases, sorted", names.len());
    names.dedup();
    assert_eq!(names.len(), table.lines().filter(|line| line.starts_with('C')).count(), "each once");
}
