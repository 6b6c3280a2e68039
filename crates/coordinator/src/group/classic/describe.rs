//! DescribeGroups and ListGroups (C D-1, D-2, D-4).

use bytes::Bytes;
use wire::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use wire::messages::list_groups_response::ListedGroup;
use wire::{ErrorCode, KStr};

use super::live::{GroupState, Live, Member};
use super::{Group, read};
use crate::command::Caller;
use crate::group;
use crate::outcome::Reply;
use crate::shard::{Ctx, Soft};

pub(crate) fn describe(ctx: &mut Ctx<'_, '_>, caller: &Caller, group_id: &KStr) {
    let described = match ctx.state.group(group_id) {
        Some(group::Group::Classic(stored)) => read(stored, ctx.soft, group_id, |live| described(live, group_id)),
        Some(_) => absent(caller, group_id, "is not a classic group."),
        None => absent(caller, group_id, "not found."),
    };
    ctx.reply(Reply::DescribeGroup(Box::new(described)));
}

/// Clients before v6 are told of a dead group instead of an error (C D-2).
fn absent(caller: &Caller, group_id: &KStr, why: &str) -> DescribedGroup {
    let mut described =
        DescribedGroup { group_id: group_id.clone(), group_state: KStr::from("Dead"), ..Default::default() };
    if caller.api_version >= 6 {
        described.error_code = ErrorCode::GroupIdNotFound.code();
        described.error_message = Some(KStr::from(format!("Group {group_id} {why}")));
    }
    described
}

/// What members say about themselves is shown while the group is stable only (C D-1).
fn described(live: &Live, group_id: &KStr) -> DescribedGroup {
    let protocol = match live.state() {
        GroupState::Stable => live.protocol.clone(),
        _ => None,
    };
    let member = |(member_id, member): (&KStr, &Member)| DescribedGroupMember {
        member_id: member_id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        member_metadata: protocol.as_ref().map_or_else(Bytes::new, |protocol| member.metadata(protocol)),
        member_assignment: member.assignment.clone(),
    };
    DescribedGroup {
        group_id: group_id.clone(),
        group_state: KStr::from(live.state().name()),
        protocol_type: live.protocol_type.clone().unwrap_or_default(),
        protocol_data: protocol.clone().unwrap_or_default(),
        members: live.members().iter().map(member).collect(),
        ..Default::default()
    }
}

/// A classic group at this moment, whether that is durable or not; for checkers that stand outside.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// As DescribeGroups names it.
    pub state: &'static str,
    pub generation: i32,
    /// Every member with its instance id. Ids that were only handed out are not among them.
    pub members: std::collections::BTreeMap<KStr, Option<KStr>>,
}

#[cfg(any(test, feature = "testing"))]
impl Group {
    pub(crate) fn roster(&self, soft: &Soft, group_id: &KStr) -> Roster {
        read(self, soft, group_id, |live| Roster {
            state: live.state().name(),
            generation: live.generation,
            members: live.members().iter().map(|(id, member)| (id.clone(), member.instance_id.clone())).collect(),
        })
    }
}

impl Group {
    pub(crate) fn listed(&self, soft: &Soft, group_id: &KStr) -> ListedGroup {
        read(self, soft, group_id, |live| ListedGroup {
            group_id: group_id.clone(),
            protocol_type: live.protocol_type.clone().unwrap_or_default(),
            group_state: KStr::from(live.state().name()),
            group_type: KStr::from("classic"),
        })
    }
}
