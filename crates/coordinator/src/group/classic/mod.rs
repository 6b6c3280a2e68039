//! (to be written)

use wire::messages::list_groups_response::ListedGroup;
use wire::{ErrorCode, KStr, Uuid};

use super::{Admission, OffsetClient};
use crate::command::Caller;
use crate::env::{Env, Moment};
use crate::record::Record;
use crate::runtime::Position;
use crate::shard::{Ctx, State};

/// Hard state.
#[derive(Debug, Default)]
pub struct Group {}

/// Soft state of one group.
#[derive(Debug, Default)]
pub struct Soft {}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    Session { group_id: KStr, member_id: KStr },
}

pub(crate) fn fired(_ctx: &mut Ctx<'_, '_>, _timer: Timer) {}
pub(crate) fn forget(_soft: &mut crate::shard::Soft, _group_id: &KStr) {}
pub(crate) fn replay(_state: &mut State, _position: Position, _record: Record) {}
pub(crate) fn loaded(
    _group: &Group,
    _group_id: &KStr,
    _soft: &mut crate::shard::Soft,
    _at: Moment,
    _env: &mut Env<'_>,
) {
}
pub(crate) fn refused(
    _state: &State,
    _soft: &mut crate::shard::Soft,
    _at: Moment,
    _env: &mut Env<'_>,
) {
}

use wire::messages::{
    heartbeat_request::HeartbeatRequest, join_group_request::JoinGroupRequest,
    leave_group_request::LeaveGroupRequest, sync_group_request::SyncGroupRequest,
};

pub(crate) fn join(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &JoinGroupRequest) {}
pub(crate) fn sync(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &SyncGroupRequest) {}
pub(crate) fn heartbeat(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &HeartbeatRequest) {}
pub(crate) fn leave(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &LeaveGroupRequest) {}
pub(crate) fn describe(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _group_id: &KStr) {}

impl Group {
    pub(crate) fn admit_commit(
        &self,
        _soft: &crate::shard::Soft,
        _group_id: &KStr,
        _client: &OffsetClient<'_>,
    ) -> Result<Admission, ErrorCode> {
        Ok(Admission::All)
    }
    pub(crate) fn is_subscribed(
        &self,
        _soft: &crate::shard::Soft,
        _group_id: &KStr,
        _topic: &str,
    ) -> bool {
        false
    }
    pub(crate) fn admit_offset_delete(
        &self,
        _soft: &crate::shard::Soft,
        _group_id: &KStr,
    ) -> Result<(), ErrorCode> {
        Ok(())
    }
    pub(crate) fn offset_expired(
        &self,
        _soft: &crate::shard::Soft,
        _group_id: &KStr,
        commit_time_ms: i64,
        now_ms: i64,
        retention_ms: i64,
    ) -> bool {
        now_ms - commit_time_ms >= retention_ms
    }
    pub(crate) fn is_empty(&self, _soft: &crate::shard::Soft, _group_id: &KStr) -> bool {
        true
    }
    pub(crate) fn tombstones(&self, _group_id: &KStr, _records: &mut Vec<Record>) {}
    pub(crate) fn listed(&self, _soft: &crate::shard::Soft, _group_id: &KStr) -> ListedGroup {
        ListedGroup::default()
    }
}
