//! to come
use super::Group;
use super::member::Member;
use crate::shard::Ctx;
use wire::KStr;

pub(super) fn is_due(_ctx: &Ctx<'_, '_>, _group: &Group, _members: &[&Member]) -> bool {
    false
}
pub(super) fn convert(
    _ctx: &mut Ctx<'_, '_>,
    _group_id: &KStr,
    _group: &Group,
    _gone: &[&Member],
    _joining: Option<&Member>,
) {
}
