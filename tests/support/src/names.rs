//! Names that no other test has: a stem for people and random digits, valid as topic, schema and consumer group.

/// `orders` becomes `orders_3f9c0a51d2e4`: letters, digits and underscores, never longer than the stem and 13.
pub fn unique(stem: &str) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{stem}_{}", &random[..12])
}

/// A topic name that no other test has.
pub fn topic(stem: &str) -> String {
    unique(stem)
}
