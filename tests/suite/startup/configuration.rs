//! Mistakes in the file: exit 2, file and line and key, nothing contacted.

use super::stage::{Row, Run};

const fn wrong(
    what: &'static str,
    file: &'static [(&'static str, &'static str)],
    says: &'static [&'static str],
) -> Row {
    Row { what, sql: "", file, exit: 2, says, run: Run::Ends }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file() {
    let rows = vec![
        wrong(
            "no topics",
            &[("topics = ", "topcis = ")],
            &["oncesink.toml:8: unknown key \"topcis\" in [sinks.s]; did you mean \"topics\"?"],
        ),
        wrong(
            "an unknown section",
            &[("[http]", "[htpp]")],
            &["oncesink.toml:4: unknown key \"htpp\"", "did you mean \"http\"?"],
        ),
        wrong("not TOML", &[("group = \"@s\"", "group = @s")], &["oncesink.toml:9"]),
        wrong(
            "a forced property",
            &[("[http]", "\"enable.auto.commit\" = true\n[http]")],
            &["oncesink.toml:4: ", "enable.auto.commit"],
        ),
        wrong(
            "an unknown property",
            &[("[http]", "\"sesion.timeout.ms\" = 1\n[http]")],
            &["oncesink.toml:4: ", "sesion.timeout.ms", "session.timeout.ms"],
        ),
        wrong(
            "a time without a unit",
            &[("group = \"@s\"", "drain = \"20\"")],
            &["oncesink.toml:9: ", "drain"],
        ),
        wrong(
            "an unknown kind",
            &[("kind = \"postgres\"", "kind = \"oracle\"")],
            &["oncesink.toml:12: ", "oracle", "postgres"],
        ),
        wrong(
            "a URL of another kind",
            &[("\"@url\"", "\"mysql://h/d\"")],
            &["oncesink.toml:13: ", "postgres://"],
        ),
        wrong(
            "an unknown key of the table",
            &[("table = \"@t\"", "tabel = \"@t\"")],
            &["oncesink.toml:16: unknown key \"tabel\"", "did you mean \"table\"?"],
        ),
        wrong(
            "a later part's key",
            &[("table = \"@t\"", "mode = \"newer-wins\"")],
            &["oncesink.toml:16: ", "mode"],
        ),
        wrong(
            "a mode without its key",
            &[("table = \"@t\"", "mode = \"upsert\"")],
            &["oncesink.toml:15: ", "key = [\"id\"]"],
        ),
    ];
    super::all("file", rows).await;
}
