//! What a shard can be asked. One command concerns one group, but for those that say otherwise.

use std::sync::Arc;

use wire::messages::{
    consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest, heartbeat_request::HeartbeatRequest,
    join_group_request::JoinGroupRequest, leave_group_request::LeaveGroupRequest,
    offset_commit_request::OffsetCommitRequest, offset_delete_request::OffsetDeleteRequest,
    offset_fetch_request::OffsetFetchRequestGroup, streams_group_heartbeat_request::StreamsGroupHeartbeatRequest,
    streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest,
    sync_group_request::SyncGroupRequest, txn_offset_commit_request::TxnOffsetCommitRequest,
};
use wire::{KStr, Uuid};

use crate::plan::Change;
use crate::state_log::EndMarker;

/// Names the reply to one command. Chosen by the runtime, unique within a shard's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Who sent a request, and in which version.
#[derive(Clone, Debug)]
pub struct Caller {
    pub client_id: KStr,
    /// As records and describe show it: a slash and the address, `/127.0.0.1`.
    pub client_host: KStr,
    pub api_version: i16,
}

/// Requests arrive decoded; names and ids of topics in offset requests are as the client sent them.
#[derive(Clone, Debug)]
pub enum Command {
    JoinGroup(Caller, Box<JoinGroupRequest>),
    SyncGroup(Caller, Box<SyncGroupRequest>),
    Heartbeat(Caller, Box<HeartbeatRequest>),
    LeaveGroup(Caller, Box<LeaveGroupRequest>),
    ConsumerGroupHeartbeat(Caller, Box<ConsumerGroupHeartbeatRequest>),
    StreamsGroupHeartbeat(Caller, Box<StreamsGroupHeartbeatRequest>),
    StreamsTopologyDescriptionUpdate(Caller, Box<StreamsGroupTopologyDescriptionUpdateRequest>),
    OffsetCommit(Caller, Box<OffsetCommitRequest>),
    TxnOffsetCommit(Caller, Box<TxnOffsetCommitRequest>),
    /// One group of an OffsetFetch request.
    OffsetFetch {
        caller: Caller,
        group: Box<OffsetFetchRequestGroup>,
        require_stable: bool,
    },
    OffsetDelete(Caller, Box<OffsetDeleteRequest>),
    /// One group of a DescribeGroups request.
    DescribeGroup {
        caller: Caller,
        group_id: KStr,
    },
    ConsumerGroupDescribe {
        caller: Caller,
        group_id: KStr,
    },
    StreamsGroupDescribe {
        caller: Caller,
        group_id: KStr,
        include_topology_description: bool,
    },
    /// All groups of the shard that pass the filters (C D-4, S 9.3); empty filters pass everything.
    ListGroups {
        states: Vec<KStr>,
        types: Vec<KStr>,
    },
    DeleteGroup {
        group_id: KStr,
    },
    /// How long members may still be silent, in the order given.
    Sessions {
        group_id: KStr,
        member_ids: Vec<KStr>,
    },
    /// What a change would lead to. Changes nothing.
    Plan {
        group_id: KStr,
        change: Arc<Change>,
    },

    /// The end marker of a transaction was asked for: the shard writes nothing itself, the runtime appends the marker.
    TxnMarker(EndMarker),
    /// A timer is due. Handles the earliest due one only, since each firing must see the state after the one before;
    /// the runtime repeats it until `next_wakeup` lies ahead.
    Wakeup,
    /// Topics appeared, vanished or changed: concerns all groups. `Env::topics` is the new image.
    TopicsChanged {
        changed: Vec<KStr>,
        deleted: Vec<(KStr, Uuid)>,
    },
    /// The group's own configuration (resource type 32) changed.
    GroupConfigChanged {
        group_id: KStr,
    },
    /// What became of `Effect::CreateInternalTopics`: an error text per topic that failed; empty means all were made.
    InternalTopicsCreated {
        group_id: KStr,
        failures: Vec<(KStr, String)>,
        unauthorized: Vec<KStr>,
    },
    /// An assignment computed off the shard. Dropped when the group's epoch has moved on.
    AssignmentReady {
        group_id: KStr,
        group_epoch: i32,
        target: Arc<crate::group::ComputedTarget>,
    },
    /// The answer to `Effect::ResolveRegex`: for each expression the topics that match, by name.
    RegexResolved {
        group_id: KStr,
        matches: Vec<(KStr, Result<Vec<KStr>, String>)>,
        image_version: u64,
    },
}

impl Command {
    /// The group a command concerns; none for those that look at the whole shard.
    pub fn group_id(&self) -> Option<&KStr> {
        Some(match self {
            Command::JoinGroup(_, request) => &request.group_id,
            Command::SyncGroup(_, request) => &request.group_id,
            Command::Heartbeat(_, request) => &request.group_id,
            Command::LeaveGroup(_, request) => &request.group_id,
            Command::ConsumerGroupHeartbeat(_, request) => &request.group_id,
            Command::StreamsGroupHeartbeat(_, request) => &request.group_id,
            Command::StreamsTopologyDescriptionUpdate(_, request) => &request.group_id,
            Command::OffsetCommit(_, request) => &request.group_id,
            Command::TxnOffsetCommit(_, request) => &request.group_id,
            Command::OffsetFetch { group, .. } => &group.group_id,
            Command::OffsetDelete(_, request) => &request.group_id,
            Command::DescribeGroup { group_id, .. }
            | Command::ConsumerGroupDescribe { group_id, .. }
            | Command::StreamsGroupDescribe { group_id, .. }
            | Command::DeleteGroup { group_id }
            | Command::Sessions { group_id, .. }
            | Command::Plan { group_id, .. }
            | Command::GroupConfigChanged { group_id }
            | Command::InternalTopicsCreated { group_id, .. }
            | Command::AssignmentReady { group_id, .. }
            | Command::RegexResolved { group_id, .. } => group_id,
            Command::ListGroups { .. } | Command::TxnMarker(_) | Command::Wakeup | Command::TopicsChanged { .. } => {
                return None;
            }
        })
    }
}
