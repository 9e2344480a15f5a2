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

/// The names of all properties that librdkafka has here, sorted, without aliases.
pub fn known_properties() -> Vec<String> {
    let Ok(config) = ClientConfig::new().create_native_config() else { return Vec::new() };
    let mut names = ffi::property_names(&config);
    names.sort_unstable();
    names.dedup();
    names
}
