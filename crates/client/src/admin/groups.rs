//! Groups of all three protocols: list, describe, delete, remove members.

use serde::Serialize;
use wire::messages::delete_groups_request::DeleteGroupsRequest;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::list_groups_request::ListGroupsRequest;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::{ErrorCode, KStr};

pub use super::description::{
    GroupDescription, GroupKind, Member, Node, StreamsGroup, StreamsMember, Subtopology, TaskId, TaskProgress, Tasks,
    describe,
};
use crate::error::ClientError;
use crate::router::Client;

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ListedGroup {
    pub group: String,
    /// `classic`, `consumer`, `streams` or `share`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `consumer` for groups of consumers; empty for a classic group that only has offsets.
    pub protocol: String,
    pub state: String,
}

/// All groups of all brokers, by name.
pub async fn list(client: &mut Client) -> Result<Vec<ListedGroup>, ClientError> {
    let mut groups = Vec::new();
    for address in client.brokers().await? {
        let response = client.call_broker(&address, &ListGroupsRequest::default()).await?;
        ClientError::check(response.error_code, None)?;
        groups.extend(response.groups.iter().map(|group| ListedGroup {
            group: group.group_id.to_string(),
            // Brokers that know but one type of group do not say which.
            kind: if group.group_type.is_empty() { "classic".to_owned() } else { group.group_type.to_lowercase() },
            protocol: group.protocol_type.to_string(),
            state: group.group_state.to_string(),
        }));
    }
    groups.sort();
    groups.dedup();
    Ok(groups)
}

/// Deletes a group and its offsets; refused by the broker unless it is empty.
pub async fn delete(client: &mut Client, group_id: &str) -> Result<(), ClientError> {
    let request = DeleteGroupsRequest { groups_names: vec![KStr::copy(group_id)], ..Default::default() };
    let code = |result: &wire::messages::delete_groups_response::DeleteGroupsResponse| {
        result.results.first().map_or(0, |result| result.error_code)
    };
    let response = client.call_coordinator(group_id, &request, code).await?;
    let result = response.results.first().ok_or(ClientError::Incomplete("the group is missing in the answer"))?;
    ClientError::check(result.error_code, result.error_message.as_deref())
}

/// Whom to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    Instance(String),
    Member(String),
}

impl Removal {
    /// The id that was given.
    pub fn id(&self) -> &str {
        match self {
            Removal::Instance(id) | Removal::Member(id) => id,
        }
    }
}

/// Removes members, each with an outcome of its own, in the order given. Classic and consumer groups take all in one request
/// (KIP-345, C L-3, C G-12). Streams groups do not know that request (S 12): their members are removed by the heartbeat with
/// which they would leave themselves.
pub async fn remove_members(
    client: &mut Client,
    group: &GroupDescription,
    removals: &[Removal],
    reason: &str,
) -> Result<Vec<ErrorCode>, ClientError> {
    if group.kind != GroupKind::Streams {
        return leave_group(client, &group.group, removals, reason).await;
    }
    let mut outcomes = Vec::new();
    for removal in removals {
        let found = group.members.iter().find(|member| match removal {
            Removal::Instance(id) => member.instance_id.as_ref() == Some(id),
            Removal::Member(id) => member.member_id == *id,
        });
        outcomes.push(match found {
            Some(member) => leave_streams(client, &group.group, member).await?,
            None => ErrorCode::UnknownMemberId,
        });
    }
    Ok(outcomes)
}

async fn leave_streams(client: &mut Client, group_id: &str, member: &Member) -> Result<ErrorCode, ClientError> {
    const LEAVE: i32 = -1;
    let request = StreamsGroupHeartbeatRequest {
        group_id: KStr::copy(group_id),
        member_id: KStr::copy(&member.member_id),
        member_epoch: LEAVE,
        instance_id: member.instance_id.as_deref().map(KStr::copy),
        rebalance_timeout_ms: -1,
        ..Default::default()
    };
    let response = client.call_coordinator(group_id, &request, |response| response.error_code).await?;
    Ok(ErrorCode::from_code(response.error_code))
}

async fn leave_group(
    client: &mut Client,
    group_id: &str,
    members: &[Removal],
    reason: &str,
) -> Result<Vec<ErrorCode>, ClientError> {
    let identity = |removal: &Removal| {
        let reason = Some(KStr::copy(reason));
        match removal {
            Removal::Instance(id) => {
                MemberIdentity { group_instance_id: Some(KStr::copy(id)), reason, ..Default::default() }
            }
            Removal::Member(id) => MemberIdentity { member_id: KStr::copy(id), reason, ..Default::default() },
        }
    };
    let request = LeaveGroupRequest {
        group_id: KStr::copy(group_id),
        members: members.iter().map(identity).collect(),
        ..Default::default()
    };
    let response = client.call_coordinator(group_id, &request, |response| response.error_code).await?;
    ClientError::check(response.error_code, None)?;
    if response.members.len() != members.len() {
        return Err(ClientError::Incomplete("not every member is in the answer"));
    }
    Ok(response.members.iter().map(|member| ErrorCode::from_code(member.error_code)).collect())
}
