//! What the mock cluster can do and the safe binding does not offer.

use rdkafka::bindings as native;
use rdkafka::client::{Client, ClientContext};
use rdkafka::types::RDKafkaRespErr;

/// The id under which every mock cluster names its controller, and which none of its brokers has at first.
const CONTROLLER: i32 = 0;

/// Gives the cluster a controller, without which it answers no question about ids, and lets the first member of a group join at once instead of after three
/// seconds. Gives false when the client has no mock cluster, or it refuses.
pub(in crate::kafka) fn make_usable<C: ClientContext>(client: &Client<C>) -> bool {
    // SAFETY: the client is valid; the cluster belongs to it and lives as long.
    unsafe {
        let cluster = native::rd_kafka_handle_mock_cluster(client.native_ptr());
        if cluster.is_null() {
            return false;
        }
        native::rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
        native::rd_kafka_mock_broker_add(cluster, CONTROLLER) == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR
    }
}
