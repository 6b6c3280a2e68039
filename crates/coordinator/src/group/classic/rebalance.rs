//! The rebalance engine: preparing, the initial delay, completing the join phase, and the timers that remove members
//! (C section 3, decision 14).

use wire::{ErrorCode, KStr};

use super::live::{GroupState, InitialDelay};
use super::scope::Scope;
use super::{records, reply, subscription};
use crate::journal::Kind;

/// Kafka's initial delay, and the most that an adaptive one takes.
const INITIAL_DELAY_MS: u64 = 3_000;

/// How long joins have to be quiet for an adaptive initial delay to end: twice the longest gap seen, within these. Members
/// that come too late cost a rebalance that the others hear of with their next heartbeat only, 3 s later with usual clients.
const QUIET_MS: std::ops::RangeInclusive<u64> = 150..=300;

/// The least time between two looks at a group that nobody has joined: clients may ask for a rebalance timeout of 0.
const LEAST_RETRY_MS: u64 = 100;

/// Makes the members join again (C B-1 to B-3).
pub(super) fn prepare(scope: &mut Scope<'_>) {
    if scope.group.state() == GroupState::CompletingRebalance {
        drop_assignments(scope, ErrorCode::RebalanceInProgress);
    }
    scope.group.pending_syncs.clear();
    scope.cancel_sync_timer();
    let was_empty = scope.group.state() == GroupState::Empty;
    let now_ms = scope.at.wall_ms;
    scope.group.enter(GroupState::PreparingRebalance, now_ms);
    if was_empty {
        begin_initial_delay(scope);
    } else if scope.group.all_joined() {
        complete(scope);
    } else {
        scope.set_join_timer(scope.group.rebalance_timeout_ms());
    }
}

/// Prepares a rebalance if none runs, else looks whether the one that runs is complete.
pub(super) fn prepare_or_complete(scope: &mut Scope<'_>) {
    if scope.group.can_rebalance() {
        prepare(scope);
    } else {
        complete_if_all_joined(scope);
    }
}

/// C B-7. An initial rebalance never completes early (B-5).
pub(super) fn complete_if_all_joined(scope: &mut Scope<'_>) {
    let group = &scope.group;
    if group.state() == GroupState::PreparingRebalance && group.initial_delay.is_none() && group.all_joined() {
        complete(scope);
    }
}

/// After members have left: a group that had settled rebalances, one that rebalances may be complete now (C B-14, L-7).
pub(super) fn after_removal(scope: &mut Scope<'_>) {
    match scope.group.state() {
        GroupState::Empty => {}
        GroupState::Stable | GroupState::CompletingRebalance => prepare(scope),
        GroupState::PreparingRebalance => complete_if_all_joined(scope),
    }
}

/// Clears the assignments and fails the open syncs (C B-1).
pub(super) fn drop_assignments(scope: &mut Scope<'_>, error: ErrorCode) {
    let mut answered: Vec<KStr> = Vec::new();
    for (member_id, member) in scope.group.members_mut() {
        member.assignment = Default::default();
        if let Some(waiting) = member.awaiting_sync.take() {
            scope.out.reply(waiting.ticket, reply::sync_failed(error));
            answered.push(member_id.clone());
        }
    }
    for member_id in answered {
        scope.restart_session(&member_id);
    }
}

fn begin_initial_delay(scope: &mut Scope<'_>) {
    let rebalance_timeout_ms = scope.group.rebalance_timeout_ms();
    let configured = scope.config.classic_initial_rebalance_delay_ms;
    let fixed_ms = match configured {
        Some(ms) => Some(ms.max(0) as u64),
        None if scope.config.heartbeat_adaptive => None,
        None => Some(INITIAL_DELAY_MS),
    };
    let (delay, first_ms) = match fixed_ms {
        Some(delay_ms) => {
            let remaining_ms = rebalance_timeout_ms.saturating_sub(delay_ms);
            let joined = scope.group.joined_last;
            let delay = InitialDelay::Fixed { delay_ms, remaining_ms, joined };
            (delay, delay_ms)
        }
        None => {
            let now_ms = scope.at.mono_ms;
            let at_most_ms = INITIAL_DELAY_MS.min(rebalance_timeout_ms);
            let delay =
                InitialDelay::Quiet { at_most_until_ms: now_ms + at_most_ms, last_join_ms: now_ms, longest_gap_ms: 0 };
            (delay, at_most_ms.min(*QUIET_MS.start()))
        }
    };
    scope.group.initial_delay = Some(delay);
    scope.set_join_timer(first_ms);
}

/// Somebody joined, or was given an id to join with: an initial delay that runs takes notice (C J-16, decision 14).
/// Ids alone do not extend a configured delay (J-11).
pub(super) fn note_join(scope: &mut Scope<'_>, id_only: bool) {
    let now_ms = scope.at.mono_ms;
    match &mut scope.group.initial_delay {
        None => {}
        Some(InitialDelay::Fixed { joined, .. }) => *joined |= !id_only,
        Some(InitialDelay::Quiet { at_most_until_ms, last_join_ms, longest_gap_ms }) => {
            *longest_gap_ms = (*longest_gap_ms).max(now_ms.saturating_sub(*last_join_ms));
            *last_join_ms = now_ms;
            let quiet_ms = (2 * *longest_gap_ms).clamp(*QUIET_MS.start(), *QUIET_MS.end());
            let left_ms = at_most_until_ms.saturating_sub(now_ms);
            scope.set_join_timer(quiet_ms.min(left_ms));
        }
    }
}

/// The join timer, or the one of the initial delay, ended (C B-5, B-7).
pub(super) fn join_timer_fired(scope: &mut Scope<'_>) {
    if scope.group.state() != GroupState::PreparingRebalance {
        return;
    }
    if let Some(InitialDelay::Fixed { delay_ms, remaining_ms, joined: true }) = scope.group.initial_delay
        && remaining_ms > 0
    {
        let configured = scope.config.classic_initial_rebalance_delay_ms;
        let next_ms = configured.map_or(INITIAL_DELAY_MS, |ms| ms.max(0) as u64).min(remaining_ms);
        scope.group.initial_delay = Some(InitialDelay::Fixed {
            delay_ms: next_ms,
            remaining_ms: remaining_ms.saturating_sub(delay_ms),
            joined: false,
        });
        scope.set_join_timer(next_ms);
        return;
    }
    complete(scope);
}

/// Completes the join phase (C B-8 to B-12).
fn complete(scope: &mut Scope<'_>) {
    scope.cancel_join_timer();
    drop_absent_dynamic_members(scope);
    if !scope.group.elect_joined_leader() && !scope.group.members().is_empty() {
        scope.set_join_timer(scope.group.rebalance_timeout_ms().max(LEAST_RETRY_MS));
        return;
    }
    if let Some(InitialDelay::Fixed { joined, .. }) = scope.group.initial_delay.take() {
        scope.group.joined_last = joined;
    }
    scope.group.generation = scope.group.generation.wrapping_add(1);
    scope.group.pending_syncs.clear();
    let now_ms = scope.at.wall_ms;
    if scope.group.members().is_empty() {
        scope.group.protocol = None;
        scope.group.subscribed = subscription::of(scope.group);
        scope.group.enter(GroupState::Empty, now_ms);
        scope.out.records.push(records::of(scope.group));
        return;
    }
    scope.group.protocol = scope.group.choose_protocol();
    scope.group.subscribed = subscription::of(scope.group);
    scope.group.enter(GroupState::CompletingRebalance, now_ms);
    let member_ids: Vec<KStr> = scope.group.members().keys().cloned().collect();
    for member_id in &member_ids {
        if let Some(waiting) = scope.group.take_join(member_id) {
            let is_leader = scope.group.is_leader(member_id);
            let reply = reply::joined(scope.group, member_id, is_leader, waiting.api_version);
            scope.out.reply(waiting.ticket, reply);
        }
        if let Some(member) = scope.group.member_mut(member_id) {
            member.is_new = false;
        }
        scope.restart_session(member_id);
    }
    scope.group.pending_syncs.extend(member_ids);
    scope.set_sync_timer(scope.group.rebalance_timeout_ms());
}

/// C B-8. Static members stay although they did not join again.
fn drop_absent_dynamic_members(scope: &mut Scope<'_>) {
    let absent = scope
        .group
        .members()
        .iter()
        .filter(|(_, member)| member.awaiting_join.is_none() && member.instance_id.is_none());
    let absent: Vec<KStr> = absent.map(|(member_id, _)| member_id.clone()).collect();
    for member_id in absent {
        scope.note(Kind::TooSlow, &member_id, Some("it did not join again in time".to_owned()));
        scope.group.remove(&member_id);
        scope.end_session(&member_id);
    }
}

/// Nothing was heard of a member or pending id for its session timeout (C B-14).
pub(super) fn session_ended(scope: &mut Scope<'_>, member_id: &KStr) {
    if scope.group.pending_joins.remove(member_id) {
        complete_after_session(scope);
        return;
    }
    let Some(member) = scope.group.member(member_id) else {
        return;
    };
    let waits = member.awaiting_join.is_some() || member.awaiting_sync.is_some();
    if !member.is_new && waits {
        return;
    }
    scope.note(Kind::SessionExpired, member_id, None);
    remove_member(scope, member_id);
    if scope.group.state() == GroupState::PreparingRebalance {
        complete_after_session(scope);
    } else {
        after_removal(scope);
    }
}

/// The end of a session is the one thing that ends an initial delay early, as in Kafka.
fn complete_after_session(scope: &mut Scope<'_>) {
    if scope.group.state() == GroupState::PreparingRebalance && scope.group.all_joined() {
        complete(scope);
    }
}

/// Removes a member and answers what it left open (C B-14, L-4, decision 21). The caller goes on with `after_removal`.
pub(super) fn remove_member(scope: &mut Scope<'_>, member_id: &KStr) {
    let Some(member) = scope.group.remove(member_id) else {
        return;
    };
    scope.end_session(member_id);
    if let Some(waiting) = member.awaiting_join {
        scope.fail_join(waiting, ErrorCode::UnknownMemberId, KStr::EMPTY);
    }
    if let Some(waiting) = member.awaiting_sync {
        scope.fail_sync(waiting, ErrorCode::UnknownMemberId);
    }
}

/// The time to sync is over: who has not is removed, static or not (C B-15).
pub(super) fn sync_timer_fired(scope: &mut Scope<'_>) {
    let settled = matches!(scope.group.state(), GroupState::CompletingRebalance | GroupState::Stable);
    if !settled || scope.group.pending_syncs.is_empty() {
        return;
    }
    for member_id in std::mem::take(&mut scope.group.pending_syncs) {
        scope.note(Kind::TooSlow, &member_id, Some("it did not ask for its assignment in time".to_owned()));
        remove_member(scope, &member_id);
    }
    prepare(scope);
}

/// The sync timer has nobody left to wait for.
pub(super) fn settle_syncs(scope: &mut Scope<'_>) {
    if scope.group.pending_syncs.is_empty() {
        scope.cancel_sync_timer();
    }
}
