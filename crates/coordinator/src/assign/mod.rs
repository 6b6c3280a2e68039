//! Assignors: pure functions from what a group is to who gets what. Same input, same output, on every machine
//! (decision 19).

pub mod balanced;
#[cfg(feature = "testing")]
pub mod given;
mod index;
pub mod range;
mod standby;
pub mod sticky;
pub mod uniform;
pub mod warmup;
mod within;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::{KStr, Uuid};

/// Partitions by topic id.
pub type PartitionSet = BTreeMap<Uuid, BTreeSet<i32>>;

/// Task numbers by subtopology id.
pub type TaskSet = BTreeMap<KStr, BTreeSet<i32>>;

/// One task of a streams topology.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub subtopology: KStr,
    pub partition: i32,
}

/// The tasks of a set, in order.
pub fn tasks_of(tasks: &TaskSet) -> impl Iterator<Item = TaskId> + '_ {
    tasks.iter().flat_map(|(subtopology, partitions)| {
        partitions.iter().map(|partition| TaskId { subtopology: subtopology.clone(), partition: *partition })
    })
}

pub fn contains_task(tasks: &TaskSet, task: &TaskId) -> bool {
    tasks.get(&task.subtopology).is_some_and(|partitions| partitions.contains(&task.partition))
}

pub fn insert_task(tasks: &mut TaskSet, task: &TaskId) {
    tasks.entry(task.subtopology.clone()).or_default().insert(task.partition);
}

/// Leaves no empty subtopology behind.
pub fn remove_task(tasks: &mut TaskSet, task: &TaskId) {
    if let Some(partitions) = tasks.get_mut(&task.subtopology) {
        partitions.remove(&task.partition);
        if partitions.is_empty() {
            tasks.remove(&task.subtopology);
        }
    }
}

/// A streams group as its assignors see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsInput {
    /// By member id, ascending.
    pub members: Vec<StreamsMember>,
    /// By id, ascending.
    pub subtopologies: Vec<Subtopology>,
    pub num_standby_replicas: u32,
    /// Client tags over whose values standbys are spread (decision 9).
    pub rack_aware_tags: Vec<KStr>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsMember {
    pub member_id: KStr,
    pub process_id: KStr,
    pub instance_id: Option<KStr>,
    pub rack_id: Option<KStr>,
    pub client_tags: BTreeMap<KStr, KStr>,
    /// What the coordinator last granted (assigned, neither target nor pending revocation).
    pub active: TaskSet,
    pub standby: TaskSet,
    pub warmup: TaskSet,
    /// Offsets of task state as the member last reported them.
    pub task_offsets: BTreeMap<TaskId, i64>,
    pub task_end_offsets: BTreeMap<TaskId, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtopology {
    pub id: KStr,
    /// Number of tasks, at least 1.
    pub tasks: i32,
    /// It has a changelog, hence may have standbys and warm-ups.
    pub stateful: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskAssignment {
    pub active: TaskSet,
    pub standby: TaskSet,
    pub warmup: TaskSet,
}

/// By member id; every member of the input has an entry.
pub type StreamsTarget = BTreeMap<KStr, TaskAssignment>;

/// A consumer group as its assignors see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerInput {
    /// By member id, ascending.
    pub members: Vec<ConsumerMember>,
    /// Number of partitions of every topic that somebody subscribes to.
    pub topics: BTreeMap<Uuid, i32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerMember {
    pub member_id: KStr,
    pub instance_id: Option<KStr>,
    pub rack_id: Option<KStr>,
    /// Ids of the existing topics it subscribes to, by name or expression.
    pub subscribed: Arc<BTreeSet<Uuid>>,
    /// Its previous target.
    pub assigned: Arc<PartitionSet>,
}

/// By member id; every member of the input has an entry.
pub type ConsumerTarget = BTreeMap<KStr, PartitionSet>;

/// The assignor cannot place what it was given; the group keeps its old target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AssignError(pub String);
