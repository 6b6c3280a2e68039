//! Applies records to the hard state of streams groups (S 10.2). Total: it also takes what compaction left of a log.
//!
//! Whatever is kept is copied out of the buffers that the record came from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_current_member_assignment_value as current;
use wire::messages::streams_group_member_metadata_value::StreamsGroupMemberMetadataValue;
use wire::messages::streams_group_metadata_value::StreamsGroupMetadataValue;
use wire::messages::streams_group_target_assignment_member_value as target;

use super::Group;
use super::member::{ActiveTasks, Member, MemberState, Metadata, Tasks};
use super::topology::Topology;
use crate::assign::{TaskAssignment, TaskSet};
use crate::group::Group as AnyGroup;
use crate::record::Record;
use crate::shard::State;

/// Applies one record of types 17 to 23; others are not for this module.
pub(super) fn replay(state: &mut State, record: Record) {
    if record.is_tombstone() {
        replay_tombstone(state, &record);
    } else {
        let group_id = record.group_id().clone();
        replay_value(group(state, &group_id), record);
    }
}

/// The group, made if it is absent or only held offsets until now.
fn group<'a>(state: &'a mut State, group_id: &KStr) -> &'a mut Group {
    if !matches!(state.groups.get(group_id), Some(AnyGroup::Streams(_))) {
        state.groups.insert(group_id.to_owned_detached(), AnyGroup::Streams(Group::default()));
    }
    match state.groups.get_mut(group_id) {
        Some(AnyGroup::Streams(group)) => group,
        _ => unreachable!("a streams group was put there just now"),
    }
}

fn replay_value(group: &mut Group, record: Record) {
    match record {
        Record::StreamsMetadata(_, Some(value)) => replay_metadata(group, &value),
        Record::StreamsMember(key, Some(value)) => replay_member(group, &key.member_id, &value),
        Record::StreamsTargetMetadata(_, Some(value)) => {
            group.assignment_epoch = value.assignment_epoch;
            group.assignment_timestamp_ms = value.assignment_timestamp;
        }
        Record::StreamsTargetMember(key, Some(value)) => {
            let tasks = group.target_of(&value);
            group.set_target(&key.member_id, Some(Arc::new(tasks)));
        }
        Record::StreamsCurrentMember(key, Some(value)) => replay_current(group, &key.member_id, &value),
        Record::StreamsTopology(_, Some(value)) => group.topology = Some(Arc::new(Topology::from_record(&value))),
        _ => {}
    }
}

fn replay_tombstone(state: &mut State, record: &Record) {
    let Some(AnyGroup::Streams(group)) = state.groups.get_mut(record.group_id()) else { return };
    match record {
        Record::StreamsCurrentMember(key, _) => {
            if let Some(member) = group.members.get(&key.member_id) {
                let metadata = Arc::clone(&member.metadata);
                let gone = Member { metadata, epoch: -1, previous_epoch: -1, ..Member::default() };
                group.set_member(&key.member_id, Some(gone));
            }
        }
        Record::StreamsTargetMember(key, _) => group.set_target(&key.member_id, None),
        Record::StreamsMember(key, _) => group.set_member(&key.member_id, None),
        Record::StreamsTargetMetadata(..) => {
            group.assignment_epoch = -1;
            group.assignment_timestamp_ms = 0;
        }
        Record::StreamsTopology(..) => group.topology = None,
        Record::StreamsMetadata(key, _) => {
            state.groups.remove(&key.group_id);
        }
        _ => {}
    }
}

fn replay_metadata(group: &mut Group, value: &StreamsGroupMetadataValue) {
    group.epoch = value.epoch;
    group.metadata_hash = value.metadata_hash;
    group.validated_topology_epoch = value.validated_topology_epoch;
    group.assignment_configs = value.last_assignment_configs.as_ref().map(|configs| {
        let pairs = configs.iter();
        pairs.map(|config| (config.key.to_owned_detached(), config.value.to_owned_detached())).collect()
    });
    group.stored_description_epoch = value.stored_description_topology_epoch;
    group.failed_description_epoch = value.failed_description_topology_epoch;
}

fn replay_member(group: &mut Group, member_id: &KStr, value: &StreamsGroupMemberMetadataValue) {
    let metadata = Metadata {
        instance_id: value.instance_id.as_ref().map(KStr::to_owned_detached),
        rack_id: value.rack_id.as_ref().map(KStr::to_owned_detached),
        client_id: value.client_id.to_owned_detached(),
        client_host: value.client_host.to_owned_detached(),
        rebalance_timeout_ms: value.rebalance_timeout_ms,
        topology_epoch: value.topology_epoch,
        process_id: value.process_id.to_owned_detached(),
        user_endpoint: value.user_endpoint.as_ref().map(|endpoint| (endpoint.host.to_owned_detached(), endpoint.port)),
        client_tags: value
            .client_tags
            .iter()
            .map(|tag| (tag.key.to_owned_detached(), tag.value.to_owned_detached()))
            .collect(),
    };
    let before = group.members.get(member_id).cloned().unwrap_or_default();
    group.set_member(member_id, Some(Member { metadata: Arc::new(metadata), ..before }));
}

fn replay_current(group: &mut Group, member_id: &KStr, value: &current::StreamsGroupCurrentMemberAssignmentValue) {
    let epoch = value.member_epoch;
    let before = group.members.get(member_id).cloned().unwrap_or_default();
    let assigned = Tasks {
        active: active(group, &value.active_tasks, epoch),
        standby: copies(group, &value.standby_tasks),
        warmup: copies(group, &value.warmup_tasks),
    };
    let pending = Tasks {
        active: active(group, &value.active_tasks_pending_revocation, epoch),
        standby: copies(group, &value.standby_tasks_pending_revocation),
        warmup: copies(group, &value.warmup_tasks_pending_revocation),
    };
    let member = Member {
        metadata: before.metadata,
        epoch,
        previous_epoch: value.previous_member_epoch,
        state: MemberState::from_byte(value.state),
        assigned: Arc::new(assigned),
        pending: Arc::new(pending),
    };
    group.set_member(member_id, Some(member));
}

/// S 10.2.2: without epochs of the same number the member's epoch counts for all.
fn active(group: &Group, lists: &[current::TaskIds], member_epoch: i32) -> ActiveTasks {
    let mut tasks = ActiveTasks::new();
    for list in lists.iter().filter(|list| !list.partitions.is_empty()) {
        let epochs = list.assignment_epochs.as_ref().filter(|epochs| epochs.len() == list.partitions.len());
        let entry: &mut BTreeMap<i32, i32> = tasks.entry(group.subtopology_id(&list.subtopology_id)).or_default();
        for (at, partition) in list.partitions.iter().enumerate() {
            entry.insert(*partition, epochs.map_or(member_epoch, |epochs| epochs[at]));
        }
    }
    tasks
}

fn copies(group: &Group, lists: &[current::TaskIds]) -> TaskSet {
    let mut tasks = TaskSet::new();
    for list in lists.iter().filter(|list| !list.partitions.is_empty()) {
        let entry: &mut BTreeSet<i32> = tasks.entry(group.subtopology_id(&list.subtopology_id)).or_default();
        entry.extend(&list.partitions);
    }
    tasks
}

impl Group {
    fn target_of(&self, value: &target::StreamsGroupTargetAssignmentMemberValue) -> TaskAssignment {
        let set = |lists: &[target::TaskIds]| {
            let mut tasks = TaskSet::new();
            for list in lists.iter().filter(|list| !list.partitions.is_empty()) {
                let entry = tasks.entry(self.subtopology_id(&list.subtopology_id)).or_default();
                entry.extend(&list.partitions);
            }
            tasks
        };
        TaskAssignment {
            active: set(&value.active_tasks),
            standby: set(&value.standby_tasks),
            warmup: set(&value.warmup_tasks),
        }
    }

    /// The topology's own copy of the id, so that members share it.
    fn subtopology_id(&self, id: &KStr) -> KStr {
        let known = self.topology.as_ref().and_then(|topology| topology.subtopologies.get_key_value(id));
        known.map_or_else(|| id.to_owned_detached(), |(id, _)| id.clone())
    }

    /// Puts a member in the place of the one before, and keeps the indexes over members.
    fn set_member(&mut self, member_id: &KStr, member: Option<Member>) {
        let known = self.members.get_key_value(member_id).map(|(id, _)| id.clone());
        if let Some(old) = known.as_ref().and_then(|id| self.members.remove(id)) {
            self.holders.remove_member(&old);
            self.count_settled(&old, false);
            if let Some(instance_id) = &old.metadata.instance_id
                && self.static_members.get(instance_id).is_some_and(|id| id == member_id)
            {
                self.static_members.remove(instance_id);
            }
        }
        let Some(member) = member else { return };
        let member_id = known.unwrap_or_else(|| member_id.to_owned_detached());
        self.holders.add_member(&member);
        self.count_settled(&member, true);
        if let Some(instance_id) = &member.metadata.instance_id {
            self.static_members.insert(instance_id.clone(), member_id.clone());
        }
        self.members.insert(member_id, member);
    }

    fn count_settled(&mut self, member: &Member, here: bool) {
        if member.state != MemberState::Stable {
            return;
        }
        let count = self.stable_by_epoch.entry(member.epoch).or_default();
        if here {
            *count += 1;
        } else {
            *count = count.saturating_sub(1);
        }
        if *count == 0 {
            self.stable_by_epoch.remove(&member.epoch);
        }
    }

    fn set_target(&mut self, member_id: &KStr, target: Option<Arc<TaskAssignment>>) {
        let warming = |target: &TaskAssignment| target.warmup.values().map(BTreeSet::len).sum::<usize>();
        if let Some(old) = self.targets.remove(member_id) {
            self.warming -= warming(&old);
        }
        let Some(target) = target else { return };
        self.warming += warming(&target);
        let known = self.members.get_key_value(member_id).map(|(id, _)| id.clone());
        self.targets.insert(known.unwrap_or_else(|| member_id.to_owned_detached()), target);
    }
}
