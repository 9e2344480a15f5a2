//! Mistakes end with 2 before anything is contacted.

use std::time::Duration;

use oncesink_test_support::process::Launch;

use super::bench::{Bench, ended, run};

const PATIENCE: Duration = Duration::from_secs(60);

const BAD: &str = "[kafka]\nbrokers = \"127.0.0.1:1\"\n[sinks.o]\ntopcis = [\"t\"]\ntarget = { kind = \"postgres\", url = \"postgres://h/d\", colums = 1 }\n";

#[tokio::test]
async fn all_mistakes_are_named_at_once() {
    let ended = run(BAD, "check").await;
    assert_eq!(ended.code, 2);
    assert_eq!(
        ended.err,
        "error: oncesink.toml:3: key \"topics\" is missing in [sinks.o]; write for instance: topics = [\"orders\"]\n\
         oncesink.toml:4: unknown key \"topcis\" in [sinks.o]; did you mean \"topics\"?"
    );
}

#[tokio::test]
async fn the_bundled_sinks_own_keys_are_read_too() {
    for verb in ["check", "run", "migrate", "status"] {
        let ended = run(&BAD.replace("topcis", "topics"), verb).await;
        ended.failed(2, "oncesink.toml:5: unknown key \"colums\" in [sinks.o.target]");
    }
}

#[tokio::test]
async fn machines_get_one_object() {
    let ended = run(BAD, "status --json").await;
    assert_eq!(ended.code, 2);
    assert!(ended.out.starts_with("{\"error\":\"oncesink.toml:3: key"), "{}", ended.out);
    assert!(ended.out.ends_with(",\"exit\":2}"), "{}", ended.out);
}

#[tokio::test]
async fn a_missing_file_says_what_to_do() {
    run(BAD, "--config elsewhere.toml check").await.failed(2, "elsewhere.toml: cannot be read: No such file");
}

#[tokio::test]
async fn a_wrong_command_line_is_2() {
    run(BAD, "skip t/0 --reason x").await.failed(2, "--expect");
    run(BAD, "frobnicate").await.failed(2, "frobnicate");
}

const GOOD: &str = "[kafka]\nbrokers = \"127.0.0.1:1\"\n[sinks.o]\ntopics = [\"t\", \"^in\\\\..*\"]\ntarget = { kind = \"postgres\", url = \"postgres://app:hunter2@h/d\" }\n";

#[tokio::test]
async fn the_resolved_configuration_can_be_read_again() {
    let launch = |file: &str| Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", file);
    let resolve = |file: &str, line: &str| {
        launch(file)
            .env("ONCESINK_SINKS__O__BATCH__ROWS", "5000")
            .env("ONCESINK_SINKS__O__TABLE__UNKNOWN_FIELDS", "ignore")
            .args(line.split(' '))
            .run(PATIENCE)
    };
    let printed = ended(resolve(GOOD, "config --resolved").await).done();
    for line in [
        "brokers = \"127.0.0.1:1\"\n",
        "url = \"postgres://app:***@h/d\"\n",
        "topics = [\"t\", \"^in\\\\..*\"]\n",
        "rows = 5000                              # from ONCESINK_SINKS__O__BATCH__ROWS\n",
        "unknown_fields = \"ignore\"                # from ONCESINK_SINKS__O__TABLE__UNKNOWN_FIELDS\n",
        "group = \"oncesink-o\"                     # default\n",
    ] {
        assert!(format!("{printed}\n").contains(line), "{line}{printed}");
    }
    let again = ended(launch(&printed).args(["config", "--resolved"]).run(PATIENCE).await).done();
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned()).collect()
    };
    assert_eq!(values(&again), values(&printed));
    let machines = ended(resolve(GOOD, "config --resolved --json").await).done();
    let keys: serde_json::Value = serde_json::from_str(&machines).unwrap();
    let rows = keys.as_array().unwrap().iter().find(|key| key["path"][3] == "rows").unwrap();
    assert_eq!((&rows["value"], &rows["from"]), (&5000.into(), &"ONCESINK_SINKS__O__BATCH__ROWS".into()));
    assert!(!format!("{printed}{machines}").contains("hunter2"));
    run(GOOD, "config").await.failed(2, "--resolved");
    run(BAD, "config --resolved").await.failed(2, "unknown key \"topcis\"");
}

#[tokio::test]
async fn variables_that_are_wrong_name_the_nearest_key() {
    for (name, said) in [
        ("ONCESINK_SINKS__O__TABEL__TABLE", "unknown key \"tabel\" in [sinks.o]; did you mean \"table\"?"),
        (
            "ONCESINK_SINKS__O__TABLE__TABEL",
            "unknown key \"tabel\" in [sinks.o.table]; did you mean \"table\"?",
        ),
        (
            "ONCESINK_SINKS__O__TARGET__PASWORD",
            "unknown key \"pasword\" in [sinks.o.target]; did you mean \"password\"?",
        ),
        (
            "ONCESINK_SINKS__O__TABLES__TT__TABLE",
            "sinks.o.tables.\"tt\": no topic of this name stands in topics, and no pattern there matches it; did you mean \"t\"?",
        ),
        (
            "ONCESINK_KAFKA__SECURITY__PROTCOL",
            "unknown key \"security.protcol\" in [kafka]; did you mean \"security.protocol\"?",
        ),
        ("ONCESINK_SINK__O__DRAIN", "unknown key \"sink\" at the top; did you mean \"sinks\"?"),
    ] {
        let launch = Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", GOOD).env(name, "x");
        ended(launch.args(["check"]).run(PATIENCE).await).failed(2, &format!("{name}: {said}"));
    }
}

#[tokio::test]
async fn commands_that_help_bear_the_file_that_was_named() {
    let bench = Bench::new("remedy").await;
    let launch = |args: &[&str]| {
        Launch::new(env!("CARGO_BIN_EXE_oncesink"))
            .file("my shop.toml", &bench.file())
            .args(args.iter().copied())
    };
    let named = ["--config", "my shop.toml", "check"];
    let said = ended(launch(&named).run(PATIENCE).await);
    said.failed(3, "Run: oncesink migrate --config 'my shop.toml' (for your DBA: oncesink migrate --print --config 'my shop.toml')");
    ended(launch(&["migrate", "--config", "my shop.toml"]).run(PATIENCE).await).done();
    bench.stopped_at(0, 3).await;
    let status = ended(launch(&["--config", "my shop.toml", "status"]).run(PATIENCE).await).done();
    let place = format!("o {}/0", bench.topic);
    for command in [
        format!("oncesink resume {place} --config 'my shop.toml'"),
        format!("oncesink skip {place} --expect 3 --reason \"...\" --config 'my shop.toml'"),
    ] {
        assert!(status.contains(&command), "{command}: {status}");
    }
    // The default file goes without saying.
    bench
        .run("--config oncesink.toml status")
        .await
        .done()
        .lines()
        .for_each(|line| assert!(!line.contains("--config")));
}
