//! Keys and values that are planned and not here yet, so that who reads ahead is told so instead of being sent to look for a typing mistake.

/// The last part of the section (`*` for any) and the key.
const KEYS: &[(&str, &str)] = &[
    ("http", "admin"),
    ("target", "pooler"),
    ("target", "durability"),
    ("target", "accept_unique_indexes"),
    ("tables", "children"),
    ("tables", "format"),
    ("tables", "accept_unique_indexes"),
    ("sink", "dead_letters"),
    ("sink", "transforms"),
];

/// The key and its value.
const VALUES: &[(&str, &str)] = &[
    ("kind", "mysql"),
    ("kind", "sqlite"),
    ("kind", "kafka"),
    ("mode", "newer-wins"),
    ("format", "debezium"),
    ("format", "avro"),
];

/// Whether a key of this section is planned.
pub(crate) fn key(section: &str, key: &str) -> bool {
    KEYS.contains(&(kind_of(section), key))
}

/// Whether a value of this key is planned. `soft:<column>` is a kind of delete.
pub(crate) fn value(path: &str, value: &str) -> bool {
    let key = path.rsplit('.').next().unwrap_or(path);
    VALUES.contains(&(key, value)) || (key == "delete" && value.starts_with("soft:"))
}

/// `sinks.x` is a sink, `sinks.x.table` and `sinks.x.tables.<topic>` are tables; topics hold dots of their own.
fn kind_of(section: &str) -> &str {
    let mut parts = section.splitn(3, '.');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("sinks"), Some(_), None) => "sink",
        (Some("sinks"), Some(_), Some("target")) => "target",
        (Some("sinks"), Some(_), Some(rest)) if rest == "table" || rest.starts_with("tables.") => "tables",
        (Some(first), None, None) => first,
        _ => "",
    }
}
