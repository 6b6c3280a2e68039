//! Members that speak the classic protocol in a consumer group (C G-6 to G-12). Called by `classic` for a group that is a
//! consumer group with members.

use wire::messages::{
    heartbeat_request::HeartbeatRequest, join_group_request::JoinGroupRequest, leave_group_request::LeaveGroupRequest,
    sync_group_request::SyncGroupRequest,
};

use crate::command::Caller;
use crate::shard::Ctx;

pub(crate) fn join(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &JoinGroupRequest) {}
pub(crate) fn sync(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &SyncGroupRequest) {}
pub(crate) fn heartbeat(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &HeartbeatRequest) {}
pub(crate) fn leave(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &LeaveGroupRequest) {}
