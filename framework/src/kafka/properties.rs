//! librdkafka's properties, checked by librdkafka itself.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use super::ffi;

/// Why librdkafka does not take a property. The value is not repeated: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyError {
    /// There is none of that name.
    #[error("{0}")]
    Unknown(String),
    /// The value does not fit.
    #[error("{0}")]
    Invalid(String),
}

/// Asks librdkafka whether it takes this property with this value; nothing is contacted or opened.
///
/// # Errors
/// As [`PropertyError`] says, with librdkafka's words.
pub fn check_property(key: &str, value: &str) -> Result<(), PropertyError> {
    let Err(error) = ClientConfig::new().set(key, value).create_native_config() else {
        return Ok(());
    };
    match error {
        KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, words, _, _) => {
            Err(PropertyError::Unknown(words))
        }
        KafkaError::ClientConfig(_, words, _, _) => Err(PropertyError::Invalid(words)),
        KafkaError::Nul(_) => Err(PropertyError::Invalid("a null character in a name or value".into())),
        other => Err(PropertyError::Invalid(other.to_string())),
    }
}

/// The names of all properties that librdkafka has here, sorted.
pub fn known_properties() -> Vec<String> {
    let mut names = ffi::property_names();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn librdkafka_says_what_it_takes() {
        assert_eq!(check_property("sasl.username", "me"), Ok(()));
        assert_eq!(check_property("auto.offset.reset", "error"), Ok(()), "a topic's property");
        assert!(matches!(check_property("sasl.usrname", "me"), Err(PropertyError::Unknown(_))));
        let refused = check_property("socket.timeout.ms", "often").expect_err("no number");
        assert!(
            matches!(&refused, PropertyError::Invalid(words) if words.contains("socket.timeout.ms")),
            "{refused}"
        );
        assert!(matches!(check_property("client.id", "a\0b"), Err(PropertyError::Invalid(_))));
    }

    #[test]
    fn every_known_property_is_known_to_the_check() {
        let names = known_properties();
        for expected in
            ["bootstrap.servers", "sasl.password", "fetch.max.bytes", "auto.offset.reset", "sasl.mechanism"]
        {
            assert!(names.iter().any(|name| name == expected), "{expected} is missing");
        }
        assert!(names.len() > 150, "{}", names.len());
        for name in names {
            assert!(!matches!(check_property(&name, "1"), Err(PropertyError::Unknown(_))), "{name}");
        }
    }
}
