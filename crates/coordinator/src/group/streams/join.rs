//! Which group and which member a join or heartbeat is about (S 1.5, 1.6, 2.3, 2.4), and what a join makes of the topology.

use std::sync::Arc;

use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::{ErrorCode, KStr};

use super::Group;
use super::error::Failure;
use super::member::{LEFT_FOR_NOW, Member, Owned};
use super::topology::Topology;
use crate::group::Group as AnyGroup;
use crate::shard::{Soft as ShardSoft, State};

/// What is there under the group id.
pub(super) enum Place<'a> {
    Group(&'a Group),
    /// Nothing: the join makes a group.
    Vacant,
    /// An empty classic group, which the join makes a streams group (S 10.4.1).
    Classic(&'a AnyGroup),
}

impl<'a> Place<'a> {
    /// S 1.5.
    pub(super) fn of(
        state: &'a State,
        soft: &ShardSoft,
        request: &StreamsGroupHeartbeatRequest,
    ) -> Result<Place<'a>, Failure> {
        let group_id = &request.group_id;
        let joins = request.member_epoch == 0;
        match state.group(group_id) {
            Some(AnyGroup::Streams(group)) => Ok(Place::Group(group)),
            None if joins => Ok(Place::Vacant),
            None => Err(Failure::not_found(format!("Streams group {group_id} not found."))),
            Some(other @ AnyGroup::Classic(classic)) if joins && classic.is_empty(soft, group_id) => {
                Ok(Place::Classic(other))
            }
            Some(_) => Err(Failure::not_found(format!("Group {group_id} is not a streams group."))),
        }
    }

    pub(super) fn group(&self) -> Option<&'a Group> {
        match self {
            Place::Group(group) => Some(group),
            Place::Vacant | Place::Classic(_) => None,
        }
    }
}

/// S 1.6: a join of somebody new to a full group.
pub(super) fn check_size(
    group: Option<&Group>,
    request: &StreamsGroupHeartbeatRequest,
    max_size: usize,
) -> Result<(), Failure> {
    let Some(group) = group.filter(|group| request.member_epoch == 0 && group.members.len() >= max_size) else {
        return Ok(());
    };
    let known_instance = request.instance_id.as_ref().is_some_and(|id| group.static_members.contains_key(id));
    if group.members.contains_key(&request.member_id) || known_instance {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::GroupMaxSizeReached,
        format!("The streams group has reached its maximum capacity of {max_size} members."),
    ))
}

/// The member of a join or heartbeat before it is updated.
pub(super) struct Entrant<'a> {
    pub member: Member,
    /// As it is in the hard state under its own id.
    pub known: Option<&'a Member>,
    /// The static member whose place it takes, which may have the same id.
    pub replaced: Option<(&'a KStr, &'a Member)>,
}

impl<'a> Entrant<'a> {
    /// Finds or makes the member and checks its epoch (S 2.3, 2.4). `known` is the member of that id, if there is one.
    pub(super) fn find(
        group: Option<&'a Group>,
        known: Option<&'a Member>,
        request: &StreamsGroupHeartbeatRequest,
        owned: Option<&Owned>,
    ) -> Result<Entrant<'a>, Failure> {
        let (group_id, member_id) = (&request.group_id, &request.member_id);
        let joins = request.member_epoch == 0;
        let owner = request.instance_id.as_ref().and_then(|id| group.and_then(|group| group.static_members.get(id)));
        match (&request.instance_id, owner) {
            (Some(instance_id), Some(owner)) if joins => {
                Entrant::rejoin_static(group, member_id, instance_id, owner, known)
            }
            (Some(instance_id), None) if !joins => {
                Err(Failure::unknown_member(format!("Instance id {instance_id} is unknown.")))
            }
            (Some(instance_id), Some(owner)) if *owner != *member_id => {
                Err(fenced_instance(member_id, instance_id, owner))
            }
            _ => match known {
                Some(member) => {
                    member.check_epoch(request.member_epoch, owned)?;
                    Ok(Entrant { member: member.clone(), known, replaced: None })
                }
                None if joins => Ok(Entrant { member: Member::default(), known: None, replaced: None }),
                None => Err(not_a_member(member_id, group_id)),
            },
        }
    }

    /// S 2.4.2, 2.4.3, and decision 16: the same member may come back while it is active.
    fn rejoin_static(
        group: Option<&'a Group>,
        member_id: &KStr,
        instance_id: &KStr,
        owner: &KStr,
        known: Option<&'a Member>,
    ) -> Result<Entrant<'a>, Failure> {
        let Some((owner, before)) = group.and_then(|group| group.members.get_key_value(owner)) else {
            return Err(Failure::unknown());
        };
        if before.epoch == LEFT_FOR_NOW {
            let member = Member { epoch: 0, previous_epoch: 0, ..before.clone() };
            return Ok(Entrant { member, known: None, replaced: Some((owner, before)) });
        }
        if owner == member_id {
            return Ok(Entrant { member: before.clone(), known, replaced: None });
        }
        Err(Failure::new(
            ErrorCode::UnreleasedInstanceId,
            format!(
                "Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is \
                 owned by {owner} member."
            ),
        ))
    }
}

pub(super) fn fenced_instance(member_id: &KStr, instance_id: &KStr, owner: &KStr) -> Failure {
    Failure::new(
        ErrorCode::FencedInstanceId,
        format!("Static member {member_id} with instance id {instance_id} was fenced by member {owner}."),
    )
}

pub(super) fn not_a_member(member_id: &KStr, group_id: &KStr) -> Failure {
    Failure::unknown_member(format!("Member {member_id} is not a member of group {group_id}."))
}

/// The topology after a request, and what happened to it.
pub(super) struct Topologies {
    pub topology: Arc<Topology>,
    pub change: TopologyChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopologyChange {
    Kept,
    First,
    Replaced,
}

impl Topologies {
    /// S 4.1, decisions 1 to 4.
    ///
    /// # Errors
    /// Those of [`Topology::from_request`] and [`Topology::after_join`]; UNKNOWN_SERVER_ERROR for a heartbeat to a group
    /// whose log lacks the topology (S 10.2.5).
    pub(super) fn of(group: Option<&Group>, request: &StreamsGroupHeartbeatRequest) -> Result<Topologies, Failure> {
        let stored = group.and_then(|group| group.topology.as_ref());
        let sent = request.topology.as_ref().map(Topology::from_request).transpose()?;
        let (topology, change) = match (stored, sent) {
            (Some(stored), None) => (Arc::clone(stored), TopologyChange::Kept),
            (None, Some(sent)) => (Arc::new(sent), TopologyChange::First),
            (None, None) => return Err(Failure::unknown()),
            (Some(stored), Some(sent)) => match stored.after_join(sent)? {
                None => (Arc::clone(stored), TopologyChange::Kept),
                Some(new) => (Arc::new(new), TopologyChange::Replaced),
            },
        };
        Ok(Topologies { topology, change })
    }
}
