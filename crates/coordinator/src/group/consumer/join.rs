//! Who a heartbeat comes from: which group, which member (C K-8 to K-13).

use std::borrow::Cow;
use std::ops::Deref;

use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::{ErrorCode, KStr};

use super::fault::Fault;
use super::member::{AWAY_EPOCH, Has, Holdings, Member};
use super::{Group, records, upgrade};
use crate::config::BrokerConfig;
use crate::group;
use crate::record::Record;
use crate::shard::Ctx;

/// The group as a request finds it, or makes it.
pub(super) enum Found<'a> {
    Existing(&'a Group),
    /// Made anew, in place of an empty classic group if there was one.
    Made(Group),
    /// Made of a classic group with members, as the records that were written say.
    Upgraded(Group),
}

impl Deref for Found<'_> {
    type Target = Group;

    fn deref(&self) -> &Group {
        match self {
            Found::Existing(group) => group,
            Found::Made(group) | Found::Upgraded(group) => group,
        }
    }
}

/// C K-8. Only who joins may make a group.
pub(super) fn find_group<'a>(
    ctx: &Ctx<'a, '_>,
    group_id: &KStr,
    joins: bool,
    records: &mut Vec<Record>,
) -> Result<Found<'a>, Fault> {
    match ctx.state.group(group_id) {
        Some(group::Group::Consumer(group)) => Ok(Found::Existing(group)),
        None if joins => Ok(Found::Made(Group::default())),
        None => Err(Fault::unknown_group(group_id)),
        Some(group::Group::Classic(classic)) if joins => {
            if classic.is_empty(ctx.soft, group_id) {
                classic.tombstones(group_id, records);
                return Ok(Found::Made(Group::default()));
            }
            upgrade::convert(ctx, group_id, records).map(Found::Upgraded)
        }
        Some(_) => Err(Fault::other_type(group_id)),
    }
}

/// C K-9.
pub(super) fn check_room(
    group: &Group,
    broker: &BrokerConfig,
    member_id: &str,
    instance_id: Option<&KStr>,
) -> Result<(), Fault> {
    let known = group.members.contains_key(member_id)
        || instance_id.is_some_and(|instance_id| group.statics.contains_key(instance_id));
    if known || group.members.len() < broker.consumer_max_size {
        return Ok(());
    }
    let message =
        format!("The consumer group has reached its maximum capacity of {} members.", broker.consumer_max_size);
    Err(Fault::new(ErrorCode::GroupMaxSizeReached, message))
}

/// A member as a request finds it.
pub(super) struct Participant<'a> {
    /// With its ids in memory of its own; a new one has nothing yet.
    pub member: Cow<'a, Member>,
    /// The member whose instance it takes over; it may have the same id.
    pub replaces: Option<&'a Member>,
}

impl<'a> Participant<'a> {
    pub fn existing(member: &'a Member) -> Self {
        Participant { member: Cow::Borrowed(member), replaces: None }
    }

    pub fn new(member_id: &KStr) -> Self {
        let member = Member { id: member_id.to_owned_detached(), ..Member::default() };
        Participant { member: Cow::Owned(member), replaces: None }
    }

    /// A static member under another id, or its own again: it inherits everything but its epoch (C K-12).
    pub fn replacing(
        group: &Group,
        group_id: &KStr,
        old: &'a Member,
        new_id: &KStr,
        records: &mut Vec<Record>,
    ) -> Self {
        let id = if old.id == *new_id { old.id.clone() } else { new_id.to_owned_detached() };
        let has = Has { epoch: 0, previous_epoch: 0, ..old.has.clone() };
        let new = Member { id, wants: old.wants.clone(), has };
        records.extend(records::member_tombstones(group_id, &old.id));
        records.push(records::member(group_id, &new.id, &new.wants));
        records.push(records::target(group_id, &new.id, &group.target_of(&old.id)));
        records.push(records::current(group_id, &new.id, &new.has));
        Participant { member: Cow::Owned(new), replaces: Some(old) }
    }
}

/// C K-10 to K-13. Taking over an instance writes records.
pub(super) fn find_member<'a>(
    group: &'a Group,
    group_id: &KStr,
    member_id: &KStr,
    request: &ConsumerGroupHeartbeatRequest,
    records: &mut Vec<Record>,
) -> Result<Participant<'a>, Fault> {
    let joins = request.member_epoch == 0;
    let known = group.members.get(member_id);
    let Some(instance_id) = &request.instance_id else {
        return match known {
            Some(member) if joins => Ok(Participant::existing(member)),
            Some(member) => check_epoch(member, request).map(|()| Participant::existing(member)),
            None if joins => Ok(Participant::new(member_id)),
            None => Err(Fault::unknown_member(group_id, member_id)),
        };
    };
    match group.static_member(instance_id) {
        None if joins => Ok(known.map_or_else(|| Participant::new(member_id), Participant::existing)),
        None => Err(Fault::unknown_instance(instance_id)),
        Some(holder) if joins && holder.has.epoch != AWAY_EPOCH && !holder.is_classic() => {
            let message = format!(
                "Static member {member_id} with instance id {instance_id} cannot join the group because the instance \
                 id is owned by {} member.",
                holder.id
            );
            Err(Fault::new(ErrorCode::UnreleasedInstanceId, message))
        }
        Some(holder) if joins => Ok(Participant::replacing(group, group_id, holder, member_id, records)),
        Some(holder) if holder.id != *member_id => Err(Fault::fenced_instance(member_id, instance_id, &holder.id)),
        Some(holder) => check_epoch(holder, request).map(|()| Participant::existing(holder)),
    }
}

/// C K-11: an older epoch is that of a member that did not get the latest answer, or of a zombie.
fn check_epoch(member: &Member, request: &ConsumerGroupHeartbeatRequest) -> Result<(), Fault> {
    let (received, known) = (request.member_epoch, member.has.epoch);
    if received == known {
        return Ok(());
    }
    let owned = request.topic_partitions.as_deref();
    let lost_answer = received < known
        && received == member.has.previous_epoch
        && owned.is_some_and(|owned| lies_within(owned, &member.has.assigned));
    if lost_answer {
        return Ok(());
    }
    let size = if received > known { "greater" } else { "smaller" };
    let message = format!(
        "The consumer group member has a {size} member epoch ({received}) than the one known by the group coordinator \
         ({known}). The member must abandon all its partitions and rejoin."
    );
    Err(Fault::new(ErrorCode::FencedMemberEpoch, message))
}

fn lies_within(owned: &[TopicPartitions], assigned: &Holdings) -> bool {
    owned.iter().all(|topic| {
        let assigned = assigned.get(&topic.topic_id);
        topic.partitions.iter().all(|partition| assigned.is_some_and(|assigned| assigned.contains_key(partition)))
    })
}
