//! The simulated Kafka Streams application: its topology, its topics, and how far their changelogs have grown.

use coordinator::assign::TaskId;
use wire::KStr;
use wire::messages::streams_group_heartbeat_request::{Subtopology, TopicInfo, Topology};

pub const GROUP: &str = "app";

/// Source topics with the partitions they start with. Nothing stateful reads `in-b`, so it may grow and go.
pub const SOURCES: [(&str, i32); 2] = [("in-a", 4), ("in-b", 3)];
pub const OPTIONAL_SOURCE: &str = "in-b";
const REPARTITION: &str = "app-by-key-repartition";

/// Subtopologies with the topic they read and their state store.
const SUBTOPOLOGIES: [(&str, &str, Option<&str>); 3] = [
    ("0", "in-a", Some("app-filter-changelog")),
    ("1", REPARTITION, Some("app-count-changelog")),
    ("2", OPTIONAL_SOURCE, None),
];

pub fn group_id() -> KStr {
    KStr::from_static(GROUP)
}

/// As a client sends it when it joins.
pub fn topology() -> Topology {
    let subtopologies = SUBTOPOLOGIES.into_iter().map(|(id, source, store)| Subtopology {
        subtopology_id: KStr::from_static(id),
        source_topics: if source == REPARTITION { vec![] } else { vec![KStr::from_static(source)] },
        state_changelog_topics: store.into_iter().map(internal).collect(),
        repartition_sink_topics: if id == "0" { vec![KStr::from_static(REPARTITION)] } else { vec![] },
        repartition_source_topics: if source == REPARTITION { vec![internal(source)] } else { vec![] },
        ..Subtopology::default()
    });
    Topology { epoch: 0, subtopologies: subtopologies.collect() }
}

/// Its number of partitions follows from the topology.
fn internal(name: &'static str) -> TopicInfo {
    TopicInfo { name: KStr::from_static(name), replication_factor: -1, ..TopicInfo::default() }
}

/// The topic that a task reads; its partition is that of the task.
pub fn source_of(task: &TaskId) -> Option<&'static str> {
    SUBTOPOLOGIES.iter().find(|(id, ..)| task.subtopology == *id).map(|(_, source, _)| *source)
}

/// All tasks, given the number of partitions of the topics.
pub fn tasks(partitions: impl Fn(&str) -> i32) -> Vec<TaskId> {
    let tasks = SUBTOPOLOGIES.iter().flat_map(|(id, source, _)| {
        (0..partitions(source)).map(|partition| TaskId { subtopology: KStr::from_static(id), partition })
    });
    tasks.collect()
}

/// End of the changelogs of a task: some have much, some grow fast.
pub fn end_offset(task: &TaskId, now_ms: u64) -> i64 {
    let dice = task.subtopology.bytes().fold(task.partition as u64 + 1, |hash, byte| hash * 31 + u64::from(byte));
    (dice * 7_919 % 60_000 + now_ms * (dice % 4) / 10) as i64
}
