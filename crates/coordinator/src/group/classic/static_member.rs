//! A static member that comes back under a new member id takes the place of its former self (KIP-345, C section 2.5).

use wire::messages::join_group_response::JoinGroupResponse;
use wire::{ErrorCode, KStr};

use super::join::Join;
use super::live::{GroupState, Member};
use super::refused::{Replacement, Unconfirmed};
use super::scope::Scope;
use super::{rebalance, records, reply};
use crate::outcome::Reply;

/// The member of an instance has restarted: it gets a new id, and with that all that the old id had. Whoever still uses
/// the old id is fenced (C J-25 to J-36).
pub(super) fn replace(scope: &mut Scope<'_>, join: &Join<'_>, old_id: &KStr) {
    let instance_id = join.request.group_instance_id.clone().unwrap_or_default();
    let new_id = scope.ids.member_id(&instance_id);
    let leader_before = scope.group.leader().cloned();
    let Some(before) = scope.group.member(old_id).cloned() else {
        return join.fail(scope, ErrorCode::UnknownServerError, KStr::EMPTY);
    };
    fence(scope, old_id, new_id.clone());
    scope.restart_session(&new_id);
    join.update(scope, &new_id);
    scope.note_return(&new_id, old_id);
    scope.note_arrival(&new_id);
    match scope.group.state() {
        GroupState::Stable if scope.group.choose_protocol() == scope.group.protocol => {
            rebalance::settle_syncs(scope);
            scope.out.records.push(records::of(scope.group));
            take_over(scope, join, &new_id, leader_before);
            *scope.unconfirmed = Some(Unconfirmed::Replaced(Box::new(Replacement {
                group_id: scope.group.group_id.clone(),
                old_id: old_id.clone(),
                new_id,
                before,
            })));
        }
        GroupState::Stable | GroupState::CompletingRebalance => rebalance::prepare(scope),
        GroupState::PreparingRebalance => rebalance::complete_if_all_joined(scope),
        // It has members (C J-34).
        GroupState::Empty => {}
    }
}

/// Moves everything to the new id, and fails what the old one left open (C J-26).
fn fence(scope: &mut Scope<'_>, old_id: &KStr, new_id: KStr) {
    let (open_join, open_sync) = scope.group.replace_id(old_id, new_id);
    scope.end_session(old_id);
    if let Some(waiting) = open_join {
        scope.fail_join(waiting, ErrorCode::FencedInstanceId, old_id.clone());
    }
    if let Some(waiting) = open_sync {
        scope.fail_sync(waiting, ErrorCode::FencedInstanceId);
    }
}

/// The member goes on in the present generation (C J-29). Clients before v9 cannot skip the assignment: they are told
/// the leader as it was, so that one that led takes itself for a follower (C J-30).
fn take_over(scope: &mut Scope<'_>, join: &Join<'_>, new_id: &KStr, leader_before: Option<KStr>) {
    let Some(waiting) = scope.group.take_join(new_id) else {
        return;
    };
    let leads = scope.group.is_leader(new_id);
    let skips = waiting.api_version >= 9;
    let mut reply = reply::joined(scope.group, new_id, skips && leads, waiting.api_version);
    if let Reply::JoinGroup(response) = &mut reply {
        let response: &mut JoinGroupResponse = response;
        if skips {
            response.skip_assignment = leads;
        } else {
            response.leader = leader_before.unwrap_or_default();
        }
    }
    scope.out.reply(join.waiting.ticket, reply);
}

/// The record was refused: the old id is back, as if the member had not come (C J-31).
pub(super) fn restore(scope: &mut Scope<'_>, replacement: Replacement) {
    let Replacement { old_id, new_id, before, .. } = replacement;
    let Member { protocols, rebalance_timeout_ms, session_timeout_ms, .. } = before;
    scope.group.replace_id(&new_id, old_id.clone());
    scope.end_session(&new_id);
    scope.group.set_protocols(&old_id, protocols);
    if let Some(member) = scope.group.member_mut(&old_id) {
        member.rebalance_timeout_ms = rebalance_timeout_ms;
        member.session_timeout_ms = session_timeout_ms;
    }
    scope.restart_session(&old_id);
}
