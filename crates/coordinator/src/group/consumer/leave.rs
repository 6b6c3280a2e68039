//! Members that leave, for good or for a while, and members that are removed (C K-27, K-30 to K-32).

use std::collections::BTreeMap;

use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;
use wire::{ErrorCode, KStr};

use super::fault::Fault;
use super::member::{AWAY_EPOCH, Has, Holdings, Member};
use super::timers::{self, Timer};
use super::{Group, downgrade, records, regexes, soft};
use crate::group;
use crate::shard::Ctx;

pub(super) fn leave(
    ctx: &mut Ctx<'_, '_>,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerGroupHeartbeatResponse, Fault> {
    let state = ctx.state;
    let group_id = &request.group_id;
    let group = match state.group(group_id) {
        Some(group::Group::Consumer(group)) => group,
        Some(_) => return Err(Fault::other_type(group_id)),
        None => return Err(Fault::new(ErrorCode::GroupIdNotFound, format!("Group {group_id} not found."))),
    };
    let member = find(group, request)?;
    if request.member_epoch == AWAY_EPOCH {
        go_away(ctx, group_id, member);
    } else {
        remove(ctx, group_id, group, &[member]);
    }
    Ok(ConsumerGroupHeartbeatResponse {
        member_id: Some(request.member_id.clone()),
        member_epoch: request.member_epoch,
        ..Default::default()
    })
}

/// C K-31.
fn find<'a>(group: &'a Group, request: &ConsumerGroupHeartbeatRequest) -> Result<&'a Member, Fault> {
    let member_id = &request.member_id;
    let Some(instance_id) = &request.instance_id else {
        let member = group.members.get(member_id);
        return member.ok_or_else(|| Fault::unknown_member(&request.group_id, member_id));
    };
    let holder = group.static_member(instance_id).ok_or_else(|| Fault::unknown_instance(instance_id))?;
    if holder.id != *member_id {
        return Err(Fault::fenced_instance(member_id, instance_id, &holder.id));
    }
    Ok(holder)
}

/// A static member keeps what it has and may be replaced now; its session runs on (C K-30).
fn go_away(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member: &Member) {
    let forgotten = |partitions: &BTreeMap<i32, i32>| partitions.keys().map(|partition| (*partition, 0)).collect();
    let assigned = member.has.assigned.iter().map(|(topic, partitions)| (*topic, forgotten(partitions)));
    let has = Has {
        epoch: AWAY_EPOCH,
        assigned: assigned.collect(),
        pending_revocation: Holdings::new(),
        ..member.has.clone()
    };
    ctx.out.records.push(records::current(group_id, &member.id, &has));
    let (group_id, member_id) = (group_id.clone(), member.id.clone());
    timers::disarm(ctx.soft, Timer::Rebalance { group_id, member_id });
}

/// Removes members, which moves the epoch once; or, when only members of the classic protocol remain, makes the group
/// a classic one (C G-13).
pub(super) fn remove(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: &Group, members: &[&Member]) {
    for member in members {
        timers::disarm_all(ctx.soft, group_id, &member.id);
    }
    if downgrade::is_due(&ctx.env.config.broker, group, members) {
        return downgrade::convert(ctx, group_id, group, members, true);
    }
    let mut left = group.counts.clone();
    for member in members {
        ctx.out.records.extend(records::member_tombstones(group_id, &member.id));
        left.remove(&member.wants);
    }
    ctx.out.records.extend(regexes::tombstones_without(group_id, group, &left));
    let hash = super::metadata_hash(left.topics(&group.regexes), ctx.env.topics);
    let epoch = group.epoch + 1;
    ctx.out.records.push(records::epoch(group_id, epoch, hash));
    if members.len() == group.members.len() {
        // Whoever joins next need not wait for the assignment interval (C K-19).
        ctx.out.records.push(records::target_epoch(group_id, epoch, 0));
    }
    soft::entry(ctx.soft, group_id).metadata_checked(ctx.at);
}
