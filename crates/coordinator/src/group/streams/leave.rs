//! Members that go: for good, for now, or because they were not heard of any more (S 2.5, 2.6).

use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::messages::streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;

use super::Group;
use super::error::Failure;
use super::join::{fenced_instance, not_a_member};
use super::member::{LEFT_FOR_NOW, Member};
use super::{records, response, timers};
use crate::group::Group as AnyGroup;
use crate::shard::Ctx;

/// A heartbeat with epoch -1 or -2. There is no check of the epoch (S 2.5.5).
pub(super) fn leave(
    ctx: &mut Ctx<'_, '_>,
    request: &StreamsGroupHeartbeatRequest,
) -> Result<StreamsGroupHeartbeatResponse, Failure> {
    let (group_id, member_id) = (&request.group_id, &request.member_id);
    let group = match ctx.state.group(group_id) {
        Some(AnyGroup::Streams(group)) => group,
        Some(_) => return Err(Failure::not_found(format!("Group {group_id} is not a streams group."))),
        None => return Err(Failure::not_found(format!("Group {group_id} not found."))),
    };
    let Some(instance_id) = &request.instance_id else {
        if !group.members.contains_key(member_id) {
            return Err(not_a_member(member_id, group_id));
        }
        ask_for_shutdown(ctx, request);
        remove(ctx, group, group_id, member_id);
        return Ok(response::left(request));
    };
    let Some(owner) = group.static_members.get(instance_id) else {
        return Err(Failure::unknown_member(format!("Instance id {instance_id} is unknown.")));
    };
    if owner != member_id {
        return Err(fenced_instance(member_id, instance_id, owner));
    }
    ask_for_shutdown(ctx, request);
    if request.member_epoch == LEFT_FOR_NOW {
        if let Some(member) = group.members.get(member_id) {
            let away = away(member);
            ctx.out.records.push(records::current(group_id, member_id, &away));
            if let Some(soft) = ctx.soft.streams.get_mut(group_id) {
                soft.moves.dirty = true;
            }
        }
    } else {
        remove(ctx, group, group_id, member_id);
    }
    Ok(response::left(request))
}

/// S 2.7.1. Unlike Kafka only a member of the group can ask for it (decision 17).
fn ask_for_shutdown(ctx: &mut Ctx<'_, '_>, request: &StreamsGroupHeartbeatRequest) {
    if request.shutdown_application
        && let Some(soft) = ctx.soft.streams.get_mut(&request.group_id)
    {
        soft.shutdown.get_or_insert_with(|| request.member_id.to_owned_detached());
    }
}

/// A static member that will be back: its tasks stay, its session runs on (S 2.5.3).
fn away(member: &Member) -> Member {
    Member {
        epoch: LEFT_FOR_NOW,
        assigned: Arc::new(member.assigned.with_epochs_reset()),
        pending: Arc::default(),
        ..member.clone()
    }
}

/// A member whose session or rebalance timeout passed.
pub(super) fn expire(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member_id: &KStr) {
    if let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id)
        && group.members.contains_key(member_id)
    {
        remove(ctx, group, group_id, member_id);
    }
}

/// S 2.6: the group epoch moves; the others learn of it through the next assignment.
fn remove(ctx: &mut Ctx<'_, '_>, group: &Group, group_id: &KStr, member_id: &KStr) {
    let epoch = group.epoch + 1;
    let last = group.members.len() == 1;
    let out = &mut ctx.out.records;
    out.push(records::current_tombstone(group_id, member_id));
    out.push(records::target_tombstone(group_id, member_id));
    out.push(records::member_tombstone(group_id, member_id));
    let (hash, validated) = (group.metadata_hash, group.validated_topology_epoch);
    out.push(records::group(group_id, epoch, hash, validated, group.assignment_configs.as_ref(), Some(group)));
    if last {
        out.push(records::target_metadata(group_id, epoch, 0));
    }

    timers::cancel_member(&mut ctx.soft.timers, group_id, member_id);
    let Some(soft) = ctx.soft.streams.get_mut(group_id) else { return };
    soft.members.remove(member_id);
    soft.moves.dirty = true;
    // Decision 27: others would go on asking a member that is gone.
    if group.members.get(member_id).is_some_and(|member| member.metadata.user_endpoint.is_some()) {
        soft.endpoints.changed();
    }
    if last {
        soft.shutdown = None;
        soft.moves = super::assign::Moves::default();
        timers::set_warmup(&mut ctx.soft.timers, group_id, None);
    }
}
