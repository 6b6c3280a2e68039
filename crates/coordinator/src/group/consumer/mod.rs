//! (to be written)

pub(crate) mod classic_member;

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

use crate::assign::ConsumerTarget;
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;

pub(crate) fn heartbeat(
    _ctx: &mut Ctx<'_, '_>,
    _caller: &Caller,
    _request: &ConsumerGroupHeartbeatRequest,
) {
}
pub(crate) fn describe(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _group_id: &KStr) {}

pub(crate) fn topics_changed(_ctx: &mut Ctx<'_, '_>, _changed: &[KStr], _deleted: &[(KStr, Uuid)]) {
}
pub(crate) fn config_changed(_ctx: &mut Ctx<'_, '_>, _group_id: &KStr) {}
pub(crate) fn assignment_ready(
    _ctx: &mut Ctx<'_, '_>,
    _group_id: &KStr,
    _group_epoch: i32,
    _target: &Result<ConsumerTarget, String>,
) {
}
pub(crate) fn regex_resolved(
    _ctx: &mut Ctx<'_, '_>,
    _group_id: &KStr,
    _matches: Vec<(KStr, Result<Vec<KStr>, String>)>,
    _image_version: u64,
) {
}

impl Group {
    pub(crate) fn admit_commit(&self, _client: &OffsetClient<'_>) -> Result<Admission, ErrorCode> {
        Ok(Admission::All)
    }
    pub(crate) fn may_commit(
        &self,
        _client: &OffsetClient<'_>,
        _topic_id: &Uuid,
        _partition: i32,
    ) -> bool {
        true
    }
    pub(crate) fn admit_fetch(&self, _client: &OffsetClient<'_>) -> Result<(), ErrorCode> {
        Ok(())
    }
    pub(crate) fn is_subscribed(&self, _topic: &str) -> bool {
        false
    }
    pub(crate) fn is_empty(&self) -> bool {
        true
    }
    pub(crate) fn tombstones(&self, _group_id: &KStr, _records: &mut Vec<Record>) {}
    pub(crate) fn listed(&self, _group_id: &KStr) -> ListedGroup {
        ListedGroup::default()
    }
}
