//! LeaveGroup (C section 6): members that go, and administrators that make them.

use wire::ErrorCode;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::leave_group_response::{LeaveGroupResponse, MemberResponse};

use super::rebalance;
use super::scope::Scope;
use crate::command::Caller;
use crate::group::{Group, consumer};
use crate::outcome::Reply;
use crate::shard::Ctx;

pub(crate) fn leave(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &LeaveGroupRequest) {
    if request.group_id.is_empty() {
        let error_code = ErrorCode::InvalidGroupId.code();
        return ctx.reply(Reply::LeaveGroup(Box::new(LeaveGroupResponse { error_code, ..Default::default() })));
    }
    if let Some(Group::Consumer(group)) = ctx.state.group(&request.group_id)
        && !group.is_empty()
    {
        return consumer::classic_member::leave(ctx, caller, request);
    }
    let single;
    let members = if caller.api_version < 3 {
        single = [MemberIdentity { member_id: request.member_id.clone(), ..Default::default() }];
        &single[..]
    } else {
        &request.members
    };
    let errors = match &mut Scope::open(ctx, &request.group_id) {
        None => vec![ErrorCode::UnknownMemberId; members.len()],
        Some(scope) => remove_all(scope, caller, request, members),
    };
    ctx.reply(response(caller, members, &errors));
}

/// One rebalance for the whole batch (C L-7).
fn remove_all(
    scope: &mut Scope<'_>,
    caller: &Caller,
    request: &LeaveGroupRequest,
    members: &[MemberIdentity],
) -> Vec<ErrorCode> {
    let remove = |identity: &MemberIdentity| match remove_one(scope, caller, request, identity) {
        Ok(()) => ErrorCode::None,
        Err(error) => error,
    };
    let errors: Vec<ErrorCode> = members.iter().map(remove).collect();
    if errors.contains(&ErrorCode::None) {
        rebalance::after_removal(scope);
    }
    errors
}

/// C L-3.
fn remove_one(
    scope: &mut Scope<'_>,
    caller: &Caller,
    request: &LeaveGroupRequest,
    identity: &MemberIdentity,
) -> Result<(), ErrorCode> {
    let instance_id = identity.group_instance_id.as_ref();
    if identity.member_id.is_empty() {
        let holder = instance_id.and_then(|id| scope.group.member_of_instance(id).cloned());
        let member_id = holder.ok_or(ErrorCode::UnknownMemberId)?;
        scope.note_leave(caller, request, &member_id);
        rebalance::remove_member(scope, &member_id);
        return Ok(());
    }
    if let Some(pending) = scope.group.pending_joins.take(&identity.member_id) {
        scope.end_session(&pending);
        return Ok(());
    }
    scope.group.validate(&identity.member_id, instance_id)?;
    scope.note_leave(caller, request, &identity.member_id);
    rebalance::remove_member(scope, &identity.member_id);
    Ok(())
}

/// Before v3 the one entry's error is that of the whole request (C L-1).
fn response(caller: &Caller, members: &[MemberIdentity], errors: &[ErrorCode]) -> Reply {
    let mut response = LeaveGroupResponse::default();
    if caller.api_version < 3 {
        response.error_code = errors.first().map_or(0, |error| error.code());
    } else {
        let entry = |(identity, error): (&MemberIdentity, &ErrorCode)| MemberResponse {
            member_id: identity.member_id.clone(),
            group_instance_id: identity.group_instance_id.clone(),
            error_code: error.code(),
        };
        response.members = members.iter().zip(errors).map(entry).collect();
    }
    Reply::LeaveGroup(Box::new(response))
}
