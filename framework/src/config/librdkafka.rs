//! librdkafka as the judge of its own properties.

use super::kafka::{KafkaProperties, RefusedProperty};
use crate::kafka::{PropertyError, check_property, known_properties};

/// The librdkafka that this program is linked with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Librdkafka;

impl KafkaProperties for Librdkafka {
    fn known(&self) -> Vec<String> {
        known_properties()
    }

    fn check(&self, property: &str, value: &str) -> Result<(), RefusedProperty> {
        check_property(property, value).map_err(|error| match error {
            PropertyError::Unknown(_) => RefusedProperty::Unknown,
            PropertyError::Invalid(words) => RefusedProperty::Invalid(words),
        })
    }
}
