//! What is known of a group but not logged, and what becomes of it when the shard loads or the log refuses.

use wire::{KStr, Uuid};

use super::Group;
use super::member::Progress;
use super::timers::{self, Timer};
use crate::env::{Env, Moment};
use crate::group;
use crate::shard::{self, Ctx, State};
use crate::topics::TopicImage;

/// The hash over topic metadata is looked at again after so long, whatever happens (C K-15).
const METADATA_REFRESH_MS: u64 = i32::MAX as u64;

/// Soft state of one group. The default is that of a group that was just loaded.
#[derive(Debug, Default)]
pub struct Soft {
    /// From then on the next heartbeat looks at the metadata of topics again; 0: at once.
    refresh_at_ms: u64,
    /// Expressions are being resolved.
    pub(super) resolving: bool,
    /// When one of them could not be, wall clock.
    pub(super) unresolvable_ms: Option<i64>,
    /// Topics have been made since expressions were resolved.
    pub(super) new_topics: bool,
    /// The epoch for which a target is being computed off the shard.
    pub(super) computing: Option<i32>,
    /// An epoch for which that failed, and why.
    pub(super) failed: Option<(i32, String)>,
    /// Since when the group has not been stable.
    pub(super) unsettled_since_ms: Option<u64>,
}

impl Soft {
    /// C K-15: a topic of the group changed, or it is time.
    pub(super) fn metadata_expired(&self, at: Moment) -> bool {
        at.mono_ms >= self.refresh_at_ms
    }

    pub(super) fn metadata_checked(&mut self, at: Moment) {
        self.refresh_at_ms = at.mono_ms + METADATA_REFRESH_MS;
    }
}

/// The group's soft state, made if need be.
pub(super) fn entry<'a>(soft: &'a mut shard::Soft, group_id: &KStr) -> &'a mut Soft {
    if !soft.consumer.contains_key(group_id) {
        soft.consumer.insert(group_id.to_owned_detached(), Soft::default());
    }
    soft.consumer.entry(group_id.clone()).or_default()
}

/// When the metadata of topics is to be looked at again, for `take_back`.
pub(super) fn refresh_at(soft: &shard::Soft, group_id: &KStr) -> u64 {
    soft.consumer.get(group_id).map_or(0, |soft| soft.refresh_at_ms)
}

/// A request was refused: if it looked at the metadata of topics, nothing came of that.
pub(super) fn take_back(soft: &mut shard::Soft, group_id: &KStr, refresh_at_ms: u64) {
    if let Some(soft) = soft.consumer.get_mut(group_id) {
        soft.refresh_at_ms = refresh_at_ms;
    }
}

/// Drops the soft state of a group that is gone. Timers of its members find nobody.
pub(crate) fn forget(soft: &mut shard::Soft, group_id: &KStr) {
    soft.consumer.remove(group_id);
}

/// Every member gets a full session, one of the classic protocol the group's until it is heard of; who has to give up
/// partitions gets its full time for that, too (C K-29).
pub(crate) fn loaded(group: &Group, group_id: &KStr, soft: &mut shard::Soft, at: Moment, env: &mut Env<'_>) {
    // Whether topics have been made since expressions were resolved is not known.
    entry(soft, group_id).new_topics = topics_may_be_new();
    let session_ms = env.config.consumer_session_timeout_ms(group_id);
    for member_id in group.members.keys() {
        let session = Timer::Session { group_id: group_id.clone(), member_id: member_id.clone() };
        timers::arm(soft, at, session, session_ms);
    }
    arm_missing(group, group_id, soft, at, env);
    // Also for members of the classic protocol, which otherwise have a deadline to rejoin instead.
    for member in group.members.values().filter(|member| member.has.progress == Progress::UnrevokedPartitions) {
        let rebalance = Timer::Rebalance { group_id: group_id.clone(), member_id: member.id.clone() };
        timers::arm(soft, at, rebalance, member.wants.rebalance_timeout_ms);
    }
}

fn topics_may_be_new() -> bool {
    #[cfg(feature = "testing")]
    let may_be = crate::assign::given::topics_are_new();
    #[cfg(not(feature = "testing"))]
    let may_be = true;
    may_be
}

/// Nothing of the latest command happened: what soft state took for granted is looked at again, and timers that it
/// cancelled are armed anew. Those of members that did not come to be find nobody.
pub(crate) fn refused(state: &State, soft: &mut shard::Soft, at: Moment, env: &mut Env<'_>) {
    soft.consumer.retain(|group_id, _| matches!(state.group(group_id), Some(group::Group::Consumer(_))));
    for group_id in state.group_ids() {
        let Some(group::Group::Consumer(group)) = state.group(&group_id) else { continue };
        let of_group = entry(soft, &group_id);
        of_group.refresh_at_ms = 0;
        of_group.resolving = false;
        of_group.computing = None;
        arm_missing(group, &group_id, soft, at, env);
    }
}

fn arm_missing(group: &Group, group_id: &KStr, soft: &mut shard::Soft, at: Moment, env: &Env<'_>) {
    for member in group.members.values() {
        let session = Timer::Session { group_id: group_id.clone(), member_id: member.id.clone() };
        if !timers::is_armed(soft, &session) {
            timers::arm_session(soft, at, env, group_id, member);
        }
        let rebalance = Timer::Rebalance { group_id: group_id.clone(), member_id: member.id.clone() };
        match (member.has.progress, timers::is_armed(soft, &rebalance)) {
            (Progress::UnrevokedPartitions, false) if !member.is_classic() => {
                timers::arm(soft, at, rebalance, member.wants.rebalance_timeout_ms);
            }
            (Progress::UnrevokedPartitions, _) | (_, false) => {}
            (_, true) => timers::disarm(soft, rebalance),
        }
    }
}

/// Marks the groups that read a topic that was made, changed or deleted (C K-15). The next heartbeat acts on it.
pub(crate) fn topics_changed(ctx: &mut Ctx<'_, '_>, changed: &[KStr], deleted: &[(KStr, Uuid)]) {
    let state = ctx.state;
    let id_in = |image: &TopicImage, name: &KStr| image.get(name).map(|topic| topic.id);
    let is_new = |name: &KStr| id_in(ctx.env.topics, name) != id_in(&ctx.soft.topics, name);
    let some_are_new = changed.iter().any(is_new);
    for group_id in state.group_ids() {
        let Some(group::Group::Consumer(group)) = state.group(&group_id) else { continue };
        let soft = entry(ctx.soft, &group_id);
        soft.new_topics |= some_are_new;
        let mut names = changed.iter().chain(deleted.iter().map(|(name, _)| name));
        if names.any(|name| group.is_subscribed(name)) {
            soft.refresh_at_ms = 0;
        }
    }
}
