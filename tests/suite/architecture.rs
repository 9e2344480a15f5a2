//! The code map's invariants name tests; each of them is there.

use std::fs;
use std::path::Path;

/// All Rust sources below a folder, in one text.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of the tree") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn every_invariant_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map");
    let mut text = String::new();
    for folder in ["framework", "connectors", "src", "tests"] {
        sources(&root.join(folder), &mut text);
    }
    let table =
        map.split("## Invariants").nth(1).expect("the invariants").split("\n\n").nth(1).expect("their table");
    let mut named = 0;
    for row in table.lines().skip(2) {
        let guard = row.rsplit('|').nth(1).expect("a guard");
        let names =
            guard.split('`').skip(1).step_by(2).filter(|name| name.contains("::") || name.ends_with('*'));
        for name in names {
            let last = name.trim_end_matches('*').trim_end_matches("::").rsplit("::").next().expect("a name");
            let there = [format!("fn {last}"), format!("mod {last};"), format!("mod {last} {{")];
            assert!(there.iter().any(|there| text.contains(there)), "{name} is not there: {row}");
            named += 1;
        }
    }
    assert!(named > 15, "{named} names were found");
}
