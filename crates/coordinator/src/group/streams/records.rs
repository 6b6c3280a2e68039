//! The records of streams groups (S 10.1), from what handlers decided.

use std::collections::BTreeMap;

use wire::KStr;
use wire::messages::streams_group_current_member_assignment_key::StreamsGroupCurrentMemberAssignmentKey;
use wire::messages::streams_group_current_member_assignment_value as current;
use wire::messages::streams_group_heartbeat_request as sent;
use wire::messages::streams_group_member_metadata_key::StreamsGroupMemberMetadataKey;
use wire::messages::streams_group_member_metadata_value::{Endpoint, KeyValue, StreamsGroupMemberMetadataValue};
use wire::messages::streams_group_metadata_key::StreamsGroupMetadataKey;
use wire::messages::streams_group_metadata_value::{LastAssignmentConfig, StreamsGroupMetadataValue};
use wire::messages::streams_group_target_assignment_member_key::StreamsGroupTargetAssignmentMemberKey;
use wire::messages::streams_group_target_assignment_member_value as target;
use wire::messages::streams_group_target_assignment_metadata_key::StreamsGroupTargetAssignmentMetadataKey;
use wire::messages::streams_group_target_assignment_metadata_value::StreamsGroupTargetAssignmentMetadataValue;
use wire::messages::streams_group_topology_key::StreamsGroupTopologyKey;
use wire::messages::streams_group_topology_value::StreamsGroupTopologyValue;

use super::Group;
use super::member::{ActiveTasks, Member, Metadata, Tasks};
use super::topology;
use crate::assign::{TaskAssignment, TaskSet};
use crate::record::Record;

/// Type 19.
pub(super) fn member(group_id: &KStr, member_id: &KStr, metadata: &Metadata) -> Record {
    let value = StreamsGroupMemberMetadataValue {
        instance_id: metadata.instance_id.clone(),
        rack_id: metadata.rack_id.clone(),
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        rebalance_timeout_ms: metadata.rebalance_timeout_ms,
        topology_epoch: metadata.topology_epoch,
        process_id: metadata.process_id.clone(),
        user_endpoint: metadata.user_endpoint.as_ref().map(|(host, port)| Endpoint { host: host.clone(), port: *port }),
        client_tags: metadata
            .client_tags
            .iter()
            .map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() })
            .collect(),
    };
    Record::StreamsMember(member_key(group_id, member_id), Some(value))
}

pub(super) fn member_tombstone(group_id: &KStr, member_id: &KStr) -> Record {
    Record::StreamsMember(member_key(group_id, member_id), None)
}

fn member_key(group_id: &KStr, member_id: &KStr) -> StreamsGroupMemberMetadataKey {
    StreamsGroupMemberMetadataKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

/// The assignment configs as they are written into the group record (S 3.4.4).
pub(super) type AssignmentConfigs = BTreeMap<KStr, KStr>;

/// Type 17.
pub(super) fn group(
    group_id: &KStr,
    epoch: i32,
    metadata_hash: i64,
    validated_topology_epoch: i32,
    configs: Option<&AssignmentConfigs>,
    before: Option<&Group>,
) -> Record {
    let configs = configs.map(|configs| {
        let pairs = configs.iter();
        pairs.map(|(key, value)| LastAssignmentConfig { key: key.clone(), value: value.clone() }).collect()
    });
    let value = StreamsGroupMetadataValue {
        epoch,
        metadata_hash,
        validated_topology_epoch,
        last_assignment_configs: configs,
        stored_description_topology_epoch: before.map_or(-1, |group| group.stored_description_epoch),
        failed_description_topology_epoch: before.map_or(-1, |group| group.failed_description_epoch),
    };
    Record::StreamsMetadata(StreamsGroupMetadataKey { group_id: group_id.clone() }, Some(value))
}

pub(super) fn group_tombstone(group_id: &KStr) -> Record {
    Record::StreamsMetadata(StreamsGroupMetadataKey { group_id: group_id.clone() }, None)
}

/// Type 20. `timestamp_ms` is the wall time of the computation, 0 after the last member left.
pub(super) fn target_metadata(group_id: &KStr, assignment_epoch: i32, timestamp_ms: i64) -> Record {
    let value = StreamsGroupTargetAssignmentMetadataValue { assignment_epoch, assignment_timestamp: timestamp_ms };
    Record::StreamsTargetMetadata(target_metadata_key(group_id), Some(value))
}

pub(super) fn target_metadata_tombstone(group_id: &KStr) -> Record {
    Record::StreamsTargetMetadata(target_metadata_key(group_id), None)
}

fn target_metadata_key(group_id: &KStr) -> StreamsGroupTargetAssignmentMetadataKey {
    StreamsGroupTargetAssignmentMetadataKey { group_id: group_id.clone() }
}

/// Type 21.
pub(super) fn target(group_id: &KStr, member_id: &KStr, tasks: &TaskAssignment) -> Record {
    let lists = |tasks: &TaskSet| {
        let each = tasks.iter().filter(|(_, partitions)| !partitions.is_empty());
        each.map(|(id, partitions)| target::TaskIds {
            subtopology_id: id.clone(),
            partitions: partitions.iter().copied().collect(),
        })
        .collect()
    };
    let value = target::StreamsGroupTargetAssignmentMemberValue {
        active_tasks: lists(&tasks.active),
        standby_tasks: lists(&tasks.standby),
        warmup_tasks: lists(&tasks.warmup),
    };
    Record::StreamsTargetMember(target_key(group_id, member_id), Some(value))
}

pub(super) fn target_tombstone(group_id: &KStr, member_id: &KStr) -> Record {
    Record::StreamsTargetMember(target_key(group_id, member_id), None)
}

fn target_key(group_id: &KStr, member_id: &KStr) -> StreamsGroupTargetAssignmentMemberKey {
    StreamsGroupTargetAssignmentMemberKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

/// Type 22.
pub(super) fn current(group_id: &KStr, member_id: &KStr, member: &Member) -> Record {
    let (assigned, pending): (&Tasks, &Tasks) = (&member.assigned, &member.pending);
    let value = current::StreamsGroupCurrentMemberAssignmentValue {
        member_epoch: member.epoch,
        previous_member_epoch: member.previous_epoch,
        state: member.state as i8,
        active_tasks: with_epochs(&assigned.active),
        standby_tasks: without_epochs(&assigned.standby),
        warmup_tasks: without_epochs(&assigned.warmup),
        active_tasks_pending_revocation: with_epochs(&pending.active),
        standby_tasks_pending_revocation: without_epochs(&pending.standby),
        warmup_tasks_pending_revocation: without_epochs(&pending.warmup),
    };
    Record::StreamsCurrentMember(current_key(group_id, member_id), Some(value))
}

pub(super) fn current_tombstone(group_id: &KStr, member_id: &KStr) -> Record {
    Record::StreamsCurrentMember(current_key(group_id, member_id), None)
}

fn current_key(group_id: &KStr, member_id: &KStr) -> StreamsGroupCurrentMemberAssignmentKey {
    StreamsGroupCurrentMemberAssignmentKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn with_epochs(tasks: &ActiveTasks) -> Vec<current::TaskIds> {
    let each = tasks.iter().map(|(id, epochs)| current::TaskIds {
        subtopology_id: id.clone(),
        partitions: epochs.keys().copied().collect(),
        assignment_epochs: Some(epochs.values().copied().collect()),
    });
    each.collect()
}

fn without_epochs(tasks: &TaskSet) -> Vec<current::TaskIds> {
    let each = tasks.iter().map(|(id, partitions)| current::TaskIds {
        subtopology_id: id.clone(),
        partitions: partitions.iter().copied().collect(),
        assignment_epochs: Some(Vec::new()),
    });
    each.collect()
}

/// Type 23: the topology as the member sent it, the order of its lists included.
pub(super) fn topology(group_id: &KStr, topology: &sent::Topology) -> Record {
    let value = StreamsGroupTopologyValue {
        epoch: topology.epoch,
        subtopologies: topology.subtopologies.iter().map(topology::stored).collect(),
    };
    Record::StreamsTopology(StreamsGroupTopologyKey { group_id: group_id.clone() }, Some(value))
}

pub(super) fn topology_tombstone(group_id: &KStr) -> Record {
    Record::StreamsTopology(StreamsGroupTopologyKey { group_id: group_id.clone() }, None)
}

/// What removes a group, with the members that it may have (S 10.3).
pub(super) fn tombstones(group: &Group, group_id: &KStr, records: &mut Vec<Record>) {
    records.extend(group.members.keys().map(|id| current_tombstone(group_id, id)));
    records.extend(group.members.keys().map(|id| target_tombstone(group_id, id)));
    records.push(target_metadata_tombstone(group_id));
    records.extend(group.members.keys().map(|id| member_tombstone(group_id, id)));
    records.push(group_tombstone(group_id));
    records.push(topology_tombstone(group_id));
}
