//! Committed offsets of every kind of group: commit, fetch, delete, expiry (C section 10). (to be written)

use wire::messages::{
    offset_commit_key::OffsetCommitKey, offset_commit_request::OffsetCommitRequest,
    offset_commit_value::OffsetCommitValue, offset_delete_request::OffsetDeleteRequest,
    offset_fetch_request::OffsetFetchRequestGroup,
    txn_offset_commit_request::TxnOffsetCommitRequest,
};
use wire::{KStr, Uuid};

use crate::command::Caller;
use crate::runtime::Position;
use crate::shard::{Ctx, State};
use crate::state_log::Producer;

/// Hard state.
#[derive(Debug, Default)]
pub struct Offsets {}

pub(crate) fn commit(_ctx: &mut Ctx<'_, '_>, _caller: &Caller, _request: &OffsetCommitRequest) {}
pub(crate) fn commit_in_transaction(
    _ctx: &mut Ctx<'_, '_>,
    _caller: &Caller,
    _request: &TxnOffsetCommitRequest,
) {
}
pub(crate) fn fetch(
    _ctx: &mut Ctx<'_, '_>,
    _caller: &Caller,
    _group: &OffsetFetchRequestGroup,
    _require_stable: bool,
) {
}
pub(crate) fn delete(_ctx: &mut Ctx<'_, '_>, _request: &OffsetDeleteRequest) {}
pub(crate) fn expire(_ctx: &mut Ctx<'_, '_>) {}
pub(crate) fn topics_deleted(_ctx: &mut Ctx<'_, '_>, _deleted: &[(KStr, Uuid)]) {}
pub(crate) fn tombstones_of_group(_ctx: &mut Ctx<'_, '_>, _group_id: &KStr) {}
pub(crate) fn replay(
    _state: &mut State,
    _position: Position,
    _key: OffsetCommitKey,
    _value: Option<OffsetCommitValue>,
) {
}
pub(crate) fn replay_marker(
    _state: &mut State,
    _position: Position,
    _producer: Producer,
    _commit: bool,
) {
}
