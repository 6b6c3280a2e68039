//! A classic group that becomes a consumer group, or was one (C sections 12.2, 12.6). What the other side makes of it is
//! decided in `consumer`.

use wire::{ErrorCode, KStr};

use super::live::{GroupState, Live, Member};
use super::refused::Unconfirmed;
use super::scope::Scope;
use super::{forget, read, rebalance, subscription};
use crate::env::{Env, Moment};
use crate::group::Group;
use crate::group::migration::{ClassicMember, Snapshot};
use crate::shard::{Ctx, Soft, State};

/// The group as an upgrade needs it (C G-2, G-4), in whatever state it is. `None` if it is not a classic group.
pub(crate) fn snapshot(state: &State, soft: &Soft, group_id: &KStr) -> Option<Snapshot> {
    let Some(Group::Classic(stored)) = state.group(group_id) else {
        return None;
    };
    let member = |(member_id, member): (&KStr, &Member)| ClassicMember {
        member_id: member_id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        protocols: member.protocols.clone(),
        assignment: member.assignment.clone(),
    };
    Some(read(stored, soft, group_id, |live| Snapshot {
        protocol_type: live.protocol_type.clone().unwrap_or_default(),
        generation: live.generation,
        protocol: live.protocol.clone(),
        leader: live.leader().cloned(),
        members: live.members().iter().map(member).collect(),
    }))
}

/// A consumer group takes its place (C G-3): open joins and syncs get REBALANCE_IN_PROGRESS, soft state is forgotten.
/// The caller writes the records.
pub(crate) fn upgraded(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    let Some(scope) = &mut Scope::open(ctx, group_id) else {
        return;
    };
    let member_ids: Vec<KStr> = scope.group.members().keys().cloned().collect();
    for member_id in &member_ids {
        if let Some(waiting) = scope.group.take_join(member_id) {
            scope.fail_join(waiting, ErrorCode::RebalanceInProgress, member_id.clone());
        }
        let member = scope.group.member_mut(member_id);
        if let Some(waiting) = member.and_then(|member| member.awaiting_sync.take()) {
            scope.fail_sync(waiting, ErrorCode::RebalanceInProgress);
        }
    }
    let live = scope.group.clone();
    forget(ctx.soft, group_id);
    ctx.soft.classic_unconfirmed = Some(Unconfirmed::Upgraded(Box::new(live)));
}

/// It takes the place of a consumer group, in state Stable (C G-13). The caller has written the records; soft state is
/// made from `group`, which is what their replay will yield but for protocols that the record does not hold.
/// With `rebalance`, a rebalance is prepared at once.
pub(crate) fn downgraded(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: Snapshot, rebalance: bool) {
    let mut live = Live::new(group_id.to_owned_detached(), ctx.at.wall_ms);
    live.generation = group.generation;
    for member in group.members {
        let joined = Member {
            instance_id: member.instance_id,
            client_id: member.client_id,
            client_host: member.client_host,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            protocols: member.protocols,
            assignment: member.assignment,
            awaiting_join: None,
            awaiting_sync: None,
            is_new: false,
        };
        live.add(member.member_id, &group.protocol_type, joined);
    }
    live.set_leader(group.leader);
    live.protocol_type = Some(group.protocol_type);
    live.protocol = group.protocol;
    live.subscribed = subscription::of(&live);
    live.enter(GroupState::Stable, ctx.at.wall_ms);
    let group_id = live.group_id.clone();
    resume(ctx.soft, ctx.at, ctx.env, live);
    ctx.soft.classic_unconfirmed = Some(Unconfirmed::Downgraded(group_id.clone()));
    if rebalance && let Some(scope) = &mut Scope::open(ctx, &group_id) {
        rebalance::prepare(scope);
    }
}

/// The group lives on from here: every member gets a full session, and a join phase that ran gets its timer back.
pub(super) fn resume(soft: &mut Soft, at: Moment, env: &mut Env<'_>, live: Live) {
    let group_id = live.group_id.clone();
    let member_ids: Vec<KStr> = live.members().keys().cloned().collect();
    soft.classic.insert(group_id.clone(), live);
    let mut out = Default::default();
    let Some(scope) = &mut Scope::of(soft, &mut out, env, at, &group_id) else {
        return;
    };
    for member_id in &member_ids {
        scope.restart_session(member_id);
    }
    let timeout_ms = scope.group.rebalance_timeout_ms();
    match scope.group.state() {
        GroupState::PreparingRebalance => scope.set_join_timer(timeout_ms),
        GroupState::CompletingRebalance => scope.set_sync_timer(timeout_ms),
        GroupState::Empty | GroupState::Stable => {}
    }
}
