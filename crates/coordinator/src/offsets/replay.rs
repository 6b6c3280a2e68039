//! The only writer of committed offsets.

use wire::KStr;
use wire::messages::offset_commit_key::OffsetCommitKey;
use wire::messages::offset_commit_value::OffsetCommitValue;

use super::{Committed, Offsets, Slot};
use crate::group::classic;
use crate::runtime::Position;
use crate::shard::State;
use crate::state_log::Producer;

/// An offset record. One for a group that does not exist makes a simple group (C M-9, X-8).
pub(crate) fn replay(state: &mut State, position: Position, key: OffsetCommitKey, value: Option<OffsetCommitValue>) {
    let Some(value) = value else {
        return state.offsets.remove(&key);
    };
    if state.group(&key.group).is_none() {
        classic::create_simple(state, &key.group, position);
    }
    let committed = Committed {
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: detached(&value.metadata),
        commit_time_ms: value.commit_timestamp,
        expire_time_ms: (value.expire_timestamp != -1).then_some(value.expire_timestamp),
        topic_id: value.topic_id,
        position: position.offset,
    };
    state.offsets.put(&key, position.producer, committed);
}

/// The end of a transaction: its offsets are committed or dropped (C X-7). Yields the groups concerned.
pub(crate) fn replay_marker(state: &mut State, producer: Producer, commit: bool) -> Vec<KStr> {
    state.offsets.end_transaction(producer.id, commit)
}

/// An empty text holds on to no frame.
fn detached(text: &KStr) -> KStr {
    if text.is_empty() { KStr::EMPTY } else { text.to_owned_detached() }
}

impl Offsets {
    fn put(&mut self, key: &OffsetCommitKey, producer: Option<Producer>, committed: Committed) {
        let (group_id, topic, slot) = self.slot_mut(key);
        let Some(producer) = producer else {
            slot.committed = Some(committed);
            return;
        };
        slot.pending.retain(|(id, _)| *id != producer.id);
        slot.pending.push((producer.id, committed));
        let place = (group_id, topic, key.partition);
        self.open.entry(producer.id).or_default().insert(place);
    }

    /// The slot of a key, made if need be, with names of its own memory.
    fn slot_mut(&mut self, key: &OffsetCommitKey) -> (KStr, KStr, &mut Slot) {
        let group_id = self.groups.get_key_value(&key.group).map(|(id, _)| id.clone());
        let group_id = group_id.unwrap_or_else(|| key.group.to_owned_detached());
        let topics = self.groups.entry(group_id.clone()).or_default();
        let topic = topics.get_key_value(&key.topic).map(|(name, _)| name.clone());
        let topic = topic.unwrap_or_else(|| key.topic.to_owned_detached());
        let slot = topics.entry(topic.clone()).or_default().entry(key.partition).or_default();
        (group_id, topic, slot)
    }

    /// A tombstone takes along what transactions hold open.
    fn remove(&mut self, key: &OffsetCommitKey) {
        let Some(slot) = self.existing(&key.group, &key.topic, key.partition) else {
            return;
        };
        let pending = std::mem::take(&mut slot.pending);
        slot.committed = None;
        let place = (key.group.clone(), key.topic.clone(), key.partition);
        for (producer_id, _) in pending {
            if let Some(places) = self.open.get_mut(&producer_id) {
                places.remove(&place);
                if places.is_empty() {
                    self.open.remove(&producer_id);
                }
            }
        }
        self.tidy(&key.group, &key.topic, key.partition);
    }

    fn end_transaction(&mut self, producer_id: i64, commit: bool) -> Vec<KStr> {
        let mut groups = Vec::new();
        for (group_id, topic, partition) in self.open.remove(&producer_id).unwrap_or_default() {
            if let Some(slot) = self.existing(&group_id, &topic, partition) {
                slot.end_transaction(producer_id, commit);
            }
            self.tidy(&group_id, &topic, partition);
            if groups.last() != Some(&group_id) {
                groups.push(group_id);
            }
        }
        groups
    }

    fn existing(&mut self, group_id: &str, topic: &str, partition: i32) -> Option<&mut Slot> {
        self.groups.get_mut(group_id)?.get_mut(topic)?.get_mut(&partition)
    }

    /// Drops what has become empty.
    fn tidy(&mut self, group_id: &str, topic: &str, partition: i32) {
        let Some(topics) = self.groups.get_mut(group_id) else {
            return;
        };
        if let Some(slots) = topics.get_mut(topic) {
            if slots.get(&partition).is_some_and(Slot::is_vacant) {
                slots.remove(&partition);
            }
            if slots.is_empty() {
                topics.remove(topic);
            }
        }
        if topics.is_empty() {
            self.groups.remove(group_id);
        }
    }
}

impl Slot {
    /// A commit without a transaction that came later in the log wins (C X-7).
    fn end_transaction(&mut self, producer_id: i64, commit: bool) {
        let Some(at) = self.pending.iter().position(|(id, _)| *id == producer_id) else {
            return;
        };
        let (_, pending) = self.pending.remove(at);
        let newer = self.committed.as_ref().is_none_or(|committed| committed.position < pending.position);
        if commit && newer {
            self.committed = Some(pending);
        }
    }
}
