//! Groups of every protocol: what they have in common, and which protocol a group id belongs to.
//!
//! Each protocol has a folder, each thing that happens in it a file. What is here is what all of them share.

pub mod classic;
pub mod consumer;
pub(crate) mod interval;
pub(crate) mod metadata_hash;
pub(crate) mod migration;
pub mod regex;
mod sessions;
pub mod streams;

use std::sync::Arc;

use wire::messages::delete_groups_response::DeletableGroupResult;
use wire::{ErrorCode, KStr, Uuid};

use crate::assign::{ConsumerTarget, StreamsTarget};
use crate::env::{Env, Moment};
use crate::offsets;
use crate::outcome::Reply;
use crate::record::Record;
use crate::runtime::Position;
use crate::shard::{Ctx, Soft, State};

pub(crate) use sessions::sessions;

/// The hard state of a group.
#[derive(Debug)]
pub enum Group {
    Classic(classic::Group),
    Consumer(consumer::Group),
    Streams(streams::Group),
}

/// Work for an assignor that is carried out off the shard.
pub trait AssignmentInput: Send + Sync + std::fmt::Debug {
    fn compute(&self) -> Arc<ComputedTarget>;
}

/// What came of it; the text is for the error message.
#[derive(Clone, Debug)]
pub enum ComputedTarget {
    Consumer(Result<ConsumerTarget, String>),
    Streams(Result<StreamsTarget, String>),
}

/// Who wants to commit or fetch offsets, in the terms that all protocols share.
pub(crate) struct OffsetClient<'a> {
    pub member_id: Option<&'a KStr>,
    pub instance_id: Option<&'a KStr>,
    /// Generation of a classic group, member epoch of the others.
    pub epoch: i32,
    pub api_version: i16,
    /// TxnOffsetCommit instead of OffsetCommit.
    pub transactional: bool,
}

/// A commit that got past the checks of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Every partition may be committed.
    All,
    /// The epoch is an older one: each partition has to pass `may_commit` (C O-7, S 9.5), else the whole request fails
    /// with the error given here.
    OwnedSince(ErrorCode),
}

impl Group {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Group::Classic(_) => "classic",
            Group::Consumer(_) => "consumer",
            Group::Streams(_) => "streams",
        }
    }

    /// Its type, unless it only holds offsets.
    pub(crate) fn name_if_used(&self) -> Option<&'static str> {
        match self {
            Group::Classic(group) if !group.has_protocol() => None,
            group => Some(group.type_name()),
        }
    }

    /// Members whose heartbeats the coordinator paces (decision 13); those of classic groups pace themselves.
    pub(crate) fn broker_driven_members(&self) -> u32 {
        match self {
            Group::Classic(_) => 0,
            Group::Consumer(group) => group.member_count() as u32,
            Group::Streams(group) => group.member_count() as u32,
        }
    }

    /// Checks a commit (C O-3, O-6, X-4, X-5; S 9.5).
    pub(crate) fn admit_commit(
        &self,
        soft: &Soft,
        group_id: &KStr,
        client: &OffsetClient<'_>,
    ) -> Result<Admission, ErrorCode> {
        match self {
            Group::Classic(group) => group.admit_commit(soft, group_id, client),
            Group::Consumer(group) => group.admit_commit(client),
            Group::Streams(group) => group.admit_commit(client),
        }
    }

    /// Whether the member owns the partition since an epoch no later than `client.epoch`; asked after `OwnedSince`.
    pub(crate) fn may_commit(&self, client: &OffsetClient<'_>, topic: &str, topic_id: &Uuid, partition: i32) -> bool {
        match self {
            Group::Classic(_) => true,
            Group::Consumer(group) => group.may_commit(client, topic_id, partition),
            Group::Streams(group) => group.may_commit(client, topic, partition),
        }
    }

    /// Checks an OffsetFetch (C F-4, F-5; S 9.5).
    pub(crate) fn admit_fetch(&self, client: &OffsetClient<'_>) -> Result<(), ErrorCode> {
        match self {
            Group::Classic(_) => Ok(()),
            Group::Consumer(group) => group.admit_fetch(client),
            Group::Streams(group) => group.admit_fetch(client),
        }
    }

    /// Whether the group reads the topic now, so that its offsets are neither deleted nor expired (C D-8, E-1; S 9.4, 9.5).
    pub(crate) fn is_subscribed(&self, soft: &Soft, group_id: &KStr, topic: &str) -> bool {
        match self {
            Group::Classic(group) => group.is_subscribed(soft, group_id, topic),
            Group::Consumer(group) => group.is_subscribed(topic),
            Group::Streams(group) => group.is_subscribed(topic),
        }
    }

    /// Whether OffsetDelete may look at the group at all (C D-7).
    pub(crate) fn admit_offset_delete(&self, soft: &Soft, group_id: &KStr) -> Result<(), ErrorCode> {
        match self {
            Group::Classic(group) => group.admit_offset_delete(soft, group_id),
            Group::Consumer(_) | Group::Streams(_) => Ok(()),
        }
    }

    /// False while no offset of the group expires, not even by a time of its own (C E-2).
    pub(crate) fn expires_offsets(&self, soft: &Soft, group_id: &KStr) -> bool {
        match self {
            Group::Classic(group) => group.expires_offsets(soft, group_id),
            Group::Consumer(_) | Group::Streams(_) => true,
        }
    }

    /// Whether offsets committed at `commit_time_ms` without an expiry of their own have expired (C E-1, E-2).
    pub(crate) fn offset_expired(
        &self,
        soft: &Soft,
        group_id: &KStr,
        commit_time_ms: i64,
        now_ms: i64,
        retention_ms: i64,
    ) -> bool {
        match self {
            Group::Classic(group) => group.offset_expired(soft, group_id, commit_time_ms, now_ms, retention_ms),
            Group::Consumer(_) | Group::Streams(_) => now_ms - commit_time_ms >= retention_ms,
        }
    }

    /// NON_EMPTY_GROUP, or nothing if the group may be deleted (C D-6, S 9.4).
    pub(crate) fn admit_deletion(&self, soft: &Soft, group_id: &KStr) -> Result<(), ErrorCode> {
        let empty = match self {
            Group::Classic(group) => group.is_empty(soft, group_id),
            Group::Consumer(group) => group.is_empty(),
            Group::Streams(group) => group.is_empty(),
        };
        if empty { Ok(()) } else { Err(ErrorCode::NonEmptyGroup) }
    }

    /// The records that remove the group (C D-6, S 10.3); offsets are not among them.
    pub(crate) fn tombstones(&self, group_id: &KStr, records: &mut Vec<Record>) {
        match self {
            Group::Classic(group) => group.tombstones(group_id, records),
            Group::Consumer(group) => group.tombstones(group_id, records),
            Group::Streams(group) => group.tombstones(group_id, records),
        }
    }
}

/// ListGroups (C D-4, S 9.3): filters are lower-cased and trimmed, unknown values match nothing.
pub(crate) fn list(ctx: &mut Ctx<'_, '_>, states: &[KStr], types: &[KStr]) {
    let clean = |values: &[KStr]| values.iter().map(|v| v.trim().to_lowercase().replace('_', "")).collect::<Vec<_>>();
    let (states, types) = (clean(states), clean(types));
    let mut listed = Vec::new();
    for group_id in ctx.state.group_ids() {
        let Some(group) = ctx.state.group(&group_id) else {
            continue;
        };
        let entry = match group {
            Group::Classic(group) => group.listed(ctx.soft, &group_id),
            Group::Consumer(group) => group.listed(&group_id),
            Group::Streams(group) => group.listed(ctx.soft, &group_id),
        };
        let state = entry.group_state.to_lowercase();
        if (types.is_empty() || types.iter().any(|t| t == group.type_name()))
            && (states.is_empty() || states.contains(&state))
        {
            listed.push(entry);
        }
    }
    ctx.reply(Reply::ListGroups(listed));
}

/// DeleteGroups, one group (C D-6, S 9.4).
pub(crate) fn delete(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    let state = ctx.state;
    let error = match state.group(group_id) {
        None => Some(ErrorCode::GroupIdNotFound),
        Some(group) => group.admit_deletion(ctx.soft, group_id).err(),
    };
    if error.is_none() {
        remove(ctx, group_id);
    }
    let error_code = error.map_or(0, ErrorCode::code);
    let result = DeletableGroupResult { group_id: group_id.clone(), error_code, ..Default::default() };
    ctx.reply(Reply::DeleteGroup(Box::new(result)));
}

/// Writes what removes a group with its offsets, and forgets its soft state.
pub(crate) fn remove(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    let state = ctx.state;
    offsets::tombstones_of_group(ctx, group_id);
    if let Some(group) = state.group(group_id) {
        group.tombstones(group_id, &mut ctx.out.records);
    }
    forget(ctx.soft, group_id);
}

/// Drops the soft state of a group that is gone.
pub(crate) fn forget(soft: &mut Soft, group_id: &KStr) {
    classic::forget(soft, group_id);
    consumer::forget(soft, group_id);
    streams::forget(soft, group_id);
}

/// Every record but offsets finds its protocol.
pub(crate) fn replay(state: &mut State, position: Position, record: Record) {
    match record {
        Record::OffsetCommit(..) => {}
        Record::GroupMetadata(..) => classic::replay(state, position, record),
        Record::ConsumerMetadata(..)
        | Record::ConsumerPartitionMetadata(..)
        | Record::ConsumerMember(..)
        | Record::ConsumerTargetMetadata(..)
        | Record::ConsumerTargetMember(..)
        | Record::ConsumerCurrentMember(..)
        | Record::ConsumerRegex(..) => consumer::replay(state, position, record),
        Record::StreamsMetadata(..)
        | Record::StreamsMember(..)
        | Record::StreamsTargetMetadata(..)
        | Record::StreamsTargetMember(..)
        | Record::StreamsCurrentMember(..)
        | Record::StreamsTopology(..) => streams::replay(state, position, record),
    }
}

/// After recovery: sessions and soft state of every group.
pub(crate) fn loaded(state: &State, soft: &mut Soft, at: Moment, env: &mut Env<'_>) {
    for group_id in state.group_ids() {
        match state.group(&group_id) {
            Some(Group::Classic(group)) => classic::loaded(group, &group_id, soft, at, env),
            Some(Group::Consumer(group)) => consumer::loaded(group, &group_id, soft, at, env),
            Some(Group::Streams(group)) => streams::loaded(group, &group_id, soft, at, env),
            None => {}
        }
    }
}

/// The records of the latest outcome were refused: soft state that assumed them is put right.
pub(crate) fn refused(state: &State, soft: &mut Soft, at: Moment, env: &mut Env<'_>) {
    classic::refused(state, soft, at, env);
    consumer::refused(state, soft, at, env);
    streams::refused(state, soft, at, env);
}

pub(crate) fn topics_changed(ctx: &mut Ctx<'_, '_>, changed: &[KStr], deleted: &[(KStr, Uuid)]) {
    consumer::topics_changed(ctx, changed, deleted);
    streams::topics_changed(ctx, changed, deleted);
}

pub(crate) fn config_changed(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    match ctx.state.group(group_id) {
        Some(Group::Consumer(_)) => consumer::config_changed(ctx, group_id),
        Some(Group::Streams(_)) => streams::config_changed(ctx, group_id),
        _ => {}
    }
}

pub(crate) fn assignment_ready(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group_epoch: i32, target: &Arc<ComputedTarget>) {
    match (&**target, ctx.state.group(group_id)) {
        (ComputedTarget::Consumer(target), Some(Group::Consumer(_))) => {
            consumer::assignment_ready(ctx, group_id, group_epoch, target);
        }
        (ComputedTarget::Streams(target), Some(Group::Streams(_))) => {
            streams::assignment_ready(ctx, group_id, group_epoch, target);
        }
        _ => {}
    }
}

pub(crate) fn regex_resolved(
    ctx: &mut Ctx<'_, '_>,
    group_id: &KStr,
    matches: Vec<(KStr, Result<Vec<KStr>, String>)>,
    image_version: u64,
) {
    match ctx.state.group(group_id) {
        Some(Group::Consumer(_)) => consumer::regex_resolved(ctx, group_id, matches, image_version),
        Some(Group::Streams(_)) => streams::regex_resolved(ctx, group_id, matches, image_version),
        _ => {}
    }
}
