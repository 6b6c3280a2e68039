//! How long members may still be silent, for people: a static member that went away is held for so long.

use wire::KStr;

use super::{Group, classic, consumer, streams};
use crate::outcome::Reply;
use crate::shard::{Ctx, Timer};

/// Milliseconds left of the session of each member, in the order asked; none for who is not a member, or in a classic group while it
/// is parked in a join.
pub(crate) fn sessions(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member_ids: &[KStr]) {
    let group = ctx.state.group(group_id);
    let timer = |member_id: &KStr| {
        let (group_id, member_id) = (group_id.clone(), member_id.clone());
        Some(match group? {
            Group::Classic(_) => Timer::Classic(classic::Timer::Session { group_id, member_id }),
            Group::Consumer(_) => Timer::Consumer(consumer::Timer::Session { group_id, member_id }),
            Group::Streams(_) => Timer::Streams(streams::Timer::Session { group_id, member_id }),
        })
    };
    let now_ms = ctx.at.mono_ms;
    let left = |member_id: &KStr| ctx.soft.timers.deadline(&timer(member_id)?).map(|at| at.saturating_sub(now_ms));
    let all = member_ids.iter().map(left).collect();
    ctx.reply(Reply::Sessions(all));
}
