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

/// An offset was committed for a group that does not exist: a simple group takes its place (C M-9, O-2).
pub(crate) fn create_simple(state: &mut State, group_id: &KStr, _position: Position) {
    state.groups.insert(
        group_id.to_owned_detached(),
        super::Group::Classic(Group::default()),
    );
}

/// A member has committed offsets, which keeps it alive in some states (C O-4).
pub(crate) fn offsets_committed(_ctx: &mut Ctx<'_, '_>, _group_id: &KStr, _member_id: &KStr) {}

/// The group as an upgrade needs it (C G-2, G-4), in whatever state it is.
pub(crate) fn snapshot(
    _state: &State,
    _soft: &crate::shard::Soft,
    _group_id: &KStr,
) -> Option<Snapshot> {
    None
}

/// A consumer group takes its place (C G-3): open joins and syncs get REBALANCE_IN_PROGRESS, soft state is forgotten.
/// The caller writes the records.
pub(crate) fn upgraded(_ctx: &mut Ctx<'_, '_>, _group_id: &KStr) {}

/// It takes the place of a consumer group, in state Stable (C G-13). The caller has written the records; soft state is
/// made from `group`, which is what their replay will yield but for protocols that the record does not hold.
/// With `rebalance`, a rebalance is prepared at once.
pub(crate) fn downgraded(
    _ctx: &mut Ctx<'_, '_>,
    _group_id: &KStr,
    _group: Snapshot,
    _rebalance: bool,
) {
}

use super::migration::Snapshot;

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
    /// False in states in which no offset of the group expires, not even by a time of its own (C E-2).
    pub(crate) fn expires_offsets(&self, _soft: &crate::shard::Soft, _group_id: &KStr) -> bool {
        true
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
