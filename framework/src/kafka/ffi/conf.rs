//! The names of librdkafka's properties.

use rdkafka::bindings as native;
use rdkafka::config::NativeClientConfig;

use super::record::text;

/// All property names of this build, of clients and of topics, unsorted.
pub(in crate::kafka) fn property_names(config: &NativeClientConfig) -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the configurations are valid; a dump is an array of names and values in turn, of the length given, and is freed once, after its names
    // were copied; the topic configuration is ours and destroyed once.
    unsafe {
        let mut count = 0;
        let dump = native::rd_kafka_conf_dump(config.ptr(), &raw mut count);
        names.extend((0..count).step_by(2).map(|index| text(*dump.add(index))));
        native::rd_kafka_conf_dump_free(dump, count);

        let topic = native::rd_kafka_topic_conf_new();
        let dump = native::rd_kafka_topic_conf_dump(topic, &raw mut count);
        names.extend((0..count).step_by(2).map(|index| text(*dump.add(index))));
        native::rd_kafka_conf_dump_free(dump, count);
        native::rd_kafka_topic_conf_destroy(topic);
    }
    names
}
