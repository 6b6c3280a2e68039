//! The answers of classic groups.

use bytes::Bytes;
use wire::messages::heartbeat_response::HeartbeatResponse;
use wire::messages::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};
use wire::messages::sync_group_response::SyncGroupResponse;
use wire::{ErrorCode, KStr};

use super::live::{Live, Waiting};
use super::scope::Scope;
use crate::outcome::Reply;

/// A failed join: generation -1, no leader, no members, no protocol (C J-8, J-20).
pub(super) fn join_failed(error: ErrorCode, member_id: KStr, api_version: i16) -> Reply {
    Reply::JoinGroup(Box::new(JoinGroupResponse {
        error_code: error.code(),
        member_id,
        protocol_name: protocol_name(None, api_version),
        ..Default::default()
    }))
}

/// A join that worked out. The members are listed for the leader only, in ascending order of ids (C B-11, J-22).
pub(super) fn joined(group: &Live, member_id: &KStr, list_members: bool, api_version: i16) -> Reply {
    let members = if list_members { members(group) } else { Vec::new() };
    Reply::JoinGroup(Box::new(JoinGroupResponse {
        generation_id: group.generation,
        protocol_type: group.protocol_type.clone(),
        protocol_name: protocol_name(group.protocol.clone(), api_version),
        leader: group.leader().cloned().unwrap_or_default(),
        member_id: member_id.clone(),
        members,
        ..Default::default()
    }))
}

fn members(group: &Live) -> Vec<JoinGroupResponseMember> {
    let protocol = group.protocol.clone().unwrap_or_default();
    let entry = |(member_id, member): (&KStr, &super::live::Member)| JoinGroupResponseMember {
        member_id: member_id.clone(),
        group_instance_id: member.instance_id.clone(),
        metadata: member.metadata(&protocol),
    };
    group.members().iter().map(entry).collect()
}

/// Before v7 there is no null.
fn protocol_name(name: Option<KStr>, api_version: i16) -> Option<KStr> {
    if api_version >= 7 { name } else { Some(name.unwrap_or_default()) }
}

/// No assignment and no protocol (C S-8).
pub(super) fn sync_failed(error: ErrorCode) -> Reply {
    Reply::SyncGroup(Box::new(SyncGroupResponse { error_code: error.code(), ..Default::default() }))
}

/// The assignment of the member (C S-6, S-7).
pub(super) fn synced(group: &Live, assignment: Bytes) -> Reply {
    Reply::SyncGroup(Box::new(SyncGroupResponse {
        protocol_type: group.protocol_type.clone(),
        protocol_name: group.protocol.clone(),
        assignment,
        ..Default::default()
    }))
}

pub(super) fn heartbeat(error: ErrorCode) -> Reply {
    Reply::Heartbeat(HeartbeatResponse { error_code: error.code(), ..Default::default() })
}

impl Scope<'_> {
    /// Answers a join that was kept open with an error.
    pub(super) fn fail_join(&mut self, waiting: Waiting, error: ErrorCode, member_id: KStr) {
        let reply = join_failed(error, member_id, waiting.api_version);
        self.out.reply(waiting.ticket, reply);
    }

    /// Answers a sync that was kept open with an error.
    pub(super) fn fail_sync(&mut self, waiting: Waiting, error: ErrorCode) {
        self.out.reply(waiting.ticket, sync_failed(error));
    }
}
