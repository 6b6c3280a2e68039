//! What a streams group keeps in memory only (S 10.2.4), and what becomes of it after a failover or a refused write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::{KStr, Uuid};

use super::assign::{Computing, Moves};
use super::configure::Configured;
use super::description::Description;
use super::endpoints::Endpoints;
use super::internal_topics::Creation;
use super::member::{Member, MemberState};
use super::patterns::Patterns;
use super::settings::Settings;
use super::timers::{self, Timer};
use super::{Env, Group, Moment, State};
use crate::assign::TaskId;
use crate::group::Group as AnyGroup;
use crate::map::Map;
use crate::shard::{self, Ctx, Soft as ShardSoft};

/// Soft state of one group.
#[derive(Debug, Default)]
pub struct Soft {
    pub(super) members: Map<KStr, SoftMember>,
    pub(super) configured: Option<Arc<Configured>>,
    /// `configured` is of the join that made the group: Kafka forgets it, and configures again with the next heartbeat
    /// (S 4.3.2).
    pub(super) provisional: bool,
    /// The hash was compared since the last change of a topic that matters (S 3.3.2).
    pub(super) metadata_fresh: bool,
    pub(super) endpoints: Endpoints,
    /// The member that asked for a shutdown of the application (S 2.7).
    pub(super) shutdown: Option<KStr>,
    pub(super) creation: Creation,
    pub(super) patterns: Patterns,
    pub(super) moves: Moves,
    pub(super) computing: Option<Computing>,
    /// The initial delay ends then at the latest, on the monotonic clock; set while it ends earlier if joins are quiet.
    pub(super) delay_ends_at: Option<u64>,
    /// For each older topology epoch the subtopologies that are still the same (decision 5).
    pub(super) unchanged_since: BTreeMap<i32, BTreeSet<KStr>>,
    pub(super) description: Option<Description>,
}

/// What is known of a member besides its hard state.
#[derive(Debug, Default)]
pub(super) struct SoftMember {
    /// Version of its last heartbeat; none since a failover.
    pub api_version: Option<i16>,
    pub reported: Arc<Reported>,
    /// Since when it has been waiting for something, on the monotonic clock.
    pub waiting_since: Option<u64>,
    /// It was there before a failover: its endpoint epoch says nothing about what it knows (decision 27).
    pub endpoints_unknown: bool,
    /// Epoch at which its rebalance timer was armed (S 2.8.2).
    pub revoking_at_epoch: i32,
}

impl SoftMember {
    /// All that can be known of a member that is only in the log.
    fn of_log(member: &Member) -> SoftMember {
        SoftMember { endpoints_unknown: true, revoking_at_epoch: member.epoch, ..SoftMember::default() }
    }
}

/// Offsets of task state, as last sent (S 2.2.8).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reported {
    pub offsets: BTreeMap<TaskId, i64>,
    pub end_offsets: BTreeMap<TaskId, i64>,
}

impl Soft {
    /// The resolved topology, unless it is to be taken as forgotten.
    pub(super) fn configured(&self) -> Option<&Arc<Configured>> {
        self.configured.as_ref().filter(|_| !self.provisional)
    }
}

/// Drops what is kept of a group that is gone.
pub(crate) fn forget(soft: &mut ShardSoft, group_id: &KStr) {
    if let Some(group) = soft.streams.remove(group_id) {
        for member_id in group.members.keys() {
            timers::cancel_member(&mut soft.timers, group_id, member_id);
        }
        timers::cancel_group(&mut soft.timers, group_id);
    }
}

/// After a failover: every member gets a fresh session, those that have to revoke a fresh rebalance timer; the initial
/// delay is gone (S 2.8.4).
pub(crate) fn loaded(group: &Group, group_id: &KStr, soft: &mut ShardSoft, at: Moment, env: &mut Env<'_>) {
    let settings = Settings::of(env.config, group_id);
    let mut kept = Soft::default();
    kept.moves.recheck = group.topology.as_ref().is_some_and(|topology| topology.is_stateful());
    for (member_id, member) in &group.members {
        kept.members.insert(member_id.clone(), SoftMember::of_log(member));
        timers::renew_session(&mut soft.timers, at, &settings, group_id, member_id);
        if member.state == MemberState::UnrevokedTasks {
            timers::arm_rebalance(&mut soft.timers, at, group_id, member_id, member.metadata.rebalance_timeout_ms);
        }
    }
    soft.streams.insert(group_id.clone(), kept);
}

/// A write was refused: what was assumed of it is forgotten, the rest is looked at again with the next heartbeat.
/// Which group it was is not known; the repair harms no other.
pub(crate) fn refused(state: &State, soft: &mut ShardSoft, at: Moment, env: &mut Env<'_>) {
    let mut ids: Vec<KStr> = soft.streams.keys().cloned().collect();
    ids.sort();
    for group_id in ids {
        match state.group(&group_id) {
            Some(AnyGroup::Streams(group)) => repair(group, &group_id, soft, at, env),
            // S 2.8.3: the initial delay of a group that was not created goes on.
            _ => {
                soft.streams.remove(&group_id);
            }
        }
    }
}

fn repair(group: &Group, group_id: &KStr, soft: &mut ShardSoft, at: Moment, env: &Env<'_>) {
    let settings = Settings::of(env.config, group_id);
    let Some(kept) = soft.streams.get_mut(group_id) else { return };
    kept.members.retain(|member_id, _| group.members.contains_key(member_id));
    kept.configured = None;
    kept.metadata_fresh = false;
    kept.computing = None;
    kept.moves.reset();
    kept.endpoints.changed();
    // What was asked of the server went with the write.
    kept.creation.nothing_in_flight();
    kept.patterns.nothing_in_flight();
    for (member_id, member) in &group.members {
        if !kept.members.contains_key(member_id) {
            kept.members.insert(member_id.clone(), SoftMember::of_log(member));
        }
        // Its timer fired, or it left, and that it is gone was not written.
        let session = Timer::Session { group_id: group_id.clone(), member_id: member_id.clone() };
        if soft.timers.deadline(&shard::Timer::Streams(session)).is_none() {
            timers::renew_session(&mut soft.timers, at, &settings, group_id, member_id);
        }
        let revoking = member.state == MemberState::UnrevokedTasks;
        let timer = Timer::Rebalance { group_id: group_id.clone(), member_id: member_id.clone() };
        let timer = shard::Timer::Streams(timer);
        if !revoking {
            soft.timers.cancel(&timer);
        } else if soft.timers.deadline(&timer).is_none() {
            let timeout_ms = member.metadata.rebalance_timeout_ms;
            timers::arm_rebalance(&mut soft.timers, at, group_id, member_id, timeout_ms);
        }
    }
}

/// Groups that depend on one of the topics compare their hash with the next heartbeat (S 3.3.2); patterns are resolved
/// again (decision 25).
pub(crate) fn topics_changed(ctx: &mut Ctx<'_, '_>, changed: &[KStr], deleted: &[(KStr, Uuid)]) {
    let names = || changed.iter().chain(deleted.iter().map(|(name, _)| name));
    let mut groups: Vec<(&KStr, &mut Soft)> = ctx.soft.streams.iter_mut().collect();
    groups.sort_by(|a, b| a.0.cmp(b.0));
    for (group_id, soft) in groups {
        let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id) else { continue };
        let Some(topology) = &group.topology else { continue };
        if names().any(|name| topology.required().contains(name) || soft.patterns.matched(name)) {
            soft.metadata_fresh = false;
        }
        for name in names() {
            soft.creation.appeared_or_gone(name);
        }
        if topology.has_patterns() {
            soft.patterns.resolve_again();
            ctx.out.effects.extend(soft.patterns.ask(group_id, topology));
        }
    }
}
