//! What comes due in a streams group (S 2.8, 3.6).

use wire::KStr;

use super::member::MemberState;
use super::settings::Settings;
use super::{assign, leave};
use crate::env::Moment;
use crate::group::Group as AnyGroup;
use crate::journal::Kind;
use crate::shard::{self, Ctx};
use crate::timer::Timers;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// No heartbeat for the session timeout.
    Session { group_id: KStr, member_id: KStr },
    /// The member did not give up its tasks in time.
    Rebalance { group_id: KStr, member_id: KStr },
    /// The initial rebalance delay ends.
    InitialDelay { group_id: KStr },
    /// A warm-up made no progress for too long (decision 8).
    Warmup { group_id: KStr },
}

impl Timer {
    /// The group, and why the timer removes a member if it does.
    pub(crate) fn why(&self) -> (KStr, Kind) {
        match self {
            Timer::Session { group_id, .. } => (group_id.clone(), Kind::SessionExpired),
            Timer::Rebalance { group_id, .. } | Timer::InitialDelay { group_id } | Timer::Warmup { group_id } => {
                (group_id.clone(), Kind::TooSlow)
            }
        }
    }
}

/// One timer is due.
pub(crate) fn fired(ctx: &mut Ctx<'_, '_>, timer: Timer) {
    match timer {
        Timer::Session { group_id, member_id } => leave::expire(ctx, &group_id, &member_id),
        Timer::Rebalance { group_id, member_id } => rebalance_timeout(ctx, &group_id, &member_id),
        Timer::InitialDelay { group_id } => assign::initial_delay_ended(ctx, &group_id),
        Timer::Warmup { group_id } => assign::warmup_overdue(ctx, &group_id),
    }
}

/// The member goes if it is still where it was when the timer was armed (S 2.8.2).
fn rebalance_timeout(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member_id: &KStr) {
    let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id) else { return };
    let Some(member) = group.members.get(member_id) else { return };
    let armed_at = ctx.soft.streams.get(group_id).and_then(|soft| soft.members.get(member_id));
    let same = armed_at.is_some_and(|soft| soft.revoking_at_epoch == member.epoch);
    if member.state == MemberState::UnrevokedTasks && same {
        leave::expire(ctx, group_id, member_id);
    }
}

pub(super) fn renew_session(
    timers: &mut Timers<shard::Timer>,
    at: Moment,
    settings: &Settings<'_>,
    group_id: &KStr,
    member_id: &KStr,
) {
    let timer = Timer::Session { group_id: group_id.clone(), member_id: member_id.clone() };
    timers.set(&shard::Timer::Streams(timer), at.mono_ms + settings.session_timeout_ms.max(0) as u64);
}

/// A timeout of 0 or less is over at once.
pub(super) fn arm_rebalance(
    timers: &mut Timers<shard::Timer>,
    at: Moment,
    group_id: &KStr,
    member_id: &KStr,
    timeout_ms: i32,
) {
    let timer = Timer::Rebalance { group_id: group_id.clone(), member_id: member_id.clone() };
    timers.set(&shard::Timer::Streams(timer), at.mono_ms + timeout_ms.max(0) as u64);
}

pub(super) fn cancel_rebalance(timers: &mut Timers<shard::Timer>, group_id: &KStr, member_id: &KStr) {
    let timer = Timer::Rebalance { group_id: group_id.clone(), member_id: member_id.clone() };
    timers.cancel(&shard::Timer::Streams(timer));
}

pub(super) fn cancel_member(timers: &mut Timers<shard::Timer>, group_id: &KStr, member_id: &KStr) {
    let timer = Timer::Session { group_id: group_id.clone(), member_id: member_id.clone() };
    timers.cancel(&shard::Timer::Streams(timer));
    cancel_rebalance(timers, group_id, member_id);
}

pub(super) fn cancel_group(timers: &mut Timers<shard::Timer>, group_id: &KStr) {
    timers.cancel(&shard::Timer::Streams(Timer::InitialDelay { group_id: group_id.clone() }));
    timers.cancel(&shard::Timer::Streams(Timer::Warmup { group_id: group_id.clone() }));
}

pub(super) fn initial_delay_deadline(timers: &Timers<shard::Timer>, group_id: &KStr) -> Option<u64> {
    timers.deadline(&shard::Timer::Streams(Timer::InitialDelay { group_id: group_id.clone() }))
}

pub(super) fn set_initial_delay(timers: &mut Timers<shard::Timer>, group_id: &KStr, deadline_ms: u64) {
    timers.set(&shard::Timer::Streams(Timer::InitialDelay { group_id: group_id.clone() }), deadline_ms);
}

/// The next time to look at warm-ups; none disarms.
pub(super) fn set_warmup(timers: &mut Timers<shard::Timer>, group_id: &KStr, deadline_ms: Option<u64>) {
    let timer = shard::Timer::Streams(Timer::Warmup { group_id: group_id.clone() });
    match deadline_ms {
        Some(deadline_ms) => timers.set(&timer, deadline_ms),
        None => {
            timers.cancel(&timer);
        }
    }
}
