//! Heartbeat (C section 5).

use wire::ErrorCode;
use wire::messages::heartbeat_request::HeartbeatRequest;

use super::live::{GroupState, Live};
use super::reply;
use super::scope::Scope;
use crate::command::Caller;
use crate::group::{Group, consumer};
use crate::shard::Ctx;

pub(crate) fn heartbeat(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &HeartbeatRequest) {
    if let Some(Group::Consumer(group)) = ctx.state.group(&request.group_id)
        && !group.is_empty()
    {
        return consumer::classic_member::heartbeat(ctx, caller, request);
    }
    let error = if request.group_id.is_empty() {
        ErrorCode::InvalidGroupId
    } else {
        match &mut Scope::open(ctx, &request.group_id) {
            None => ErrorCode::UnknownMemberId,
            Some(scope) => match check(scope.group, request) {
                Err(error) => error,
                Ok(in_rebalance) => {
                    scope.restart_session(&request.member_id);
                    in_rebalance
                }
            },
        }
    };
    ctx.reply(reply::heartbeat(error));
}

/// What a heartbeat that counts is answered with: NONE, or REBALANCE_IN_PROGRESS (C H-2, H-3).
fn check(group: &Live, request: &HeartbeatRequest) -> Result<ErrorCode, ErrorCode> {
    group.validate(&request.member_id, request.group_instance_id.as_ref())?;
    if request.generation_id != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    match group.state() {
        GroupState::Empty => Err(ErrorCode::UnknownMemberId),
        GroupState::PreparingRebalance => Ok(ErrorCode::RebalanceInProgress),
        GroupState::CompletingRebalance | GroupState::Stable => Ok(ErrorCode::None),
    }
}
