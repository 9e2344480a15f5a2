//! The effective configuration as it is printed.

use super::*;

fn resolved(text: &str, variables: &[(&str, &str)]) -> Resolved {
    let known = Known { kafka: &Properties, kinds: KINDS };
    Resolved::parse(text, "oncesink.toml", &environment(variables), &known).unwrap()
}

fn from(resolved: &Resolved, path: &str) -> (serde_json::Value, String) {
    let key = resolved.keys().iter().find(|key| key.path.join(".") == path);
    let key = key.unwrap_or_else(|| panic!("{path} in {}", resolved.toml()));
    (key.value.clone(), key.from.clone())
}

/// Keys of tables know where they stand; what they say is compared as it is printed.
fn without_places(mut config: Config) -> Config {
    config.sinks.iter_mut().for_each(|sink| sink.tables.clear());
    config
}

fn values(resolved: &Resolved) -> Vec<(Vec<String>, serde_json::Value)> {
    let mut all: Vec<_> = resolved.keys().iter().map(|key| (key.path.clone(), key.value.clone())).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[test]
fn what_is_printed_means_the_same_when_it_is_read_again() {
    let rich = target(
        "largest_cents = 5\nnames = [\"a\", \"b\"]\n[sinks.o.batch]\nlinger = \"1 s\"\n[sinks.o.table]\ntable = \"a.${topic[1]}\"\nunknown_fields = \"ignore\"\n[sinks.o.tables.\"shop.orders\"]\ntable = \"x\\\\y \\\"z\\\"\"\ncolumns.a = { from = \"value.b\", as = \"epoch-ms\" }",
    )
    .replace("[\"t\"]", "[\"t\", \"shop.orders\", \"^shop\\\\.invoice-.*\"]");
    let kafka =
        kafka("\"security.protocol\" = \"ssl\"\nfetch.wait.max.ms = 7\ngroup.protocol = \"consumer\"");
    let two = sink(
        "memory = \"6 MiB\"\nstart = 2026-11-01T00:00:00Z\n[sinks.p]\ntopics = [\"u\"]\ninto_rows = \"accept\"\ntarget = { kind = \"ledger\", url = \"postgres://h/d\", fast = true }",
    );
    let variables: &[(&str, &str)] = &[
        ("ONCESINK_SINKS__O__BATCH__ROWS", "5_000"),
        ("ONCESINK_SINKS__O__DRAIN", "1 min"),
        ("ONCESINK_SINKS__O__TOPICS", "t, shop.orders,^x"),
        ("ONCESINK_KAFKA__BROKERS", "elsewhere:9092"),
        ("ONCESINK_KAFKA__FETCH__WAIT__MAX__MS", "8"),
        ("ONCESINK_HTTP__LISTEN", "localhost:0"),
    ];
    for text in [SIMPLE, &rich, &kafka, &two, REFERENCE] {
        for variables in [&[], variables] {
            if !variables.is_empty() && !text.contains("[sinks.o]") {
                continue;
            }
            let once = resolved(text, variables).toml();
            let again = load(&once, &[]).unwrap_or_else(|error| panic!("{error}\n{once}"));
            assert_eq!(without_places(again), without_places(load(text, variables).unwrap()), "{once}");
            let twice = resolved(&once, &[]);
            assert_eq!(values(&twice), values(&resolved(text, variables)), "{once}");
            assert!(twice.keys().iter().all(|key| key.from != "default"), "every default is written: {once}");
        }
    }
}

#[test]
fn where_a_value_came_from_is_said() {
    let shown = resolved(
        &sink("writers = 1"),
        &[("ONCESINK_SINKS__O__BATCH__ROWS", "5000"), ("ONCESINK_KAFKA__CLIENT__RACK", "a")],
    );
    for (path, value, place) in [
        ("sinks.o.writers", serde_json::json!(1), "oncesink.toml:6"),
        ("sinks.o.batch.rows", serde_json::json!(5000), "ONCESINK_SINKS__O__BATCH__ROWS"),
        ("sinks.o.batch.linger", serde_json::json!("5 ms"), "default"),
        ("sinks.o.group", serde_json::json!("oncesink-o"), "default"),
        ("sinks.o.topics", serde_json::json!(["t"]), "oncesink.toml:4"),
        ("kafka.client.rack", serde_json::json!("a"), "ONCESINK_KAFKA__CLIENT__RACK"),
        ("kafka.session.timeout.ms", serde_json::json!("10000"), "default"),
        ("http.listen", serde_json::json!("127.0.0.1:9719"), "default"),
    ] {
        let path_of_kafka = path.strip_prefix("kafka.").map(|name| vec!["kafka".to_owned(), name.to_owned()]);
        let found = match path_of_kafka {
            Some(path) => shown
                .keys()
                .iter()
                .find(|key| key.path == path)
                .map(|key| (key.value.clone(), key.from.clone()))
                .unwrap(),
            None => from(&shown, path),
        };
        assert_eq!(found, (value, place.to_owned()), "{path}");
    }
    let text = shown.toml();
    for line in [
        "writers = 1\n",
        "rows = 5000                              # from ONCESINK_SINKS__O__BATCH__ROWS\n",
        "linger = \"5 ms\"                          # default\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn secrets_are_stars_and_references_stay() {
    let text = target("password = \"${env:PW}\"\napi_token = \"hunter2\"")
        .replace("[sinks.o]\n", "sasl.password = \"hunter2\"\n[sinks.o]\n")
        .replace("postgres://h/d", "postgres://app@h/d?sslkey=a&password=hunter2");
    let shown =
        resolved(&text, &[("PW", "hunter2"), ("ONCESINK_SINKS__O__TARGET__CLIENT_SECRET", "hunter2")]);
    let printed = format!("{}\n{shown:?}", shown.toml());
    assert!(!printed.contains("hunter2"), "{printed}");
    for line in [
        "sasl.password = \"***\"\n",
        "password = \"${env:PW}\"\n",
        "url = \"postgres://app@h/d?sslkey=a&password=***\"\n",
        "api_token = \"***\"\n",
        "# from ONCESINK_SINKS__O__TARGET__CLIENT_SECRET\n",
    ] {
        assert!(printed.contains(line), "{line}{printed}");
    }
}
