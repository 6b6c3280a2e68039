//! Classic groups with static membership (KIP-345): JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, and
//! what lists, deletions and offsets ask of such a group (C sections 1 to 9).
//!
//! The rebalance runs in memory only, in [`Live`]: waiting joins and syncs, ids that were handed out, the state, the
//! timers. The log hears of a group when it is made, when the leader has assigned, when a static member comes back,
//! and when the last member is gone; a restart goes on from there (T-2 to T-4). Groups of other protocols are none of
//! this folder's business: requests for a consumer group with members go to `consumer::classic_member`.

mod conversion;
mod describe;
mod heartbeat;
mod join;
mod journal;
mod leave;
mod live;
mod offsets;
mod rebalance;
mod records;
mod refused;
mod reply;
mod scope;
mod static_member;
mod subscription;
mod sync;

use wire::KStr;
use wire::messages::group_metadata_value::GroupMetadataValue;

use crate::env::{Env, Moment};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::runtime::Position;
use crate::shard::{self, Ctx, State};

pub(crate) use conversion::{downgraded, snapshot, upgraded};
#[cfg(any(test, feature = "testing"))]
pub use describe::Roster;
pub(crate) use describe::describe;
pub(crate) use heartbeat::heartbeat;
pub(crate) use join::join;
pub(crate) use journal::findings;
pub(crate) use leave::leave;
pub use live::Live;
pub(crate) use offsets::offsets_committed;
pub(crate) use refused::Unconfirmed;
pub(crate) use sync::sync;

use conversion::resume;
use live::GroupState;
use scope::Scope;

/// Hard state: the latest record. None for a group that exists because offsets were committed (M-9).
#[derive(Debug, Default)]
pub struct Group {
    stored: Option<GroupMetadataValue>,
}

/// Soft state of one group. A group that nobody has talked to since it was loaded may have none: it is what its record
/// says.
pub type Soft = Live;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// The join phase, or the initial delay, is over.
    Join { group_id: KStr },
    /// Members that have not synced are removed.
    Sync { group_id: KStr },
    /// A member, or an id that was handed out, is dropped.
    Session { group_id: KStr, member_id: KStr },
}

impl Timer {
    pub(crate) fn group_id(&self) -> &KStr {
        let (Timer::Join { group_id } | Timer::Sync { group_id } | Timer::Session { group_id, .. }) = self;
        group_id
    }
}

pub(crate) fn fired(ctx: &mut Ctx<'_, '_>, timer: Timer) {
    let Some(scope) = &mut Scope::open(ctx, timer.group_id()) else {
        return;
    };
    match &timer {
        Timer::Join { .. } => rebalance::join_timer_fired(scope),
        Timer::Sync { .. } => rebalance::sync_timer_fired(scope),
        Timer::Session { member_id, .. } => rebalance::session_ended(scope, member_id),
    }
}

/// Drops the soft state of a group that is gone, timers included. Nobody waits for an answer of it.
pub(crate) fn forget(soft: &mut shard::Soft, group_id: &KStr) {
    let Some(live) = soft.classic.remove(group_id) else {
        return;
    };
    let group_id = &live.group_id;
    let sessions = live.members().keys().chain(&live.pending_joins);
    let sessions =
        sessions.map(|member_id| Timer::Session { group_id: group_id.clone(), member_id: member_id.clone() });
    let group = [Timer::Join { group_id: group_id.clone() }, Timer::Sync { group_id: group_id.clone() }];
    for timer in sessions.chain(group) {
        soft.timers.cancel(&shard::Timer::Classic(timer));
    }
}

pub(crate) fn replay(state: &mut State, _position: Position, record: Record) {
    records::replay(state, record);
}

/// An offset was committed for a group that does not exist: a simple group takes its place (M-9, O-2).
pub(crate) fn create_simple(state: &mut State, group_id: &KStr, _position: Position) {
    let group = super::Group::Classic(Group::default());
    state.groups.insert(group_id.to_owned_detached(), group);
}

/// Members get a full session. A group that is larger than now allowed has to assemble anew (T-3).
pub(crate) fn loaded(group: &Group, group_id: &KStr, soft: &mut shard::Soft, at: Moment, env: &mut Env<'_>) {
    let live = group.restore(group_id);
    if live.state() == GroupState::Empty {
        return;
    }
    let oversized = live.members().len() > env.config.broker.classic_max_size;
    resume(soft, at, env, live);
    let mut out = Outcome::default();
    if oversized && let Some(scope) = &mut Scope::of(soft, &mut out, env, at, group_id) {
        rebalance::prepare(scope);
    }
}

pub(crate) fn refused(_state: &State, soft: &mut shard::Soft, at: Moment, env: &mut Env<'_>) {
    refused::refused(soft, at, env);
}

/// Looks at the group as it is now, whether it lives in memory or not.
fn read<R>(group: &Group, soft: &shard::Soft, group_id: &KStr, look: impl FnOnce(&Live) -> R) -> R {
    match soft.classic.get(group_id) {
        Some(live) => look(live),
        None => look(&group.restore(group_id)),
    }
}

impl Group {
    pub(crate) fn tombstones(&self, group_id: &KStr, records: &mut Vec<Record>) {
        records.push(records::tombstone(group_id));
    }
}

#[cfg(test)]
mod tests;
