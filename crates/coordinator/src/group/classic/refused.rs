//! What becomes of a live group whose record the log refused. The runtime has failed every answer of that command; here
//! the group is put back to where it can go on from (C J-5, J-31, S-6, G-3).

use wire::{ErrorCode, KStr};

use super::live::{GroupState, Live, Member};
use super::scope::Scope;
use super::{forget, rebalance, static_member};
use crate::env::{Env, Moment};
use crate::outcome::Outcome;
use crate::shard::Soft;

/// What the command at hand did to a live group on the strength of a record. A group that became empty is not among it:
/// if that record is lost, the group is empty all the same, and a restart brings members back that time out (C B-10).
#[derive(Debug)]
pub(crate) enum Unconfirmed {
    /// The group was made.
    Created(KStr),
    /// The leader's assignment was handed out.
    Assigned(KStr),
    /// A static member was replaced.
    Replaced(Box<Replacement>),
    /// The group became a consumer group.
    Upgraded(Box<Live>),
    /// The group was a consumer group.
    Downgraded(KStr),
}

#[derive(Debug)]
pub(crate) struct Replacement {
    pub(super) group_id: KStr,
    pub(super) old_id: KStr,
    pub(super) new_id: KStr,
    /// The member as it was.
    pub(super) before: Member,
}

pub(crate) fn refused(soft: &mut Soft, at: Moment, env: &mut Env<'_>) {
    // Every open request was answered by the command that failed, so nothing can come of this but timers.
    let mut out = Outcome::default();
    match soft.classic_unconfirmed.take() {
        None => {}
        Some(Unconfirmed::Created(group_id) | Unconfirmed::Downgraded(group_id)) => {
            forget(soft, &group_id);
        }
        Some(Unconfirmed::Assigned(group_id)) => {
            if let Some(scope) = &mut Scope::of(soft, &mut out, env, at, &group_id) {
                // Not Stable after all. No sync is open, so the error reaches nobody.
                scope.group.enter(GroupState::CompletingRebalance, at.wall_ms);
                rebalance::drop_assignments(scope, ErrorCode::UnknownServerError);
                rebalance::prepare(scope);
            }
        }
        Some(Unconfirmed::Replaced(replacement)) => {
            let group_id = replacement.group_id.clone();
            if let Some(scope) = &mut Scope::of(soft, &mut out, env, at, &group_id) {
                static_member::restore(scope, *replacement);
            }
        }
        Some(Unconfirmed::Upgraded(live)) => super::resume(soft, at, env, *live),
    }
    debug_assert!(out.records.is_empty() && out.replies.is_empty());
}
