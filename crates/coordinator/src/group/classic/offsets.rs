//! What offsets ask of a classic group: who may commit, what may be deleted, what expires (C O-3, O-4, X-4, D-7, D-8,
//! E-1, E-2).

use wire::{ErrorCode, KStr};

use super::live::{GroupState, Live};
use super::scope::Scope;
use super::{Group, read, subscription};
use crate::group::{Admission, OffsetClient};
use crate::shard::{Ctx, Soft};

impl Group {
    pub(crate) fn admit_commit(
        &self,
        soft: &Soft,
        group_id: &KStr,
        client: &OffsetClient<'_>,
    ) -> Result<Admission, ErrorCode> {
        read(self, soft, group_id, |live| admit(live, client))?;
        Ok(Admission::All)
    }

    pub(crate) fn is_subscribed(&self, soft: &Soft, group_id: &KStr, topic: &str) -> bool {
        read(self, soft, group_id, |live| subscription::covers(live, topic))
    }

    /// Only groups of consumers say what they read, so that the offsets of others are deleted when they are empty.
    pub(crate) fn admit_offset_delete(&self, soft: &Soft, group_id: &KStr) -> Result<(), ErrorCode> {
        read(self, soft, group_id, |live| {
            if live.state() == GroupState::Empty || subscription::is_consumer(live) {
                Ok(())
            } else {
                Err(ErrorCode::NonEmptyGroup)
            }
        })
    }

    pub(crate) fn expires_offsets(&self, soft: &Soft, group_id: &KStr) -> bool {
        read(self, soft, group_id, subscription::expires_offsets)
    }

    pub(crate) fn offset_expired(
        &self,
        soft: &Soft,
        group_id: &KStr,
        commit_time_ms: i64,
        now_ms: i64,
        retention_ms: i64,
    ) -> bool {
        read(self, soft, group_id, |live| subscription::offset_expired(live, commit_time_ms, now_ms, retention_ms))
    }

    /// Ids that were handed out to join with do not count (C D-6).
    pub(crate) fn is_empty(&self, soft: &Soft, group_id: &KStr) -> bool {
        read(self, soft, group_id, |live| live.state() == GroupState::Empty)
    }
}

/// Transactions of clients that are no members, or are between two generations, are accepted (C X-4).
fn admit(live: &Live, client: &OffsetClient<'_>) -> Result<(), ErrorCode> {
    let is_empty = live.state() == GroupState::Empty;
    if client.epoch < 0 && is_empty {
        return Ok(());
    }
    let member_id = client.member_id.map_or("", |member_id| member_id.as_str());
    if client.epoch >= 0 || !member_id.is_empty() || client.instance_id.is_some() {
        live.validate(member_id, client.instance_id)?;
        if client.epoch != live.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
    } else if !client.transactional {
        return Err(ErrorCode::UnknownMemberId);
    }
    if live.state() == GroupState::CompletingRebalance && !client.transactional {
        return Err(ErrorCode::RebalanceInProgress);
    }
    Ok(())
}

/// A member has committed offsets, which keeps it alive in some states (C O-4).
pub(crate) fn offsets_committed(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member_id: &KStr) {
    if let Some(scope) = &mut Scope::open(ctx, group_id)
        && matches!(scope.group.state(), GroupState::Stable | GroupState::PreparingRebalance)
    {
        scope.restart_session(member_id);
    }
}
