//! The only writer of consumer groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::messages::consumer_group_regular_expression_value::ConsumerGroupRegularExpressionValue;
use wire::messages::consumer_group_target_assignment_member_value::ConsumerGroupTargetAssignmentMemberValue;
use wire::{KStr, Uuid};

use super::Group;
use super::member::{Has, Member, Wants};
use super::regexes::Resolved;
use crate::assign::PartitionSet;
use crate::group;
use crate::record::Record;
use crate::runtime::Position;
use crate::shard::State;

/// Applies a record to its group, which is made if need be. Tombstones of what is not there mean nothing: compaction
/// leaves such.
pub(crate) fn replay(state: &mut State, _position: Position, record: Record) {
    let group_id = record.group_id();
    if !matches!(state.group(group_id), Some(group::Group::Consumer(_))) {
        if record.is_tombstone() {
            return;
        }
        // Anything else that goes by this id is older: a simple group that offsets have made, or what compaction has
        // left of a group that this one replaced.
        state.groups.insert(group_id.to_owned_detached(), group::Group::Consumer(Group::default()));
    }
    if let Record::ConsumerMetadata(key, None) = &record {
        state.groups.remove(&key.group_id);
        return;
    }
    if let Some(group::Group::Consumer(group)) = state.groups.get_mut(record.group_id()) {
        group.apply(record);
    }
}

impl Group {
    /// What a record means for the group. Also used on a copy, to look ahead.
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::ConsumerMetadata(_, Some(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            Record::ConsumerMember(key, value) => match value {
                Some(value) => self.set_wants(&key.member_id, Wants::of_value(&value)),
                None => self.remove_member(&key.member_id),
            },
            Record::ConsumerTargetMetadata(_, value) => {
                let value = value.unwrap_or_default();
                self.target.epoch = value.assignment_epoch;
                self.target.time_ms = value.assignment_timestamp;
                self.count_reconciled();
            }
            Record::ConsumerTargetMember(key, value) => match value {
                Some(value) => {
                    let id = self.own_id(&key.member_id);
                    self.target.members.insert(id, Arc::new(target_of(&value)));
                }
                None => {
                    self.target.members.remove(&key.member_id);
                }
            },
            Record::ConsumerCurrentMember(key, value) => {
                let has = value.map(|value| Has::of_value(&value)).unwrap_or_default();
                self.set_has(&key.member_id, has);
            }
            Record::ConsumerRegex(key, value) => match value {
                Some(value) => {
                    let expression = key.regular_expression.to_owned_detached();
                    self.regexes.insert(expression, resolved_of(&value));
                }
                None => {
                    self.regexes.remove(&key.regular_expression);
                }
            },
            // The partition metadata of brokers before 4.1 has become the hash.
            _ => {}
        }
    }

    /// The member's id in memory of its own.
    fn own_id(&self, member_id: &KStr) -> KStr {
        self.members.get(member_id).map_or_else(|| member_id.to_owned_detached(), |member| member.id.clone())
    }

    fn set_wants(&mut self, member_id: &KStr, wants: Wants) {
        let id = self.own_id(member_id);
        let has = match self.members.remove(&id) {
            Some(old) => {
                self.counts.remove(&old.wants);
                self.forget_instance(&old);
                old.has
            }
            None => {
                let has = Has::default();
                self.reconciled += usize::from(has.is_reconciled_to(self.target.epoch));
                has
            }
        };
        self.counts.add(&wants);
        if let Some(instance_id) = &wants.instance_id {
            self.statics.insert(instance_id.clone(), id.clone());
        }
        self.members.insert(id.clone(), Member { id, wants, has });
    }

    fn remove_member(&mut self, member_id: &KStr) {
        let Some(old) = self.members.remove(member_id) else { return };
        self.reconciled -= usize::from(old.has.is_reconciled_to(self.target.epoch));
        self.counts.remove(&old.wants);
        self.release(&old);
        self.forget_instance(&old);
    }

    /// Unless the instance has been taken over already.
    fn forget_instance(&mut self, old: &Member) {
        if let Some(instance_id) = &old.wants.instance_id
            && self.statics.get(instance_id) == Some(&old.id)
        {
            self.statics.remove(instance_id);
        }
    }

    /// A current assignment without metadata is what compaction leaves of a member that is about to appear.
    fn set_has(&mut self, member_id: &KStr, has: Has) {
        if !self.members.contains_key(member_id) {
            if has == Has::default() {
                return;
            }
            self.set_wants(member_id, Wants::default());
        }
        let Some(mut member) = self.members.remove(member_id) else { return };
        self.reconciled -= usize::from(member.has.is_reconciled_to(self.target.epoch));
        self.release(&member);
        member.has = has;
        for (topic, partition) in member.has.held() {
            self.holders.entry(topic).or_default().insert(partition, member.id.clone());
        }
        self.reconciled += usize::from(member.has.is_reconciled_to(self.target.epoch));
        self.members.insert(member.id.clone(), member);
    }

    /// What the member holds becomes free, but for what another one has got in the meantime.
    fn release(&mut self, member: &Member) {
        for (topic, partition) in member.has.held() {
            let Some(holders) = self.holders.get_mut(&topic) else { continue };
            if holders.get(&partition) == Some(&member.id) {
                holders.remove(&partition);
            }
            if holders.is_empty() {
                self.holders.remove(&topic);
            }
        }
    }

    fn count_reconciled(&mut self) {
        let epoch = self.target.epoch;
        self.reconciled = self.members.values().filter(|member| member.has.is_reconciled_to(epoch)).count();
    }
}

fn target_of(value: &ConsumerGroupTargetAssignmentMemberValue) -> PartitionSet {
    let topics = value.topic_partitions.iter().filter(|topic| !topic.partitions.is_empty());
    let topics =
        topics.map(|topic| -> (Uuid, BTreeSet<i32>) { (topic.topic_id, topic.partitions.iter().copied().collect()) });
    topics.collect()
}

fn resolved_of(value: &ConsumerGroupRegularExpressionValue) -> Resolved {
    Resolved {
        topics: value.topics.iter().map(KStr::to_owned_detached).collect(),
        version: value.version,
        time_ms: value.timestamp,
    }
}
