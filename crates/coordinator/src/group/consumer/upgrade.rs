//! to come
use super::Group;
use super::fault::Fault;
use crate::record::Record;
use crate::shard::Ctx;
use wire::{ErrorCode, KStr};

pub(super) fn convert(_ctx: &Ctx<'_, '_>, _group_id: &KStr, _records: &mut Vec<Record>) -> Result<Group, Fault> {
    Err(Fault::new(ErrorCode::GroupIdNotFound, ""))
}
