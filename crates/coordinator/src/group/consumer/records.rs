//! The records of consumer groups (types 3 to 8 and 16), in the order in which Kafka 4.4 writes them.

use wire::KStr;
use wire::messages::consumer_group_current_member_assignment_key::ConsumerGroupCurrentMemberAssignmentKey;
use wire::messages::consumer_group_member_metadata_key::ConsumerGroupMemberMetadataKey;
use wire::messages::consumer_group_metadata_key::ConsumerGroupMetadataKey;
use wire::messages::consumer_group_metadata_value::ConsumerGroupMetadataValue;
use wire::messages::consumer_group_partition_metadata_key::ConsumerGroupPartitionMetadataKey;
use wire::messages::consumer_group_regular_expression_key::ConsumerGroupRegularExpressionKey;
use wire::messages::consumer_group_regular_expression_value::ConsumerGroupRegularExpressionValue;
use wire::messages::consumer_group_target_assignment_member_key::ConsumerGroupTargetAssignmentMemberKey;
use wire::messages::consumer_group_target_assignment_member_value::{
    ConsumerGroupTargetAssignmentMemberValue, TopicPartition,
};
use wire::messages::consumer_group_target_assignment_metadata_key::ConsumerGroupTargetAssignmentMetadataKey;
use wire::messages::consumer_group_target_assignment_metadata_value::ConsumerGroupTargetAssignmentMetadataValue;

use super::Group;
use super::member::{Has, Wants};
use super::regexes::Resolved;
use crate::assign::PartitionSet;
use crate::record::Record;

pub(super) fn epoch(group_id: &KStr, epoch: i32, metadata_hash: i64) -> Record {
    let value = ConsumerGroupMetadataValue { epoch, metadata_hash };
    Record::ConsumerMetadata(metadata_key(group_id), Some(value))
}

pub(super) fn member(group_id: &KStr, member_id: &KStr, wants: &Wants) -> Record {
    Record::ConsumerMember(member_key(group_id, member_id), Some(wants.to_value()))
}

pub(super) fn current(group_id: &KStr, member_id: &KStr, has: &Has) -> Record {
    Record::ConsumerCurrentMember(current_key(group_id, member_id), Some(has.to_value()))
}

pub(super) fn target(group_id: &KStr, member_id: &KStr, target: &PartitionSet) -> Record {
    let topics = target.iter().map(|(topic_id, partitions)| TopicPartition {
        topic_id: *topic_id,
        partitions: partitions.iter().copied().collect(),
    });
    let value = ConsumerGroupTargetAssignmentMemberValue { topic_partitions: topics.collect() };
    Record::ConsumerTargetMember(target_key(group_id, member_id), Some(value))
}

/// `time_ms`: wall clock; 0 for none.
pub(super) fn target_epoch(group_id: &KStr, epoch: i32, time_ms: i64) -> Record {
    let value = ConsumerGroupTargetAssignmentMetadataValue { assignment_epoch: epoch, assignment_timestamp: time_ms };
    Record::ConsumerTargetMetadata(target_metadata_key(group_id), Some(value))
}

pub(super) fn regex(group_id: &KStr, expression: &KStr, resolved: &Resolved) -> Record {
    let value = ConsumerGroupRegularExpressionValue {
        topics: resolved.topics.iter().cloned().collect(),
        version: resolved.version,
        timestamp: resolved.time_ms,
    };
    Record::ConsumerRegex(regex_key(group_id, expression), Some(value))
}

pub(super) fn regex_tombstone(group_id: &KStr, expression: &KStr) -> Record {
    Record::ConsumerRegex(regex_key(group_id, expression), None)
}

/// What removes a member.
pub(super) fn member_tombstones(group_id: &KStr, member_id: &KStr) -> [Record; 3] {
    [
        Record::ConsumerCurrentMember(current_key(group_id, member_id), None),
        Record::ConsumerTargetMember(target_key(group_id, member_id), None),
        Record::ConsumerMember(member_key(group_id, member_id), None),
    ]
}

/// What removes the group, members included (C G-13).
pub(super) fn group_tombstones(group_id: &KStr, group: &Group, records: &mut Vec<Record>) {
    let ids = || group.members.keys();
    records.extend(ids().map(|id| Record::ConsumerCurrentMember(current_key(group_id, id), None)));
    records.extend(ids().map(|id| Record::ConsumerTargetMember(target_key(group_id, id), None)));
    records.push(Record::ConsumerTargetMetadata(target_metadata_key(group_id), None));
    records.extend(ids().map(|id| Record::ConsumerMember(member_key(group_id, id), None)));
    records.extend(group.regexes.keys().map(|expression| regex_tombstone(group_id, expression)));
    // Written by brokers before 4.1.
    let partitions = ConsumerGroupPartitionMetadataKey { group_id: group_id.clone() };
    records.push(Record::ConsumerPartitionMetadata(partitions, None));
    records.push(Record::ConsumerMetadata(metadata_key(group_id), None));
}

fn metadata_key(group_id: &KStr) -> ConsumerGroupMetadataKey {
    ConsumerGroupMetadataKey { group_id: group_id.clone() }
}

fn target_metadata_key(group_id: &KStr) -> ConsumerGroupTargetAssignmentMetadataKey {
    ConsumerGroupTargetAssignmentMetadataKey { group_id: group_id.clone() }
}

fn member_key(group_id: &KStr, member_id: &KStr) -> ConsumerGroupMemberMetadataKey {
    ConsumerGroupMemberMetadataKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn current_key(group_id: &KStr, member_id: &KStr) -> ConsumerGroupCurrentMemberAssignmentKey {
    ConsumerGroupCurrentMemberAssignmentKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn target_key(group_id: &KStr, member_id: &KStr) -> ConsumerGroupTargetAssignmentMemberKey {
    ConsumerGroupTargetAssignmentMemberKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn regex_key(group_id: &KStr, expression: &KStr) -> ConsumerGroupRegularExpressionKey {
    ConsumerGroupRegularExpressionKey { group_id: group_id.clone(), regular_expression: expression.clone() }
}
