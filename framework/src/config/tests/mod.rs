//! Tables of good and bad configuration.

use std::time::Duration;

use super::*;
use crate::position::StartPolicy;

mod mistakes;
mod resolved;
mod sink_config;

struct Properties;

impl KafkaProperties for Properties {
    fn known(&self) -> Vec<String> {
        [
            "bootstrap.servers",
            "metadata.broker.list",
            "security.protocol",
            "sasl.password",
            "session.timeout.ms",
            "heartbeat.interval.ms",
            "group.protocol",
            "group.id",
            "fetch.wait.max.ms",
            "client.rack",
        ]
        .map(ToOwned::to_owned)
        .into()
    }

    fn check(&self, property: &str, value: &str) -> Result<(), RefusedProperty> {
        match (property, value.parse::<u32>()) {
            ("fetch.wait.max.ms" | "session.timeout.ms", Err(_)) => {
                Err(RefusedProperty::Invalid(format!("expected a number for {property}, found {value}")))
            }
            _ if self.known().iter().any(|known| known == property) => Ok(()),
            _ => Err(RefusedProperty::Unknown),
        }
    }
}

const fn kind(
    name: &'static str,
    schemes: &'static [&'static str],
    example: &'static str,
    one_writer: bool,
) -> Kind {
    Kind { name, schemes, example, check_url: |_| Ok(()), one_writer }
}

const KINDS: &[Kind] = &[
    kind("postgres", &["postgres", "postgresql"], "postgres://app@localhost/shop", false),
    kind("ledger", &["postgres", "postgresql"], "postgres://app@localhost/shop", false),
    kind("sqlite", &["sqlite"], "sqlite:shop.db", true),
];

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let known = Known { kafka: &Properties, kinds: KINDS };
    Config::parse(text, "oncesink.toml", &environment(variables), &known)
}

const SIMPLE: &str = r#"[kafka]
brokers = "localhost:9092"

[sinks.orders]
topics = ["orders"]
target = { kind = "postgres", url = "postgres://app@localhost/shop" }
"#;

/// One sink with these lines, which begin at line 6.
fn sink(lines: &str) -> String {
    format!(
        "[kafka]\nbrokers = \"b:9092\"\n[sinks.o]\ntopics = [\"t\"]\ntarget = {{ kind = \"postgres\", url = \"postgres://h/d\" }}\n{lines}\n"
    )
}

/// A target with these lines, which begin at line 8.
fn target(lines: &str) -> String {
    format!(
        "[kafka]\nbrokers = \"b:9092\"\n[sinks.o]\ntopics = [\"t\"]\n[sinks.o.target]\nkind = \"ledger\"\nurl = \"postgres://h/d\"\n{lines}\n"
    )
}

/// `[kafka]` with these lines, which begin at line 3.
fn kafka(lines: &str) -> String {
    format!(
        "[kafka]\nbrokers = \"b:9092\"\n{lines}\n[sinks.o]\ntopics = [\"t\"]\ntarget = {{ kind = \"postgres\", url = \"postgres://h/d\" }}\n"
    )
}

#[test]
fn the_simplest_file_has_all_defaults() {
    let config = load(SIMPLE, &[]).unwrap();
    let sink = &config.sinks[0];
    assert_eq!(sink.name, "orders");
    assert_eq!(sink.group, "oncesink-orders");
    assert_eq!(sink.start, StartPolicy::Earliest);
    assert_eq!((sink.writers, sink.memory), (2, 64 << 20));
    assert_eq!(sink.batch, BatchSection { rows: 10_000, bytes: 4 << 20, linger: Duration::from_millis(5) });
    assert_eq!(sink.target.offsets, "kafka_offsets");
    assert!(!sink.into_rows);
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:9719");
    assert_eq!(config.kafka.brokers(), "localhost:9092");
    assert_eq!(config.kafka.properties["session.timeout.ms"].expose(), "10000");
}

#[test]
fn the_reference_file_is_the_defaults() {
    let reference = load(REFERENCE, &[]).unwrap();
    let minimal = SIMPLE.replace("orders", "example");
    assert_eq!(reference, load(&minimal, &[]).unwrap());
}

#[test]
fn dotted_keys_are_the_same_quoted_or_not() {
    let nested = load(&kafka("security.protocol = \"ssl\"\nfetch.wait.max.ms = 7"), &[]).unwrap();
    let quoted = load(&kafka("\"security.protocol\" = \"ssl\"\n\"fetch.wait.max.ms\" = \"7\""), &[]).unwrap();
    assert_eq!(nested, quoted);
    assert_eq!(nested.kafka.properties["security.protocol"].expose(), "ssl");
    assert_eq!(nested.kafka.protocol, GroupProtocol::Cooperative);
    let consumer = load(&kafka("group.protocol = \"consumer\""), &[]).unwrap();
    assert_eq!(consumer.kafka.protocol, GroupProtocol::Consumer);
    assert!(!consumer.kafka.properties.contains_key("session.timeout.ms"));
}

#[test]
fn policies_units_and_numbers() {
    let config = load(
        &sink("start = 2026-11-01T00:00:00Z\non_expired = \"latest\"\nwriters = 1\ninto_rows = \"accept\"\nbatch = { rows = 1_0, bytes = \"64 kB\", linger = \"1 s\" }"),
        &[],
    )
    .unwrap();
    let sink = &config.sinks[0];
    assert_eq!(sink.start, StartPolicy::Timestamp(1_793_491_200_000));
    assert_eq!(sink.on_expired, OnExpired::Continue(StartPolicy::Latest));
    assert_eq!(sink.batch, BatchSection { rows: 10, bytes: 64_000, linger: Duration::from_secs(1) });
    assert!(sink.into_rows);
}

#[test]
fn the_environment_wins_and_stays_a_string() {
    let config = load(
        SIMPLE,
        &[
            ("ONCESINK_SINKS__ORDERS__TARGET__PASSWORD", "00123"),
            ("ONCESINK_SINKS__ORDERS__BATCH__ROWS", "5000"),
            ("ONCESINK_SINKS__ORDERS__TOPICS", "orders, returns"),
            ("ONCESINK_KAFKA__SECURITY__PROTOCOL", "ssl"),
            ("ONCESINK_KAFKA__BOOTSTRAP__SERVERS", "elsewhere:9092"),
            ("ONCESINK_HTTP__LISTEN", "localhost:0"),
            ("ONCESINK_TEST_KAFKA__X", "no key"),
            ("ONCESINK_LOG", "debug"),
            ("ONCESINK_PORT_9719_TCP", "made by Kubernetes"),
        ],
    )
    .unwrap();
    let sink = &config.sinks[0];
    assert_eq!(sink.target.password.as_ref().unwrap().expose(), "00123");
    assert_eq!(sink.batch.rows, 5000);
    assert_eq!(sink.topics, ["orders", "returns"]);
    let listed = "[\"orders\", \"^re.{1,9}$\"]";
    let config_with_list = load(SIMPLE, &[("ONCESINK_SINKS__ORDERS__TOPICS", listed)]).unwrap();
    assert_eq!(config_with_list.sinks[0].topics, ["orders", "^re.{1,9}$"]);
    assert_eq!(config.kafka.properties["security.protocol"].expose(), "ssl");
    assert_eq!(config.kafka.brokers(), "elsewhere:9092");
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:0");
}

#[test]
fn a_variable_names_a_topic_without_its_dots() {
    let file = target("largest_cents = 1").replace("[\"t\"]", "[\"shop.orders\", \"Shop-Items\"]");
    let variables = [
        ("ONCESINK_SINKS__O__TABLES__SHOP_ORDERS__TABLE", "one"),
        ("ONCESINK_SINKS__O__TABLES__SHOP_ITEMS__TABLE", "two"),
        ("ONCESINK_SINKS__O__TABLES__SHOP_ITEMS__KEY", "id"),
    ];
    let config = load(&file, &variables).unwrap();
    assert_eq!(
        format!("{:?}", config.sinks[0].tables),
        "{\"tables\": {\"Shop-Items\": {\"key\": <a string>, \"table\": <a string>}, \"shop.orders\": {\"table\": <a string>}}}"
    );
    let wrong = load(&file, &[("ONCESINK_SINKS__O__TABLES__SHOP_ORDRES__TABLE", "one")]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "ONCESINK_SINKS__O__TABLES__SHOP_ORDRES__TABLE: sinks.o.tables.\"shop_ordres\": no topic of this name stands in topics; did you mean \"shop.orders\"?"
    );
}

#[test]
fn several_sinks_and_all_mistakes_at_once() {
    let two = format!(
        "{SIMPLE}[sinks.returns]\ntopics = [\"orders\"]\ntarget = {{ kind = \"ledger\", url = \"postgresql://h/d\" }}\n"
    );
    assert_eq!(load(&two, &[]).unwrap().sinks.len(), 2);
    let bad = SIMPLE.replace("topics", "topcis").replace("brokers", "borkers");
    let error = load(&bad, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "oncesink.toml:2: unknown key \"borkers\" in [kafka]; did you mean \"brokers\"?\n\
         oncesink.toml:4: key \"topics\" is missing in [sinks.orders]; write for instance: topics = [\"orders\"]\n\
         oncesink.toml:5: unknown key \"topcis\" in [sinks.orders]; did you mean \"topics\"?"
    );
}

#[test]
fn nothing_secret_is_printed() {
    let text = target("password = \"hunter2\"")
        .replace("[sinks.o]\n", "\"sasl.password\" = \"hunter2\"\n[sinks.o]\n");
    let config = load(&text.replace("postgres://h/d", "postgres://app@h:5432/d?x=hunter2"), &[]).unwrap();
    assert!(!format!("{config:?} {config:#?}").contains("hunter2"));
    assert_eq!(config.sinks[0].target.shown(), "postgres://h:5432/d");
}

#[test]
fn librdkafka_judges_names_values_and_aliases() {
    let known = Known { kafka: &Librdkafka, kinds: KINDS };
    let parse = |lines: &str| Config::parse(&kafka(lines), "oncesink.toml", &environment(&[]), &known);
    let aliases = "sasl.mechanism = \"PLAIN\"\nmax.partition.fetch.bytes = 1000\nfetch.wait.max.ms = 100";
    assert!(parse(aliases).is_ok(), "{:?}", parse(aliases).err());
    for (lines, expected) in [
        (
            "fetch.wiat.max.ms = 1",
            "oncesink.toml:3: unknown key \"fetch.wiat.max.ms\" in [kafka]; did you mean \"fetch.wait.max.ms\"?",
        ),
        ("fetch.wait.max.ms = 99999999", "oncesink.toml:3: kafka: \"fetch.wait.max.ms\": "),
        ("security.protocol = \"tsl\"", "oncesink.toml:3: kafka: \"security.protocol\": "),
    ] {
        let error = parse(lines).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
