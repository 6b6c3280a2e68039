//! What the log says about the groups, read record by record, and the laws of every batch: epochs never go back, a task or
//! partition is granted to one member at most, and is in one target at most.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::{TaskAssignment, TaskId, TaskSet, insert_task, tasks_of};
use coordinator::{LogEntry, Record};
use wire::messages::consumer_group_current_member_assignment_key::ConsumerGroupCurrentMemberAssignmentKey;
use wire::messages::consumer_group_current_member_assignment_value::{
    ConsumerGroupCurrentMemberAssignmentValue as ConsumerCurrentValue, TopicPartitions,
};
use wire::messages::consumer_group_member_metadata_key::ConsumerGroupMemberMetadataKey;
use wire::messages::consumer_group_target_assignment_member_key::ConsumerGroupTargetAssignmentMemberKey;
use wire::messages::group_metadata_value::GroupMetadataValue;
use wire::messages::streams_group_current_member_assignment_key::StreamsGroupCurrentMemberAssignmentKey;
use wire::messages::streams_group_current_member_assignment_value::{
    StreamsGroupCurrentMemberAssignmentValue as CurrentValue, TaskIds as CurrentTasks,
};
use wire::messages::streams_group_member_metadata_key::StreamsGroupMemberMetadataKey;
use wire::messages::streams_group_target_assignment_member_key::StreamsGroupTargetAssignmentMemberKey;
use wire::messages::streams_group_target_assignment_member_value as target_value;
use wire::{Bytes, KStr, Uuid};

/// Names of all topics that ever were.
pub type Names = BTreeMap<Uuid, KStr>;

/// The present assignment of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Current {
    pub epoch: i32,
    pub previous_epoch: i32,
    /// It has something to give up, active tasks or copies.
    pub revokes: bool,
    pub assigned: TaskAssignment,
    /// Since which epoch it has each active task.
    pub active_since: BTreeMap<TaskId, i32>,
    /// Active tasks that it has to give up, and since when it has had them.
    pub pending: BTreeMap<TaskId, i32>,
}

/// What the log says of one group. A partition of a consumer group is a task whose subtopology is the topic.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    /// 0 if it is no streams or consumer group, or has not been given one.
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub topology_epoch: i32,
    /// Every member with its instance id; none for classic groups, whose members the log does not know for certain.
    pub members: BTreeMap<KStr, Option<KStr>>,
    /// Those of them that speak the classic protocol in a consumer group.
    pub classic_members: BTreeSet<KStr>,
    pub targets: BTreeMap<KStr, TaskAssignment>,
    pub current: BTreeMap<KStr, Current>,
    /// Every epoch that a member ever had, with the active tasks it might have had then.
    pub ever: BTreeMap<KStr, BTreeMap<i32, BTreeSet<TaskId>>>,
    /// The latest record of a classic group.
    pub classic: Option<GroupMetadataValue>,
    /// Every assignment that a member of a classic group ever had, with its generation.
    pub ever_assigned: BTreeSet<(KStr, i32, Bytes)>,
    /// Committed offsets by topic and partition.
    pub offsets: BTreeMap<(KStr, i32), i64>,
    /// When each was committed, in milliseconds by the wall clock, and the id of the topic.
    committed: BTreeMap<(KStr, i32), (i64, Uuid)>,
    /// What each member of a consumer group reads by name.
    reads: BTreeMap<KStr, Vec<KStr>>,
    /// Members whose assignments were deleted while they had something to give up.
    gone_revoking: BTreeSet<KStr>,
    removed: Vec<Removed>,
    deleted: Vec<Deleted>,
}

/// A member of a streams or consumer group whose record was deleted.
#[derive(Clone, Debug)]
pub struct Removed {
    pub member_id: KStr,
    pub instance_id: Option<KStr>,
    /// It spoke the classic protocol, or had something to give up: it has other deadlines than its session.
    pub has_other_deadlines: bool,
}

/// An offset whose record was deleted.
#[derive(Clone, Debug)]
pub struct Deleted {
    pub topic: KStr,
    pub partition: i32,
    /// Of the topic that it was committed for; another one may have its name now.
    pub topic_id: Uuid,
    pub committed_ms: i64,
    /// Members of a consumer group read the topic.
    pub is_read: bool,
}

/// What the log says of all groups.
#[derive(Clone, Debug, Default)]
pub struct Mirrors {
    groups: BTreeMap<KStr, Mirror>,
    /// Stands for a group that there is not.
    nothing: Mirror,
    /// Log end up to which this is.
    end: u64,
}

impl Mirrors {
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn group(&self, group_id: &KStr) -> &Mirror {
        self.groups.get(group_id).unwrap_or(&self.nothing)
    }

    /// Members of all streams and consumer groups.
    pub fn members_total(&self) -> u32 {
        self.groups.values().map(|group| group.members.len() as u32).sum()
    }

    /// Reads the entries that are new, as one batch.
    ///
    /// # Errors
    /// The law that they break.
    pub fn read(&mut self, entries: &[LogEntry], end: u64, names: &Names) -> Result<(), String> {
        let mut before: BTreeMap<KStr, (i32, i32)> = BTreeMap::new();
        for entry in &entries[self.end as usize..end as usize] {
            let LogEntry::Record { record, .. } = entry else { continue };
            let Some(record) = Record::decode(record).map_err(|error| error.to_string())? else { continue };
            let group_id = record.group_id().clone();
            let group = self.groups.entry(group_id.clone()).or_default();
            before.entry(group_id).or_insert((group.group_epoch, group.assignment_epoch));
            group.apply(record, names);
        }
        self.end = end;
        before.into_iter().try_for_each(|(group_id, before)| {
            self.group(&group_id).check(before).map_err(|broken| format!("group {group_id}: {broken}"))
        })
    }
}

impl Mirrors {
    /// Members that were removed, and offsets that were deleted, since they were asked for last, by group.
    pub fn take_losses(&mut self) -> Vec<(KStr, Vec<Removed>, Vec<Deleted>)> {
        let groups = self.groups.iter_mut().filter(|(_, group)| !group.removed.is_empty() || !group.deleted.is_empty());
        groups
            .map(|(id, group)| (id.clone(), std::mem::take(&mut group.removed), std::mem::take(&mut group.deleted)))
            .collect()
    }
}

impl Mirror {
    /// Warm-up copies that the present targets have.
    pub fn warmups(&self) -> usize {
        self.targets.values().map(|target| tasks_of(&target.warmup).count()).sum()
    }

    /// The member that has an instance id.
    pub fn holder(&self, instance_id: &KStr) -> Option<&KStr> {
        self.members.iter().find(|(_, instance)| instance.as_ref() == Some(instance_id)).map(|(id, _)| id)
    }

    fn apply(&mut self, record: Record, names: &Names) {
        match record {
            Record::StreamsMetadata(_, value) => self.epoch_is(value.map(|value| value.epoch)),
            Record::ConsumerMetadata(_, value) => self.epoch_is(value.map(|value| value.epoch)),
            Record::StreamsTopology(_, Some(value)) => self.topology_epoch = value.epoch,
            Record::StreamsMember(key, Some(value)) => {
                self.members.insert(key.member_id, value.instance_id);
            }
            Record::ConsumerMember(key, Some(value)) => {
                self.classic_members.remove(&key.member_id);
                if value.classic_member_metadata.is_some() {
                    self.classic_members.insert(key.member_id.clone());
                }
                self.reads.insert(key.member_id.clone(), value.subscribed_topic_names);
                self.members.insert(key.member_id, value.instance_id);
            }
            Record::StreamsMember(StreamsGroupMemberMetadataKey { member_id, .. }, None)
            | Record::ConsumerMember(ConsumerGroupMemberMetadataKey { member_id, .. }, None) => {
                let spoke_classic = self.classic_members.remove(&member_id);
                let has_other_deadlines = self.gone_revoking.remove(&member_id) || spoke_classic;
                self.reads.remove(&member_id);
                if let Some(instance_id) = self.members.remove(&member_id) {
                    self.removed.push(Removed { member_id, instance_id, has_other_deadlines });
                }
            }
            Record::StreamsTargetMetadata(_, value) => {
                self.assignment_epoch = value.map_or(-1, |value| value.assignment_epoch);
            }
            Record::ConsumerTargetMetadata(_, value) => {
                self.assignment_epoch = value.map_or(-1, |value| value.assignment_epoch);
            }
            Record::StreamsTargetMember(key, Some(value)) => {
                let tasks = TaskAssignment {
                    active: target_set(&value.active_tasks),
                    standby: target_set(&value.standby_tasks),
                    warmup: target_set(&value.warmup_tasks),
                };
                self.targets.insert(key.member_id, tasks);
            }
            Record::ConsumerTargetMember(key, Some(value)) => {
                let topics = value.topic_partitions.iter();
                let active =
                    topics.map(|topic| (name(names, &topic.topic_id), topic.partitions.iter().copied().collect()));
                let active = active.filter(|(_, partitions): &(_, BTreeSet<i32>)| !partitions.is_empty()).collect();
                self.targets.insert(key.member_id, TaskAssignment { active, ..TaskAssignment::default() });
            }
            Record::StreamsTargetMember(StreamsGroupTargetAssignmentMemberKey { member_id, .. }, None)
            | Record::ConsumerTargetMember(ConsumerGroupTargetAssignmentMemberKey { member_id, .. }, None) => {
                self.targets.remove(&member_id);
            }
            Record::StreamsCurrentMember(key, Some(value)) => self.stands_at(key.member_id, current(&value)),
            Record::ConsumerCurrentMember(key, Some(value)) => {
                self.stands_at(key.member_id, consumer_current(&value, names));
            }
            Record::StreamsCurrentMember(StreamsGroupCurrentMemberAssignmentKey { member_id, .. }, None)
            | Record::ConsumerCurrentMember(ConsumerGroupCurrentMemberAssignmentKey { member_id, .. }, None) => {
                let current = self.current.remove(&member_id);
                self.gone_revoking.extend(current.filter(|current| current.revokes).map(|_| member_id));
            }
            Record::GroupMetadata(_, value) => {
                for member in value.iter().flat_map(|value| &value.members) {
                    let generation = value.as_ref().map_or(-1, |value| value.generation);
                    self.ever_assigned.insert((member.member_id.clone(), generation, member.assignment.clone()));
                }
                self.classic = value;
            }
            Record::OffsetCommit(key, value) => {
                let at = (key.topic, key.partition);
                match value {
                    Some(value) => {
                        self.committed.insert(at.clone(), (value.commit_timestamp, value.topic_id));
                        self.offsets.insert(at, value.offset);
                    }
                    None => {
                        self.offsets.remove(&at);
                        let committed = self.committed.remove(&at);
                        let is_read = self.reads.values().any(|topics| topics.contains(&at.0));
                        let (topic, partition) = at;
                        let deleted =
                            |(committed_ms, topic_id)| Deleted { topic, partition, topic_id, committed_ms, is_read };
                        self.deleted.extend(committed.map(deleted));
                    }
                }
            }
            _ => {}
        }
    }

    fn epoch_is(&mut self, epoch: Option<i32>) {
        match epoch {
            Some(epoch) => self.group_epoch = epoch,
            None => {
                *self = Mirror {
                    ever: std::mem::take(&mut self.ever),
                    classic: self.classic.take(),
                    ever_assigned: std::mem::take(&mut self.ever_assigned),
                    offsets: std::mem::take(&mut self.offsets),
                    committed: std::mem::take(&mut self.committed),
                    removed: std::mem::take(&mut self.removed),
                    deleted: std::mem::take(&mut self.deleted),
                    ..Mirror::default()
                }
            }
        }
    }

    fn stands_at(&mut self, member_id: KStr, current: Current) {
        let ever = self.ever.entry(member_id.clone()).or_default().entry(current.epoch).or_default();
        ever.extend(current.active_since.keys().chain(current.pending.keys()).cloned());
        self.current.insert(member_id, current);
    }

    fn check(&self, (group_epoch, assignment_epoch): (i32, i32)) -> Result<(), String> {
        // 0: the group was deleted, or was not there.
        if self.group_epoch < group_epoch && self.group_epoch != 0 {
            return Err(format!("the group epoch went from {group_epoch} back to {}", self.group_epoch));
        }
        if self.assignment_epoch < assignment_epoch && self.group_epoch != 0 {
            return Err(format!("the assignment epoch went from {assignment_epoch} back to {}", self.assignment_epoch));
        }
        if self.assignment_epoch > self.group_epoch {
            return Err(format!("assignment epoch {} of group epoch {}", self.assignment_epoch, self.group_epoch));
        }
        let mut owners: BTreeMap<&TaskId, &KStr> = BTreeMap::new();
        for (id, current) in &self.current {
            if current.epoch > self.assignment_epoch.max(1) {
                return Err(format!("{id} is at epoch {}, the assignment at {}", current.epoch, self.assignment_epoch));
            }
            for task in current.active_since.keys().chain(current.pending.keys()) {
                if let Some(other) = owners.insert(task, id) {
                    return Err(format!("{task:?} is active at {other} and at {id}"));
                }
            }
        }
        self.check_targets()
    }

    fn check_targets(&self) -> Result<(), String> {
        let mut wanted: BTreeMap<TaskId, &KStr> = BTreeMap::new();
        for (id, target) in &self.targets {
            for task in tasks_of(&target.active) {
                if let Some(other) = wanted.insert(task.clone(), id) {
                    return Err(format!("{task:?} is to be active at {other} and at {id}"));
                }
            }
        }
        Ok(())
    }

    /// Why somebody has not what it is to have, or the target is not that of the group's epoch.
    pub fn unsettled(&self) -> Option<String> {
        if self.group_epoch != self.assignment_epoch {
            return Some(format!("assignment epoch {} of {}", self.assignment_epoch, self.group_epoch));
        }
        let nothing = TaskAssignment::default();
        self.members.keys().find_map(|id| {
            let target = self.targets.get(id).unwrap_or(&nothing);
            let Some(current) = self.current.get(id) else { return Some(format!("{id} has no assignment")) };
            let settled = current.epoch == self.assignment_epoch && current.pending.is_empty();
            (!settled || current.assigned != *target)
                .then(|| format!("{id} is to have {target:?}, and has {current:?}"))
        })
    }

    /// All active tasks of the present assignments.
    pub fn active(&self) -> BTreeSet<TaskId> {
        self.current.values().flat_map(|current| current.active_since.keys().cloned()).collect()
    }
}

fn target_set(lists: &[target_value::TaskIds]) -> TaskSet {
    lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect())).collect()
}

fn current(value: &CurrentValue) -> Current {
    let set = |lists: &[CurrentTasks]| -> TaskSet {
        lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect())).collect()
    };
    Current {
        epoch: value.member_epoch,
        previous_epoch: value.previous_member_epoch,
        revokes: value.state == 2,
        assigned: TaskAssignment {
            active: set(&value.active_tasks),
            standby: set(&value.standby_tasks),
            warmup: set(&value.warmup_tasks),
        },
        active_since: since(&value.active_tasks, value.member_epoch),
        pending: since(&value.active_tasks_pending_revocation, value.member_epoch),
    }
}

fn since(lists: &[CurrentTasks], member_epoch: i32) -> BTreeMap<TaskId, i32> {
    let each = lists.iter().flat_map(|list| {
        let epochs = list.assignment_epochs.clone().unwrap_or_default();
        list.partitions.iter().enumerate().map(move |(at, partition)| {
            let task = TaskId { subtopology: list.subtopology_id.clone(), partition: *partition };
            (task, epochs.get(at).copied().unwrap_or(member_epoch))
        })
    });
    each.collect()
}

fn name(names: &Names, topic_id: &Uuid) -> KStr {
    names.get(topic_id).cloned().unwrap_or_default()
}

fn consumer_current(value: &ConsumerCurrentValue, names: &Names) -> Current {
    let since = |topics: &[TopicPartitions]| -> BTreeMap<TaskId, i32> {
        let each = topics.iter().flat_map(|topic| {
            let epochs = topic.assignment_epochs.clone().unwrap_or_default();
            topic.partitions.iter().enumerate().map(move |(at, partition)| {
                let task = TaskId { subtopology: name(names, &topic.topic_id), partition: *partition };
                (task, epochs.get(at).copied().unwrap_or(value.member_epoch))
            })
        });
        each.collect()
    };
    let active_since = since(&value.assigned_partitions);
    let mut active = TaskSet::new();
    active_since.keys().for_each(|task| insert_task(&mut active, task));
    Current {
        epoch: value.member_epoch,
        previous_epoch: value.previous_member_epoch,
        revokes: value.state == 1,
        assigned: TaskAssignment { active, ..TaskAssignment::default() },
        active_since,
        pending: since(&value.partitions_pending_revocation),
    }
}
