//! Offsets that nobody needs any longer: retention (C E-1 to E-3, T-6) and deleted topics (C E-4).

use wire::{KStr, Uuid};

use super::Slot;
use super::delete::tombstone;
use crate::env::{Env, Moment};
use crate::group::{self, Group};
use crate::shard::{Ctx, Soft as ShardSoft, Timer};

/// Tombstones that one command writes, so that its batch fits the log. What is left follows at once.
const MAX_TOMBSTONES: usize = 2_000;

/// Soft state.
#[derive(Debug, Default)]
pub(crate) struct Soft {
    /// Deleted topics whose offsets may still be there.
    deleted: Vec<(KStr, Uuid)>,
}

/// Looks through all groups. Runs when `Timer::Expiry` fires, which has been armed for the next time already.
pub(crate) fn expire(ctx: &mut Ctx<'_, '_>) {
    purge(ctx, false);
    let state = ctx.state;
    for group_id in state.group_ids() {
        let Some(group) = state.group(&group_id) else {
            continue;
        };
        let all_expired = expire_group(ctx, &group_id, group);
        if is_full(ctx) {
            again_at_once(ctx);
            return;
        }
        if all_expired && group.admit_deletion(ctx.soft, &group_id).is_ok() {
            group.tombstones(&group_id, &mut ctx.out.records);
            group::forget(ctx.soft, &group_id);
        }
    }
}

/// True if nothing is left of the group's offsets, those included that transactions hold open.
fn expire_group(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: &Group) -> bool {
    let mut all_expired = true;
    let may_expire = group.expires_offsets(ctx.soft, group_id);
    for (topic, slots) in ctx.state.offsets.topics(group_id) {
        if !may_expire || group.is_subscribed(ctx.soft, group_id, topic) {
            all_expired = false;
            continue;
        }
        for (&partition, slot) in slots {
            if !is_full(ctx) && has_expired(ctx, group_id, group, slot) {
                ctx.out.records.push(tombstone(group_id, topic, partition));
            } else {
                all_expired = false;
            }
        }
    }
    all_expired
}

fn has_expired(ctx: &Ctx<'_, '_>, group_id: &KStr, group: &Group, slot: &Slot) -> bool {
    let (Some(committed), true) = (&slot.committed, slot.pending.is_empty()) else {
        return false;
    };
    let now_ms = ctx.at.wall_ms;
    match committed.expire_time_ms {
        Some(expire_time_ms) => now_ms >= expire_time_ms,
        None => group.offset_expired(
            ctx.soft,
            group_id,
            committed.commit_time_ms,
            now_ms,
            ctx.env.config.broker.offsets_retention_ms,
        ),
    }
}

/// The offsets of deleted topics go, in all groups, whoever subscribes (C E-4).
pub(crate) fn topics_deleted(ctx: &mut Ctx<'_, '_>, deleted: &[(KStr, Uuid)]) {
    let detached = deleted.iter().map(|(name, id)| (name.to_owned_detached(), *id));
    ctx.soft.offsets.deleted.extend(detached);
    purge(ctx, true);
}

/// Topics stay on the list until a pass finds nothing of them, so that a write that the log refuses is made up for.
fn purge(ctx: &mut Ctx<'_, '_>, first: bool) {
    if ctx.soft.offsets.deleted.is_empty() {
        return;
    }
    let state = ctx.state;
    for group_id in state.group_ids() {
        for (topic, id) in &ctx.soft.offsets.deleted {
            // By now a topic of the same name may be there again.
            let by_name = first || ctx.env.topics.get(topic).is_none();
            for (&partition, slot) in state.offsets.slots(&group_id, topic) {
                if !is_full(ctx) {
                    let tombstones = (0..slot.count_of(*id, by_name)).map(|_| tombstone(&group_id, topic, partition));
                    ctx.out.records.extend(tombstones);
                }
            }
        }
    }
    if ctx.out.records.is_empty() {
        ctx.soft.offsets.deleted.clear();
    }
    if is_full(ctx) {
        again_at_once(ctx);
    }
}

fn is_full(ctx: &Ctx<'_, '_>) -> bool {
    ctx.out.records.len() >= MAX_TOMBSTONES
}

fn again_at_once(ctx: &mut Ctx<'_, '_>) {
    ctx.soft.timers.set(&Timer::Expiry, ctx.at.mono_ms);
}

/// The log refuses writes: what was to follow at once waits for the next check.
pub(crate) fn refused(soft: &mut ShardSoft, at: Moment, env: &Env<'_>) {
    let due = soft.timers.deadline(&Timer::Expiry);
    if due.is_some_and(|due| due <= at.mono_ms) {
        let interval_ms = env.config.broker.offsets_retention_check_interval_ms as u64;
        soft.timers.set(&Timer::Expiry, at.mono_ms + interval_ms);
    }
}

impl Slot {
    /// How many commits in it, those of open transactions included, are for this incarnation of the topic; Kafka writes a
    /// tombstone for each. `by_name`: what is not known to be of another one counts.
    fn count_of(&self, id: Uuid, by_name: bool) -> usize {
        let pending = self.pending.iter().map(|(_, pending)| pending);
        self.committed.iter().chain(pending).filter(|c| c.topic_id == id || (by_name && c.topic_id.is_zero())).count()
    }
}
