//! Mistakes end with 2 before anything is contacted.

use super::bench::run;

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
