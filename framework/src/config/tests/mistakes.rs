//! Every kind of mistake, with the message that names place, key and remedy.

use super::*;

type Case<'a> = (String, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn mistakes_are_named_with_place_key_and_remedy() {
    let long = "x".repeat(256);
    let cases: Vec<Case<'_>> = vec![
        // No TOML.
        ("[kafka\n".into(), &[], "oncesink.toml:1: this is no TOML: "),
        ("[kafka]\nbrokers = localhost\n".into(), &[], "oncesink.toml:2: this is no TOML: "),
        (kafka("brokers = \"again\""), &[], "oncesink.toml:3: this is no TOML: duplicate key"),
        // Unknown keys.
        (
            sink("wrtiers = 2"),
            &[],
            "oncesink.toml:6: unknown key \"wrtiers\" in [sinks.o]; did you mean \"writers\"?",
        ),
        (
            sink("batch = { row = 1 }"),
            &[],
            "oncesink.toml:6: unknown key \"row\" in [sinks.o.batch]; did you mean \"rows\"?",
        ),
        (
            sink("[htpp]\nlisten = \"127.0.0.1:1\""),
            &[],
            "oncesink.toml:6: unknown key \"htpp\" at the top; did you mean \"http\"?",
        ),
        (
            kafka("security.protcol = \"ssl\""),
            &[],
            "oncesink.toml:3: unknown key \"security.protcol\" in [kafka]; did you mean \"security.protocol\"?",
        ),
        (
            sink("[http]\nport = 1"),
            &[],
            "oncesink.toml:7: unknown key \"port\" in [http]; known here: listen",
        ),
        (
            sink(""),
            &[("ONCESINK_SINKS__O__WRITER", "1")],
            "ONCESINK_SINKS__O__WRITER: unknown key \"writer\" in [sinks.o]; did you mean \"writers\"?",
        ),
        (
            sink(""),
            &[("ONCESINK_HTPP__LISTEN", "1")],
            "ONCESINK_HTPP__LISTEN: unknown key \"htpp\" at the top; did you mean \"http\"?",
        ),
        // Planned.
        (
            sink("[http]\nadmin = { listen = \"x\" }"),
            &[],
            "oncesink.toml:7: key \"admin\" in [http] is not known yet: it is planned for a later version",
        ),
        (
            target("pooler = true"),
            &[],
            "oncesink.toml:8: key \"pooler\" in [sinks.o.target] is not known yet: it is planned",
        ),
        (
            sink("on_bad_record = { policy = \"dead-letter\", stop_after = \"1000 in 10 min\" }"),
            &[],
            "oncesink.toml:6: sinks.o.on_bad_record: a policy with a limit (stop_after) is planned for a later version",
        ),
        (
            sink("on_bad_record = \"dead_letter\""),
            &[],
            "oncesink.toml:6: sinks.o.on_bad_record: unknown value \"dead_letter\"; did you mean \"dead-letter\"",
        ),
        (
            sink("").replace("[\"t\"]", "[\"^t(.*\"]"),
            &[],
            "oncesink.toml:4: sinks.o.topics: \"^t(.*\" is no regex: unclosed group",
        ),
        (
            sink("").replace("[\"t\"]", "[\"^t.*\", \"^t.*\"]"),
            &[],
            "oncesink.toml:4: sinks.o.topics: \"^t.*\" is named twice",
        ),
        (
            sink("[sinks.o.tables.\"shop.ordres\"]\ntable = \"x\"")
                .replace("[\"t\"]", "[\"shop.orders\", \"^t.*\"]"),
            &[],
            "oncesink.toml:6: sinks.o.tables.\"shop.ordres\": no topic of this name stands in topics, and no pattern there matches it; did you mean \"shop.orders\"?",
        ),
        (
            sink("[sinks.o.tables.x]\ntable = \"x\""),
            &[],
            "oncesink.toml:6: sinks.o.tables.\"x\": no topic of this name stands in topics; did you mean \"t\"?",
        ),
        (
            sink(""),
            &[("ONCESINK_SINKS__O__TOPICS", "[\"t\", 1]")],
            "ONCESINK_SINKS__O__TOPICS: sinks.o.topics: a list that begins with [ must be one of strings",
        ),
        (
            target("").replace("\"ledger\"", "\"mysql\""),
            &[],
            "oncesink.toml:6: sinks.o.target.kind: \"mysql\" is not known yet: it is planned",
        ),
        // Missing.
        ("".into(), &[], "oncesink.toml: key \"brokers\" is missing in [kafka]; write for instance"),
        (
            "[kafka]\nbrokers = \"b\"\n".into(),
            &[],
            "oncesink.toml: there is no sink; write a table [sinks.<name>]",
        ),
        (
            target("").replace("kind = \"ledger\"\n", ""),
            &[],
            "oncesink.toml:5: key \"kind\" is missing in [sinks.o.target]",
        ),
        (
            target("").replace("url = \"postgres://h/d\"\n", ""),
            &[],
            "oncesink.toml:5: key \"url\" is missing in [sinks.o.target]",
        ),
        // Wrong type.
        (
            sink("writers = \"2\""),
            &[],
            "oncesink.toml:6: sinks.o.writers: expected a whole number, found a string",
        ),
        (
            sink("").replace("[\"t\"]", "\"t\""),
            &[],
            "oncesink.toml:4: sinks.o.topics: expected a list of strings, found a string",
        ),
        (sink("batch = 10"), &[], "oncesink.toml:6: sinks.o.batch: expected a table, found an integer"),
        (
            sink(""),
            &[("ONCESINK_SINKS__O__WRITERS", "two")],
            "ONCESINK_SINKS__O__WRITERS: sinks.o.writers: \"two\" is no whole number",
        ),
        (
            sink(""),
            &[("ONCESINK_SINKS__O__TOPICS__X", "1")],
            "ONCESINK_SINKS__O__TOPICS__X: sinks.o.topics is no section, it has no key \"x\"",
        ),
        // Units.
        (
            sink("drain = 20"),
            &[],
            "oncesink.toml:6: sinks.o.drain: 20 has no unit; write for instance \"20 s\"",
        ),
        (
            sink("timeout = \"20 parsecs\""),
            &[],
            "oncesink.toml:6: sinks.o.timeout: \"20 parsecs\" is no duration",
        ),
        (sink("memory = \"64\""), &[], "oncesink.toml:6: sinks.o.memory: \"64\" is no size"),
        (
            sink("batch = { bytes = 4 }"),
            &[],
            "oncesink.toml:6: sinks.o.batch.bytes: 4 has no unit; write for instance \"4 MiB\"",
        ),
        // Ranges.
        (
            sink("writers = 0"),
            &[],
            "oncesink.toml:6: sinks.o.writers: 0 is out of range, 1 to 64 is possible",
        ),
        (
            sink("timeout = \"5 ms\""),
            &[],
            "oncesink.toml:6: sinks.o.timeout: 5 ms is out of range, 1 s to 1 h is possible",
        ),
        (
            sink("batch = { bytes = \"1 GiB\" }"),
            &[],
            "oncesink.toml:6: sinks.o.batch.bytes: 1 GiB is out of range, 1 KiB to 512 MiB",
        ),
        // Words.
        (
            sink("start = \"earlyest\""),
            &[],
            "oncesink.toml:6: sinks.o.start: unknown value \"earlyest\"; write earliest, latest or a time",
        ),
        (
            sink("on_expired = 5"),
            &[],
            "oncesink.toml:6: sinks.o.on_expired: expected a string, found an integer",
        ),
        (
            sink("on_expired = \"stpo\""),
            &[],
            "oncesink.toml:6: sinks.o.on_expired: unknown value \"stpo\"; write stop, earliest, latest",
        ),
        (
            sink("into_rows = \"yes\""),
            &[],
            "oncesink.toml:6: sinks.o.into_rows: unknown value \"yes\"; known here: accept",
        ),
        (
            target("").replace("\"ledger\"", "\"legder\""),
            &[],
            "oncesink.toml:6: sinks.o.target.kind: unknown value \"legder\"; did you mean \"ledger\"?",
        ),
        (
            target("").replace("\"ledger\"", "\"oracle\""),
            &[],
            "oncesink.toml:6: sinks.o.target.kind: unknown value \"oracle\"; known here: ledger, postgres",
        ),
        // Kafka.
        (
            kafka("enable.auto.commit = true"),
            &[],
            "oncesink.toml:3: kafka: \"enable.auto.commit\" cannot be set: offsets live in the database",
        ),
        (
            kafka("\"group.id\" = \"x\""),
            &[],
            "oncesink.toml:3: kafka: \"group.id\" cannot be set: the group belongs to the sink; write group in [sinks.<name>]",
        ),
        (
            kafka("isolation.level = \"read_uncommitted\""),
            &[],
            "oncesink.toml:3: kafka: \"isolation.level\" cannot be set: records of aborted",
        ),
        (
            kafka("check.crcs = false"),
            &[],
            "oncesink.toml:3: kafka: \"check.crcs\" cannot be set: without it a flipped byte",
        ),
        (
            kafka("api.version.request = false"),
            &[],
            "oncesink.toml:3: kafka: \"api.version.request\" cannot be set: without it",
        ),
        (
            kafka("\"topic.blacklist\" = \"x\""),
            &[],
            "oncesink.toml:3: kafka: \"topic.blacklist\" cannot be set: what is read",
        ),
        (
            kafka("auto.commit.enable = true"),
            &[],
            "oncesink.toml:3: kafka: \"auto.commit.enable\" cannot be set: offsets live",
        ),
        (
            kafka("group.protocol = \"consumer\"\nsession.timeout.ms = 6000"),
            &[],
            "oncesink.toml:4: kafka: \"session.timeout.ms\" cannot be set under group.protocol = \"consumer\": the broker decides",
        ),
        (
            kafka("heartbeat.interval.ms = 100\ngroup.protocol = \"consumer\""),
            &[],
            "oncesink.toml:3: kafka: \"heartbeat.interval.ms\" cannot be set: it follows session",
        ),
        (
            kafka("group.protocol = \"classical\""),
            &[],
            "oncesink.toml:3: kafka: \"group.protocol\": unknown value \"classical\"; known here: classic, consumer",
        ),
        (
            kafka("bootstrap.servers = \"x\""),
            &[],
            "oncesink.toml:3: kafka: \"bootstrap.servers\" is given twice as ",
        ),
        (
            kafka("security.protocol = \"ssl\"\n\"security.protocol\" = \"ssl\""),
            &[],
            "oncesink.toml:4: kafka: \"security.protocol\" is given twice",
        ),
        (
            kafka("fetch.wait.max.ms = \"soon\""),
            &[],
            "oncesink.toml:3: kafka: \"fetch.wait.max.ms\": expected a number for fetch.wait.max.ms, found soon",
        ),
        (
            kafka("client.rack = [\"a\"]"),
            &[],
            "oncesink.toml:3: kafka: \"client.rack\": expected a string, a number or a boolean, found a list",
        ),
        // Names.
        (
            sink("").replace("sinks.o]", "sinks.Orders]"),
            &[],
            "oncesink.toml:3: \"Orders\" is no name for a sink: small letters",
        ),
        (sink("").replace("sinks.o]", "sinks.1a]"), &[], "oncesink.toml:3: \"1a\" is no name for a sink"),
        (
            sink(&format!("group = \"{long}\"")),
            &[],
            "oncesink.toml:6: sinks.o.group: a group has at most 255 characters, this one has 256",
        ),
        (sink("group = \"g \""), &[], "oncesink.toml:6: sinks.o.group: \"g \" begins or ends with a blank"),
        (sink("group = \"\""), &[], "oncesink.toml:6: sinks.o.group: must not be empty"),
        (
            sink("").replace("[\"t\"]", "[]"),
            &[],
            "oncesink.toml:4: sinks.o.topics: must name at least one topic",
        ),
        (
            sink("").replace("[\"t\"]", "[\"t\",\n\"t\"]"),
            &[],
            "oncesink.toml:5: sinks.o.topics: \"t\" is named twice",
        ),
        (
            sink("").replace("\"t\"", &format!("\"{}\"", &long[..250])),
            &[],
            "oncesink.toml:4: sinks.o.topics: a topic's name has at most 249 characters, this one has 250",
        ),
        (
            sink("").replace("\"t\"", "\"a topic\""),
            &[],
            "oncesink.toml:4: sinks.o.topics: \"a topic\" is no name of a topic",
        ),
        (
            target("offsets = \"a.b.c\""),
            &[],
            "oncesink.toml:8: sinks.o.target.offsets: \"a.b.c\" is no name of a table",
        ),
        (
            sink("[http]\nlisten = \"9719\""),
            &[],
            "oncesink.toml:7: http.listen: \"9719\" is no address with a port",
        ),
        // Connections.
        (
            target("").replace("postgres://h", "mysql://h"),
            &[],
            "oncesink.toml:7: sinks.o.target.url: a URL of scheme \"mysql\" does not fit kind = \"ledger\", which takes one like \"postgres://app@localhost/shop\"",
        ),
        (
            target("").replace("postgres://h/d", "/var/run"),
            &[],
            "oncesink.toml:7: sinks.o.target.url: this is no URL",
        ),
        (
            target("password = \"x\"").replace("//h/", "//u:p@h/"),
            &[],
            "oncesink.toml:8: sinks.o.target.password: there is a password in url as well",
        ),
        // Secrets.
        (
            target("").replace("postgres://h/d", "${env:NOT_SET}"),
            &[],
            "oncesink.toml:7: sinks.o.target.url: the environment variable NOT_SET is not set",
        ),
        (
            target("password = \"${env:NOT_SET}\""),
            &[],
            "oncesink.toml:8: sinks.o.target.password: the environment variable NOT_SET is not set",
        ),
        (
            target("password = \"${file:/nonexistent/x}\""),
            &[],
            "oncesink.toml:8: sinks.o.target.password: cannot read /nonexistent/x: ",
        ),
        (
            target("password = \"${vault:x}\""),
            &[],
            "oncesink.toml:8: sinks.o.target.password: unknown source \"vault\" in \"${vault:...}\"; known: file, env",
        ),
        (
            kafka("fetch.wait.max.ms = \"${env:S}\""),
            &[("S", "topsecret")],
            "oncesink.toml:3: kafka: \"fetch.wait.max.ms\": expected a number for fetch.wait.max.ms, found ${env:S}",
        ),
        // Several keys together.
        (
            sink("memory = \"5 MiB\""),
            &[],
            "oncesink.toml:6: sinks.o.memory: 5 MiB is too small for 2 writers, at least 6 MiB is needed",
        ),
        (
            sink("writers = 30"),
            &[],
            "oncesink.toml:3: sinks.o.memory: 64 MiB is too small for 30 writers, at least 90 MiB is needed",
        ),
        (
            sink("batch = { bytes = \"16 MiB\" }"),
            &[],
            "oncesink.toml:6: sinks.o.batch.bytes: 16 MiB does not fit memory = \"64 MiB\" with 2 writers, which needs three times a batch for each: at least 96 MiB",
        ),
        (
            sink(
                "group = \"g\"\n[sinks.p]\ngroup = \"g\"\ntopics = [\"u\"]\ntarget = { kind = \"postgres\", url = \"postgres://h/d\" }",
            ),
            &[],
            "oncesink.toml:8: sinks.p.group: \"g\" is the group of [sinks.o] too",
        ),
        (
            sink(
                "[sinks.p]\ngroup = \"oncesink-o\"\ntopics = [\"u\"]\ntarget = { kind = \"postgres\", url = \"postgres://h/d\" }",
            ),
            &[],
            "oncesink.toml:7: sinks.p.group: \"oncesink-o\" is the group of [sinks.o] too",
        ),
    ];
    for (text, variables, expected) in cases {
        let error = load(&text, variables).expect_err(expected).to_string();
        assert!(
            error.lines().count() == 1 && error.starts_with(expected),
            "\n expected: {expected}\n found:    {error}\n in:\n{text}"
        );
    }
}
