//! What simulated consumers read: topics of several sizes, and subscriptions that are rolled out one after the other.

use std::collections::BTreeSet;

use coordinator::assign::TaskId;
use wire::KStr;

/// Topics with the partitions they start with.
pub const TOPICS: [(&str, i32); 3] = [("events", 5), ("orders", 3), ("clicks", 2)];
/// The one that grows.
pub const GROWING: &str = "orders";
pub const MAX_PARTITIONS: i32 = 8;

/// The subscriptions of versions 0, 1, 2, 3 and so on in turn.
const VERSIONS: [&[&str]; 3] = [&["events", "orders"], &["clicks", "events", "orders"], &["clicks", "orders"]];

pub fn subscription(version: i32) -> Vec<KStr> {
    VERSIONS[version.unsigned_abs() as usize % VERSIONS.len()].iter().copied().map(KStr::from_static).collect()
}

/// All partitions that somebody reads, given the number of partitions of the topics.
pub fn read(versions: impl Iterator<Item = i32>, partitions: impl Fn(&str) -> i32) -> Vec<TaskId> {
    let topics: BTreeSet<_> = versions.flat_map(subscription).collect();
    let each = topics.into_iter().flat_map(|topic| {
        (0..partitions(&topic)).map(move |partition| TaskId { subtopology: topic.clone(), partition })
    });
    each.collect()
}
