//! Deadlines of members (C K-27, G-8, G-11).

use wire::KStr;

use super::leave;
use super::member::Member;
use crate::env::{Env, Moment};
use crate::group;
use crate::journal::Kind;
use crate::shard::{self, Ctx};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// A member has been silent.
    Session { group_id: KStr, member_id: KStr },
    /// A member has not given up its partitions.
    Rebalance { group_id: KStr, member_id: KStr },
    /// A member of the classic protocol was told to rejoin and has not.
    Join { group_id: KStr, member_id: KStr },
    /// A member of the classic protocol has joined and not synced.
    Sync { group_id: KStr, member_id: KStr },
}

impl Timer {
    /// The group, and why the timer removes a member.
    pub(crate) fn why(&self) -> (KStr, Kind) {
        match self {
            Timer::Session { group_id, .. } => (group_id.clone(), Kind::SessionExpired),
            Timer::Rebalance { group_id, .. } | Timer::Join { group_id, .. } | Timer::Sync { group_id, .. } => {
                (group_id.clone(), Kind::TooSlow)
            }
        }
    }
}

/// Whatever it was that a member failed to do, it is removed.
pub(crate) fn fired(ctx: &mut Ctx<'_, '_>, timer: Timer) {
    let (Timer::Session { group_id, member_id }
    | Timer::Rebalance { group_id, member_id }
    | Timer::Join { group_id, member_id }
    | Timer::Sync { group_id, member_id }) = timer;
    let state = ctx.state;
    if let Some(group::Group::Consumer(group)) = state.group(&group_id)
        && let Some(member) = group.members.get(&member_id)
    {
        leave::remove(ctx, &group_id, group, &[member]);
    }
}

pub(super) fn arm(soft: &mut shard::Soft, at: Moment, timer: Timer, ms: i32) {
    let ms = u64::try_from(ms).unwrap_or(0);
    soft.timers.set(&shard::Timer::Consumer(timer), at.mono_ms + ms);
}

pub(super) fn disarm(soft: &mut shard::Soft, timer: Timer) {
    soft.timers.cancel(&shard::Timer::Consumer(timer));
}

pub(super) fn is_armed(soft: &shard::Soft, timer: &Timer) -> bool {
    soft.timers.deadline(&shard::Timer::Consumer(timer.clone())).is_some()
}

/// Starts the session anew. `member` has its ids in memory of its own, the timer holds on to them.
pub(super) fn arm_session(soft: &mut shard::Soft, at: Moment, env: &Env<'_>, group_id: &KStr, member: &Member) {
    let of_group_ms = env.config.consumer_session_timeout_ms(group_id);
    let timer = Timer::Session { group_id: group_id.clone(), member_id: member.id.clone() };
    arm(soft, at, timer, member.session_timeout_ms(of_group_ms));
}

/// The member is gone.
pub(super) fn disarm_all(soft: &mut shard::Soft, group_id: &KStr, member_id: &KStr) {
    let ids = || (group_id.clone(), member_id.clone());
    let (group, member) = ids();
    disarm(soft, Timer::Session { group_id: group, member_id: member });
    let (group, member) = ids();
    disarm(soft, Timer::Rebalance { group_id: group, member_id: member });
    let (group, member) = ids();
    disarm(soft, Timer::Join { group_id: group, member_id: member });
    let (group, member) = ids();
    disarm(soft, Timer::Sync { group_id: group, member_id: member });
}
