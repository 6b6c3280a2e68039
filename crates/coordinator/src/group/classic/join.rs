//! JoinGroup (C section 2): who may join, and members that join or join again. Static members that come back are next
//! door, in `static_member`.

use bytes::Bytes;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::{ErrorCode, KStr};

use super::live::{GroupState, Live, Member, Protocol, Waiting};
use super::refused::Unconfirmed;
use super::scope::Scope;
use super::{rebalance, records, reply, static_member};
use crate::command::Caller;
use crate::group::{self, Group, consumer};
use crate::journal::Kind;
use crate::shard::Ctx;

/// Until its first join is complete a member is expected to ask again within this time (C J-17).
const NEW_MEMBER_JOIN_TIMEOUT_MS: u64 = 300_000;

/// One JoinGroup, with what the handlers need of its surroundings.
pub(super) struct Join<'a> {
    pub request: &'a JoinGroupRequest,
    pub caller: &'a Caller,
    pub waiting: Waiting,
}

pub(crate) fn join(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &JoinGroupRequest) {
    let config = &ctx.env.config.broker;
    let sessions = config.classic_min_session_timeout_ms..=config.classic_max_session_timeout_ms;
    if request.group_id.is_empty() {
        return refuse(ctx, caller, ErrorCode::InvalidGroupId, &request.member_id);
    }
    if !sessions.contains(&request.session_timeout_ms) {
        return refuse(ctx, caller, ErrorCode::InvalidSessionTimeout, &request.member_id);
    }
    match ctx.state.group(&request.group_id) {
        Some(Group::Classic(_)) => {}
        Some(Group::Consumer(group)) if !group.is_empty() => {
            return consumer::classic_member::join(ctx, caller, request);
        }
        Some(Group::Streams(group)) if !group.is_empty() => {
            return refuse(ctx, caller, ErrorCode::InconsistentGroupProtocol, &KStr::EMPTY);
        }
        // Nobody can know a member id of a group that is not there (C J-4).
        _ if !request.member_id.is_empty() => {
            return refuse(ctx, caller, ErrorCode::UnknownMemberId, &request.member_id);
        }
        _ => create(ctx, &request.group_id),
    }
    let waiting = Waiting { ticket: ctx.ticket, api_version: caller.api_version };
    let join = Join { request, caller, waiting };
    dispatch(ctx, &join);
}

fn refuse(ctx: &mut Ctx<'_, '_>, caller: &Caller, error: ErrorCode, member_id: &KStr) {
    ctx.reply(reply::join_failed(error, member_id.clone(), caller.api_version));
}

/// Makes an empty classic group, in the place of an empty group of another protocol if there is one (C J-3, J-5). It
/// exists from then on, whatever becomes of the join.
fn create(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    let state = ctx.state;
    if let Some(old) = state.group(group_id) {
        old.tombstones(group_id, &mut ctx.out.records);
        group::forget(ctx.soft, group_id);
    }
    let live = Live::new(group_id.to_owned_detached(), ctx.at.wall_ms);
    ctx.out.records.push(records::of(&live));
    ctx.soft.classic_unconfirmed = Some(Unconfirmed::Created(live.group_id.clone()));
    ctx.soft.classic.insert(live.group_id.clone(), live);
}

fn dispatch(ctx: &mut Ctx<'_, '_>, join: &Join<'_>) {
    let request = join.request;
    let Some(scope) = &mut Scope::open(ctx, &request.group_id) else {
        return;
    };
    if !has_room(scope, request) {
        return turn_away(scope, join);
    }
    let offered = request.protocols.iter().map(|protocol| &protocol.name);
    if !scope.group.supports(&request.protocol_type, offered) {
        let error = ErrorCode::InconsistentGroupProtocol;
        return join.fail(scope, error, request.member_id.clone());
    }
    match &request.group_instance_id {
        _ if !request.member_id.is_empty() => known_member(scope, join),
        None => new_dynamic_member(scope, join),
        Some(instance_id) => match scope.group.member_of_instance(instance_id).cloned() {
            None => {
                let member_id = scope.ids.member_id(instance_id);
                add_member(scope, join, member_id);
            }
            Some(holder) => static_member::replace(scope, join, &holder),
        },
    }
}

/// The size gate (C J-6), but that existing members keep their place: newcomers count all members, not those that
/// wait already, and a static member that comes back is no newcomer (decision 23). Only after the limit was lowered
/// the first ones to join again are those that stay.
fn has_room(scope: &Scope<'_>, request: &JoinGroupRequest) -> bool {
    let (group, limit) = (&scope.group, scope.config.classic_max_size);
    let returns = request.member_id.is_empty()
        && request
            .group_instance_id
            .as_ref()
            .is_some_and(|instance_id| group.member_of_instance(instance_id).is_some());
    let member = group.member(&request.member_id);
    match group.state() {
        GroupState::Empty => true,
        _ if returns => true,
        GroupState::CompletingRebalance | GroupState::Stable => member.is_some() || group.members().len() < limit,
        GroupState::PreparingRebalance => match member {
            Some(member) if member.awaiting_join.is_some() => true,
            Some(_) => group.members().len() <= limit || group.open_joins() < limit,
            None => group.members().len() < limit,
        },
    }
}

/// The group is full (C J-6). The id is forgotten, which may be what a join phase has been waiting for.
fn turn_away(scope: &mut Scope<'_>, join: &Join<'_>) {
    let member_id = join.request.member_id.to_owned_detached();
    if scope.group.pending_joins.remove(&member_id) {
        scope.end_session(&member_id);
    }
    rebalance::remove_member(scope, &member_id);
    join.fail(scope, ErrorCode::GroupMaxSizeReached, KStr::EMPTY);
    rebalance::complete_if_all_joined(scope);
}

/// C J-8, J-9.
fn new_dynamic_member(scope: &mut Scope<'_>, join: &Join<'_>) {
    let member_id = scope.ids.member_id(&join.caller.client_id);
    if join.waiting.api_version < 4 {
        return add_member(scope, join, member_id);
    }
    scope.group.pending_joins.insert(member_id.clone());
    let session_timeout_ms = join.request.session_timeout_ms.max(0) as u64;
    scope.expect_sign_of_life(member_id.clone(), session_timeout_ms);
    rebalance::note_join(scope, true);
    join.fail(scope, ErrorCode::MemberIdRequired, member_id);
}

/// C J-16, J-17. `member_id` must own its memory.
fn add_member(scope: &mut Scope<'_>, join: &Join<'_>, member_id: KStr) {
    let (request, caller) = (join.request, join.caller);
    let member = Member {
        instance_id: request.group_instance_id.as_ref().map(KStr::to_owned_detached),
        client_id: caller.client_id.to_owned_detached(),
        client_host: caller.client_host.to_owned_detached(),
        rebalance_timeout_ms: join.rebalance_timeout_ms(),
        session_timeout_ms: request.session_timeout_ms,
        protocols: join.protocols(),
        assignment: Bytes::new(),
        awaiting_join: Some(join.waiting),
        awaiting_sync: None,
        is_new: true,
    };
    rebalance::note_join(scope, false);
    scope.group.add(member_id.clone(), &request.protocol_type, member);
    scope.note(Kind::MemberJoined, &member_id, join.reason());
    scope.note_arrival(&member_id);
    scope.expect_sign_of_life(member_id, NEW_MEMBER_JOIN_TIMEOUT_MS);
    rebalance::prepare_or_complete(scope);
}

/// A member id that the client has from us (C section 2.4).
fn known_member(scope: &mut Scope<'_>, join: &Join<'_>) {
    let request = join.request;
    let member_id = &request.member_id;
    if let Some(pending) = scope.group.pending_joins.get(member_id).cloned() {
        // Static members never get an id to come back with (C J-18).
        return match request.group_instance_id {
            Some(_) => join.fail(scope, ErrorCode::UnknownServerError, KStr::EMPTY),
            None => add_member(scope, join, pending),
        };
    }
    let instance_id = request.group_instance_id.as_ref();
    if let Err(error) = scope.group.validate(member_id, instance_id) {
        return join.fail(scope, error, member_id.clone());
    }
    let unchanged = scope.group.member(member_id).is_some_and(|member| offers_the_same(member, &request.protocols));
    let is_leader = scope.group.is_leader(member_id);
    match scope.group.state() {
        // Its members left since (C J-24); `validate` has said so already.
        GroupState::Empty => join.fail(scope, ErrorCode::UnknownMemberId, member_id.clone()),
        GroupState::CompletingRebalance if unchanged => {
            join.answer_at_once(scope, member_id, is_leader);
        }
        GroupState::Stable if unchanged && !is_leader => {
            join.answer_at_once(scope, member_id, false);
        }
        _ => {
            if scope.group.can_rebalance() {
                let kind = if unchanged { Kind::Rejoined } else { Kind::SubscriptionChanged };
                scope.note_rejoin(kind, member_id, join.reason());
            }
            join.update(scope, member_id);
            scope.note_arrival(member_id);
            rebalance::prepare_or_complete(scope);
        }
    }
}

fn offers_the_same(member: &Member, offered: &[JoinGroupRequestProtocol]) -> bool {
    let offered = offered.iter().map(|p| (&p.name, &p.metadata));
    member.protocols.iter().map(|(n, m)| (n, m)).eq(offered)
}

impl Join<'_> {
    /// In version 0 the session timeout is meant.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        if self.waiting.api_version == 0 { self.request.session_timeout_ms } else { self.request.rebalance_timeout_ms }
    }

    pub(super) fn protocols(&self) -> Vec<Protocol> {
        let copy = |protocol: &JoinGroupRequestProtocol| {
            let metadata = Bytes::copy_from_slice(&protocol.metadata);
            (protocol.name.to_owned_detached(), metadata)
        };
        self.request.protocols.iter().map(copy).collect()
    }

    /// Why the member joins, if it says so (KIP-800).
    pub(super) fn reason(&self) -> Option<String> {
        self.request.reason.as_ref().filter(|reason| !reason.is_empty()).map(ToString::to_string)
    }

    pub(super) fn fail(&self, scope: &mut Scope<'_>, error: ErrorCode, member_id: KStr) {
        scope.fail_join(self.waiting, error, member_id);
    }

    /// The generation that runs, without a rebalance (C J-22, J-23).
    fn answer_at_once(&self, scope: &mut Scope<'_>, member_id: &KStr, list_members: bool) {
        let version = self.waiting.api_version;
        let reply = reply::joined(scope.group, member_id, list_members, version);
        scope.out.reply(self.waiting.ticket, reply);
    }

    /// Takes over what the member now offers, and keeps this join open. An earlier join of the same member that is still
    /// open has been given up by its client; Kafka never answers it.
    pub(super) fn update(&self, scope: &mut Scope<'_>, member_id: &KStr) {
        scope.group.set_protocols(member_id, self.protocols());
        if let Some(member) = scope.group.member_mut(member_id) {
            member.rebalance_timeout_ms = self.rebalance_timeout_ms();
            member.session_timeout_ms = self.request.session_timeout_ms;
        }
        if let Some(earlier) = scope.group.open_join(member_id, self.waiting) {
            scope.fail_join(earlier, ErrorCode::RebalanceInProgress, member_id.clone());
        }
    }
}
