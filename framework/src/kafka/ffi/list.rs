//! Leader epochs on a list of partitions, which the safe binding does not know.

use rdkafka::TopicPartitionList;
use rdkafka::bindings as native;

/// Sets the leader epoch of the element at `index`; gives false when there is none. Only `seek_partitions` looks at it: in an assigned list it is
/// ignored.
pub(in crate::kafka) fn set_leader_epoch(list: &mut TopicPartitionList, index: usize, epoch: i32) -> bool {
    if index >= list.count() {
        return false;
    }
    // SAFETY: the list is valid and borrowed for writing, and the index was checked.
    unsafe { native::rd_kafka_topic_partition_set_leader_epoch((*list.ptr()).elems.add(index), epoch) };
    true
}
