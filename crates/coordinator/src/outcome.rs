//! What a command yields.

use std::sync::Arc;

use wire::KStr;
use wire::messages::{
    consumer_group_describe_response as consumer_describe,
    consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse, delete_groups_response::DeletableGroupResult,
    describe_groups_response::DescribedGroup as DescribedClassicGroup, heartbeat_response::HeartbeatResponse,
    join_group_response::JoinGroupResponse, leave_group_response::LeaveGroupResponse,
    list_groups_response::ListedGroup, offset_commit_response::OffsetCommitResponse,
    offset_delete_response::OffsetDeleteResponse, offset_fetch_response::OffsetFetchResponseGroup,
    streams_group_describe_response as streams_describe,
    streams_group_heartbeat_response::StreamsGroupHeartbeatResponse,
    streams_group_topology_description_update_response::StreamsGroupTopologyDescriptionUpdateResponse,
    sync_group_response::SyncGroupResponse, txn_offset_commit_response::TxnOffsetCommitResponse,
};

use crate::plan::{NoPlan, Plan};

/// Filled by one command, and reused by the next, so that a steady heartbeat allocates nothing.
pub type Outcome = crate::runtime::Decision<crate::shard::Shard>;

/// Replies mirror the commands. Large ones are boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    JoinGroup(Box<JoinGroupResponse>),
    SyncGroup(Box<SyncGroupResponse>),
    Heartbeat(HeartbeatResponse),
    LeaveGroup(Box<LeaveGroupResponse>),
    ConsumerGroupHeartbeat(Box<ConsumerGroupHeartbeatResponse>),
    StreamsGroupHeartbeat(Box<StreamsGroupHeartbeatResponse>),
    StreamsTopologyDescriptionUpdate(Box<StreamsGroupTopologyDescriptionUpdateResponse>),
    OffsetCommit(Box<OffsetCommitResponse>),
    TxnOffsetCommit(Box<TxnOffsetCommitResponse>),
    OffsetFetch(Box<OffsetFetchResponseGroup>),
    OffsetDelete(Box<OffsetDeleteResponse>),
    DescribeGroup(Box<DescribedClassicGroup>),
    ConsumerGroupDescribe(Box<consumer_describe::DescribedGroup>),
    StreamsGroupDescribe(Box<streams_describe::DescribedGroup>),
    ListGroups(Vec<ListedGroup>),
    DeleteGroup(Box<DeletableGroupResult>),
    /// Milliseconds, by member as asked.
    Sessions(Vec<Option<u64>>),
    Plan(Box<Result<Plan, NoPlan>>),
    /// To commands of the broker itself.
    Done,
}

/// An internal topic (repartition or changelog) to create for a streams group (S 4.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopic {
    pub name: KStr,
    pub partitions: i32,
    /// -1: the broker's default.
    pub replication_factor: i16,
    pub configs: Vec<(KStr, KStr)>,
}

/// Work that a shard asks for. None of it is done under the shard's lock.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Answered by `Command::InternalTopicsCreated`.
    CreateInternalTopics { group_id: KStr, topics: Vec<InternalTopic> },
    /// Answered by `Command::AssignmentReady`; `input` computes it, purely, on any thread.
    ComputeAssignment { group_id: KStr, group_epoch: i32, input: Arc<dyn crate::group::AssignmentInput> },
    /// Answered by `Command::RegexResolved`. RE2 syntax, full match on topic names.
    ResolveRegex { group_id: KStr, expressions: Vec<KStr> },
}
