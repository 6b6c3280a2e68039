//! Where Kafka puts what has a name: Java's hash of strings, on which clients and brokers have to agree.

/// Java's `String.hashCode`, over UTF-16 units.
pub fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The partition of a coordinator's topic that a key (group id, transactional id) lives on: `abs` of the hash with the minimum
/// counted as 0, modulo `partitions` (C R-1).
///
/// # Panics
/// If there are no partitions.
pub fn partition_of(key: &str, partitions: u32) -> u32 {
    string_hash(key).checked_abs().unwrap_or(0) as u32 % partitions
}
