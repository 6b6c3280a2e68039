//! The simulated Kafka Streams application: its topology, its topics, and how far their changelogs have grown.
//!
//! It comes in versions, which are rolled out one after the other: each replaces the topology of the one before, by
//! adding, removing or changing a subtopology without state.

use std::collections::BTreeSet;

use coordinator::assign::TaskId;
use wire::KStr;
use wire::messages::streams_group_heartbeat_request::{Subtopology, TopicInfo, Topology};

pub const GROUP: &str = "app";

/// Source topics with the partitions they start with. Nothing stateful reads `in-b`, so it may grow and go.
pub const SOURCES: [(&str, i32); 3] = [("in-a", 4), ("in-b", 3), ("in-c", 2)];
pub const OPTIONAL_SOURCE: &str = "in-b";
const REPARTITION: &str = "app-by-key-repartition";

/// A subtopology: its id, the topic it reads, its state store.
type Part = (&'static str, &'static str, Option<&'static str>);

const FILTER: Part = ("0", "in-a", Some("app-filter-changelog"));
const COUNT: Part = ("1", REPARTITION, Some("app-count-changelog"));

/// The topologies of versions 0, 1, 2, 3 and so on in turn.
const VERSIONS: [&[Part]; 3] = [
    &[FILTER, COUNT, ("2", "in-b", None)],
    &[FILTER, COUNT, ("2", "in-b", None), ("3", "in-c", None)],
    &[FILTER, COUNT, ("2", "in-c", None)],
];

fn parts(version: i32) -> &'static [Part] {
    VERSIONS[version.unsigned_abs() as usize % VERSIONS.len()]
}

pub fn group_id() -> KStr {
    KStr::from_static(GROUP)
}

/// As a client of this version sends it when it joins.
pub fn topology(version: i32) -> Topology {
    let subtopologies = parts(version).iter().map(|(id, source, store)| Subtopology {
        subtopology_id: KStr::from_static(id),
        source_topics: if *source == REPARTITION { vec![] } else { vec![KStr::from_static(source)] },
        state_changelog_topics: store.iter().copied().map(internal).collect(),
        repartition_sink_topics: if *id == "0" { vec![KStr::from_static(REPARTITION)] } else { vec![] },
        repartition_source_topics: if *source == REPARTITION { vec![internal(source)] } else { vec![] },
        ..Subtopology::default()
    });
    Topology { epoch: version, subtopologies: subtopologies.collect() }
}

/// Its number of partitions follows from the topology.
fn internal(name: &'static str) -> TopicInfo {
    TopicInfo { name: KStr::from_static(name), replication_factor: -1, ..TopicInfo::default() }
}

/// The subtopologies that are the same in both versions.
pub fn common(version: i32, other: i32) -> BTreeSet<&'static str> {
    parts(version).iter().filter(|part| parts(other).contains(part)).map(|(id, ..)| *id).collect()
}

/// The topic that a task reads; its partition is that of the task.
pub fn source_of(version: i32, task: &TaskId) -> Option<&'static str> {
    parts(version).iter().find(|(id, ..)| task.subtopology == *id).map(|(_, source, _)| *source)
}

/// All tasks, given the number of partitions of the topics.
pub fn tasks(version: i32, partitions: impl Fn(&str) -> i32) -> Vec<TaskId> {
    let tasks = parts(version).iter().flat_map(|(id, source, _)| {
        (0..partitions(source)).map(|partition| TaskId { subtopology: KStr::from_static(id), partition })
    });
    tasks.collect()
}

/// End of the changelogs of a task: some have much, some grow fast.
pub fn end_offset(task: &TaskId, now_ms: u64) -> i64 {
    let dice = task.subtopology.bytes().fold(task.partition as u64 + 1, |hash, byte| hash * 31 + u64::from(byte));
    (dice * 7_919 % 60_000 + now_ms * (dice % 4) / 10) as i64
}
