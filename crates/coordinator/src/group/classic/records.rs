//! The record of a classic group, the only one it has: what is written and what a replay or a restart makes of it
//! (C T-1 to T-4).

use bytes::Bytes;
use wire::KStr;
use wire::messages::group_metadata_key::GroupMetadataKey;
use wire::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};

use super::live::{GroupState, Live, Member};
use super::{Group, subscription};
use crate::group;
use crate::record::Record;
use crate::shard::State;

/// The group with its members and their assignments. Its time stamp is that of the state that the group is in now.
pub(super) fn of(live: &Live) -> Record {
    let protocol = live.protocol.clone().unwrap_or_default();
    let member = |(member_id, member): (&KStr, &Member)| MemberMetadata {
        member_id: member_id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout: member.rebalance_timeout_ms,
        session_timeout: member.session_timeout_ms,
        subscription: member.metadata(&protocol),
        assignment: member.assignment.clone(),
    };
    let value = GroupMetadataValue {
        protocol_type: live.protocol_type.clone().unwrap_or_default(),
        generation: live.generation,
        protocol: live.protocol.clone(),
        leader: live.leader().cloned(),
        current_state_timestamp: live.state_since_ms(),
        members: live.members().iter().map(member).collect(),
    };
    Record::GroupMetadata(key(&live.group_id), Some(value))
}

pub(super) fn tombstone(group_id: &KStr) -> Record {
    Record::GroupMetadata(key(group_id), None)
}

fn key(group_id: &KStr) -> GroupMetadataKey {
    GroupMetadataKey { group: group_id.clone() }
}

/// The latest record of a group is its hard state. A tombstone removes only what this record has made: in a log that
/// tells of a conversion, the records of the other protocol stand beside it.
pub(crate) fn replay(state: &mut State, record: Record) {
    let Record::GroupMetadata(key, value) = record else {
        return;
    };
    match value {
        Some(value) => {
            let group = Group { stored: Some(detach(value)) };
            let group_id = key.group.to_owned_detached();
            state.groups.insert(group_id, group::Group::Classic(group));
        }
        None => {
            if let Some(group::Group::Classic(_)) = state.groups.get(&key.group) {
                state.groups.remove(&key.group);
            }
        }
    }
}

/// Copies what a loaded record refers to out of the log's buffers. What a handler wrote is shared with the live group and
/// owns its memory already, but that cannot be seen here; records are rare enough.
fn detach(value: GroupMetadataValue) -> GroupMetadataValue {
    let text = |text: KStr| text.to_owned_detached();
    let bytes = |bytes: Bytes| Bytes::copy_from_slice(&bytes);
    let member = |member: MemberMetadata| MemberMetadata {
        member_id: text(member.member_id),
        group_instance_id: member.group_instance_id.map(text),
        client_id: text(member.client_id),
        client_host: text(member.client_host),
        subscription: bytes(member.subscription),
        assignment: bytes(member.assignment),
        ..member
    };
    GroupMetadataValue {
        protocol_type: text(value.protocol_type),
        protocol: value.protocol.map(text),
        leader: value.leader.map(text),
        members: value.members.into_iter().map(member).collect(),
        ..value
    }
}

impl Group {
    /// The live group that the latest record tells of: Stable if it has members, else Empty (C T-3). Without a record the
    /// group is a simple one, made by a commit (C M-9).
    pub(super) fn restore(&self, group_id: &KStr) -> Live {
        let mut live = Live::new(group_id.to_owned_detached(), -1);
        let Some(stored) = &self.stored else {
            return live;
        };
        if !stored.protocol_type.is_empty() {
            live.protocol_type = Some(stored.protocol_type.clone());
        }
        live.generation = stored.generation;
        for member in &stored.members {
            let restored = restore_member(member, stored.protocol.as_ref());
            live.add(member.member_id.clone(), &stored.protocol_type, restored);
        }
        live.set_leader(stored.leader.clone());
        live.protocol = stored.protocol.clone();
        live.subscribed = subscription::of(&live);
        let state = if stored.members.is_empty() { GroupState::Empty } else { GroupState::Stable };
        live.enter(state, stored.current_state_timestamp);
        live
    }
}

fn restore_member(member: &MemberMetadata, protocol: Option<&KStr>) -> Member {
    let protocol = protocol.cloned().unwrap_or_default();
    Member {
        instance_id: member.group_instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: if member.rebalance_timeout == -1 {
            member.session_timeout
        } else {
            member.rebalance_timeout
        },
        session_timeout_ms: member.session_timeout,
        protocols: vec![(protocol, member.subscription.clone())],
        assignment: member.assignment.clone(),
        awaiting_join: None,
        awaiting_sync: None,
        is_new: false,
    }
}
