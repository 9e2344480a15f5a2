//! The names of librdkafka's properties.

use std::ptr;

use rdkafka::bindings as native;

/// All property names of this build, of clients and of topics, aliases among them, unsorted; empty when memory is short.
///
/// They are read out of the table that librdkafka prints for people: its dump of a configuration leaves out what has no value, passwords for one.
pub(in crate::kafka) fn property_names() -> Vec<String> {
    let (mut start, mut length) = (ptr::null_mut(), 0);
    // SAFETY: the stream writes into memory of its own, which is whole once the stream is closed; it is copied, and freed once, as is told of streams
    // of this kind.
    let table = unsafe {
        let stream = libc::open_memstream(&raw mut start, &raw mut length);
        if stream.is_null() {
            return Vec::new();
        }
        native::rd_kafka_conf_properties_show(stream.cast());
        libc::fclose(stream);
        if start.is_null() {
            return Vec::new();
        }
        let table = std::slice::from_raw_parts(start.cast::<u8>(), length).to_vec();
        libc::free(start.cast());
        table
    };
    let table = String::from_utf8_lossy(&table).into_owned();
    table.lines().filter_map(name_in_row).map(str::to_owned).collect()
}

/// The first cell of a row, which is a name in all rows but the head's and the line under it.
fn name_in_row(row: &str) -> Option<&str> {
    let (name, _) = row.split_once('|')?;
    let name = name.trim();
    (!name.is_empty() && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_'))).then_some(name)
}
