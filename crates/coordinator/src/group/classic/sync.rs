//! SyncGroup (C section 4): the leader hands in the assignment, everybody gets a share.

use bytes::Bytes;
use wire::messages::sync_group_request::SyncGroupRequest;
use wire::{ErrorCode, KStr};

use super::live::{GroupState, Live, Waiting};
use super::refused::Unconfirmed;
use super::scope::Scope;
use super::{rebalance, records, reply};
use crate::command::Caller;
use crate::group::{Group, consumer};
use crate::map::Map;
use crate::shard::Ctx;

pub(crate) fn sync(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &SyncGroupRequest) {
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    if caller.api_version >= 5 && !names_protocol {
        return ctx.reply(reply::sync_failed(ErrorCode::InconsistentGroupProtocol));
    }
    if request.group_id.is_empty() {
        return ctx.reply(reply::sync_failed(ErrorCode::InvalidGroupId));
    }
    if let Some(Group::Consumer(group)) = ctx.state.group(&request.group_id)
        && !group.is_empty()
    {
        return consumer::classic_member::sync(ctx, caller, request);
    }
    let waiting = Waiting { ticket: ctx.ticket, api_version: caller.api_version };
    let Some(scope) = &mut Scope::open(ctx, &request.group_id) else {
        return ctx.reply(reply::sync_failed(ErrorCode::UnknownMemberId));
    };
    if let Err(error) = check(scope.group, request) {
        return scope.fail_sync(waiting, error);
    }
    match scope.group.state() {
        GroupState::CompletingRebalance => wait_or_finish(scope, request, waiting),
        // Stable: `check` lets nothing else through. Anyone may ask again (C S-7).
        _ => {
            settle(scope, &request.member_id);
            let member = scope.group.member(&request.member_id);
            let assignment = member.map(|member| member.assignment.clone());
            let reply = reply::synced(scope.group, assignment.unwrap_or_default());
            scope.out.reply(waiting.ticket, reply);
        }
    }
}

/// C S-3, S-4.
fn check(group: &Live, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
    group.validate(&request.member_id, request.group_instance_id.as_ref())?;
    if request.generation_id != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    // A group that has not chosen yet contradicts nobody.
    let differs = |given: &Option<KStr>, own: &Option<KStr>| given.is_some() && own.is_some() && given != own;
    if differs(&request.protocol_type, &group.protocol_type) || differs(&request.protocol_name, &group.protocol) {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    match group.state() {
        GroupState::Empty => Err(ErrorCode::UnknownMemberId),
        GroupState::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
        GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
    }
}

/// The member has synced: it is not waited for any longer.
fn settle(scope: &mut Scope<'_>, member_id: &KStr) {
    scope.group.pending_syncs.remove(member_id);
    rebalance::settle_syncs(scope);
}

/// C S-5, S-6.
fn wait_or_finish(scope: &mut Scope<'_>, request: &SyncGroupRequest, waiting: Waiting) {
    let earlier = scope.group.member_mut(&request.member_id).and_then(|member| member.awaiting_sync.replace(waiting));
    if let Some(earlier) = earlier {
        // Its client has given it up; Kafka never answers it.
        scope.fail_sync(earlier, ErrorCode::RebalanceInProgress);
    }
    settle(scope, &request.member_id);
    if scope.group.is_leader(&request.member_id) {
        finish(scope, request);
    }
}

/// The assignment goes to the log and to everybody who waits for it. The record still carries the time of the state that
/// ends here. Members that the leader has forgotten get nothing, ids that it made up are ignored.
fn finish(scope: &mut Scope<'_>, request: &SyncGroupRequest) {
    let given = request.assignments.iter();
    let given: Map<&KStr, &Bytes> = given.map(|a| (&a.member_id, &a.assignment)).collect();
    for (member_id, member) in scope.group.members_mut() {
        let assignment = given.get(member_id).map(|bytes| &bytes[..]);
        member.assignment = Bytes::copy_from_slice(assignment.unwrap_or_default());
    }
    scope.out.records.push(records::of(scope.group));
    *scope.unconfirmed = Some(Unconfirmed::Assigned(scope.group.group_id.clone()));
    let now_ms = scope.at.wall_ms;
    scope.group.enter(GroupState::Stable, now_ms);
    let mut answered = Vec::new();
    for (member_id, member) in scope.group.members_mut() {
        if let Some(waiting) = member.awaiting_sync.take() {
            answered.push((member_id.clone(), waiting, member.assignment.clone()));
        }
    }
    for (member_id, waiting, assignment) in answered {
        let reply = reply::synced(scope.group, assignment);
        scope.out.reply(waiting.ticket, reply);
        scope.restart_session(&member_id);
    }
}
