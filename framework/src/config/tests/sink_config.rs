//! The keys of a third party's sink get the same errors.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Ledger {
    largest_cents: i64,
    #[serde(default)]
    fast: bool,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    table: LedgerTable,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct LedgerTable {
    table: Option<String>,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    #[default]
    Insert,
    Append,
}

fn ledger(lines: &str, variables: &[(&str, &str)]) -> Result<Ledger, ConfigError> {
    load(&target(lines), variables).unwrap().sinks[0].sink_config()
}

#[test]
fn a_third_partys_keys() {
    let read = ledger("largest_cents = 5_000\n[sinks.o.table]\ntable = \"a.${topic}\"", &[]).unwrap();
    assert_eq!(read.largest_cents, 5000);
    assert_eq!(read.table.table.as_deref(), Some("a.${topic}"));
    let read = ledger(
        "largest_cents = 1",
        &[
            ("ONCESINK_SINKS__O__TARGET__LARGEST_CENTS", "7"),
            ("ONCESINK_SINKS__O__TARGET__FAST", "true"),
            ("ONCESINK_SINKS__O__TARGET__NAMES", "a,b"),
            ("ONCESINK_SINKS__O__TARGET__MODE", "append"),
        ],
    )
    .unwrap();
    assert_eq!((read.largest_cents, read.fast, read.mode), (7, true, Mode::Append));
    assert_eq!(read.names, ["a", "b"]);
}

#[test]
fn a_third_partys_mistakes() {
    for (lines, variables, expected) in [
        (
            "largest_cent = 5",
            [].as_slice(),
            "oncesink.toml:8: unknown key \"largest_cent\" in [sinks.o.target]; did you mean \"largest_cents\"?",
        ),
        ("fast = true", &[], "oncesink.toml:5: key \"largest_cents\" is missing in [sinks.o.target]"),
        (
            "largest_cents = \"hunter2\"",
            &[],
            "oncesink.toml:8: sinks.o.target.largest_cents: expected i64, found a string",
        ),
        (
            "largest_cents = 1\nmode = \"newer-wins\"",
            &[],
            "oncesink.toml:9: sinks.o.target.mode: \"newer-wins\" is not known yet: it is planned for a later version",
        ),
        (
            "largest_cents = 1\nmode = \"apend\"",
            &[],
            "oncesink.toml:9: sinks.o.target.mode: unknown value \"apend\"; did you mean \"append\"?",
        ),
        (
            "largest_cents = 1\nnames = [\n1]",
            &[],
            "oncesink.toml:10: sinks.o.target.names: expected a string, found integer `1`",
        ),
        (
            "largest_cents = 1\n[sinks.o.table]\ntabel = \"x\"",
            &[],
            "oncesink.toml:10: unknown key \"tabel\" in [sinks.o.table]; did you mean \"table\"?",
        ),
        (
            "largest_cents = 1\n[sinks.o.table]\nchildren = []",
            &[],
            "oncesink.toml:10: key \"children\" in [sinks.o.table] is not known yet: it is planned for a later version",
        ),
        (
            "largest_cents = 1\n[sinks.o.tables.t]\ntable = \"x\"",
            &[],
            "oncesink.toml:9: unknown key \"tables\" in [sinks.o]; did you mean \"table\"?",
        ),
        (
            "largest_cents = 1",
            &[("ONCESINK_SINKS__O__TARGET__FAST", "yes")],
            "ONCESINK_SINKS__O__TARGET__FAST: sinks.o.target.fast: expected true or false, found other text",
        ),
    ] {
        assert_eq!(ledger(lines, variables).expect_err(expected).to_string(), expected, "{lines}");
    }
}

#[test]
fn a_kind_with_one_writer_takes_no_more() {
    let file = |writers: &str, kind: &str, url: &str| {
        load(
            &format!(
                "[kafka]\nbrokers = \"b:1\"\n[sinks.o]\ntopics = [\"t\"]\n{writers}\n[sinks.o.target]\nkind = \"{kind}\"\nurl = \"{url}\"\n"
            ),
            &[],
        )
    };
    let writers = |writers, kind, url| file(writers, kind, url).unwrap().sinks[0].writers;
    assert_eq!(writers("", "sqlite", "sqlite:shop.db"), 1);
    assert_eq!(writers("writers = 1", "sqlite", "sqlite:///srv/shop.db"), 1);
    assert_eq!(writers("", "postgres", "postgres://h/d"), 2);
    let refused = file("writers = 2", "sqlite", "sqlite:shop.db").unwrap_err().to_string();
    assert!(
        refused.contains("oncesink.toml:5: sinks.o.writers: kind = \"sqlite\" has one writer"),
        "{refused}"
    );
    let shown = |url| file("", "sqlite", url).unwrap().sinks[0].target.shown();
    assert_eq!(shown("sqlite:shop.db"), "sqlite:shop.db");
    assert_eq!(shown("sqlite:///srv/shop.db"), "sqlite:///srv/shop.db");
    let scheme = file("", "sqlite", "postgres://h/d").unwrap_err().to_string();
    assert!(scheme.contains("which takes one like \"sqlite:shop.db\""), "{scheme}");
}
