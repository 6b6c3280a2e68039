//! Members that speak the classic protocol in a consumer group (C G-6 to G-12). Called by `classic` for a group that is a
//! consumer group with members.
//!
//! Such a member is reconciled like any other, but in the words of its protocol: a new epoch is a new generation, for
//! which it is told to rejoin; nobody leads, nobody waits for the others, and assignments come with the sync.

use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::heartbeat_response::HeartbeatResponse;
use wire::messages::join_group_request::JoinGroupRequest;
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::leave_group_response::{LeaveGroupResponse, MemberResponse};
use wire::messages::sync_group_request::SyncGroupRequest;
use wire::messages::sync_group_response::SyncGroupResponse;
use wire::{Bytes, ErrorCode, KStr};

use super::fault::Fault;
use super::join::{self, Participant};
use super::member::{Classic, Member, Progress, Wants};
use super::timers::{self, Timer};
use super::update::Update;
use super::{Group, downgrade, embedded, leave, records, regexes, soft};
use crate::command::Caller;
use crate::config::MigrationPolicy;
use crate::group;
use crate::outcome::Reply;
use crate::record::Record;
use crate::shard::Ctx;

const PROTOCOL_TYPE: &str = "consumer";
/// From this version of JoinGroup on, dynamic members join in two steps.
const JOIN_NEEDS_MEMBER_ID: i16 = 4;
/// From this version of LeaveGroup on, several members leave at once.
const LEAVE_MANY: i16 = 3;

pub(crate) fn join(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &JoinGroupRequest) {
    let refresh_at_ms = soft::refresh_at(ctx.soft, &request.group_id);
    let response = run_join(ctx, caller, request).unwrap_or_else(|(error, member_id)| {
        soft::take_back(ctx.soft, &request.group_id, refresh_at_ms);
        JoinGroupResponse {
            error_code: error.code(),
            generation_id: -1,
            protocol_name: Some(KStr::EMPTY),
            member_id,
            ..Default::default()
        }
    });
    ctx.reply(Reply::JoinGroup(Box::new(response)));
}

/// An error goes with the member id of the answer.
type JoinError = (ErrorCode, KStr);

fn refuse(error: ErrorCode) -> JoinError {
    (error, KStr::EMPTY)
}

fn refuse_for(fault: Fault) -> JoinError {
    refuse(fault.error)
}

fn run_join(
    ctx: &mut Ctx<'_, '_>,
    caller: &Caller,
    request: &JoinGroupRequest,
) -> Result<JoinGroupResponse, JoinError> {
    let state = ctx.state;
    let Some((group_id, group::Group::Consumer(group))) = state.groups.get_key_value(&request.group_id) else {
        return Err(refuse(ErrorCode::UnknownMemberId));
    };
    if ctx.env.config.broker.consumer_migration_policy == MigrationPolicy::Disabled {
        return Err(refuse(ErrorCode::InconsistentGroupProtocol));
    }
    // Drawn even if what follows is refused, as Kafka does.
    let made_id = request.member_id.is_empty().then(|| KStr::from(ctx.env.ids.uuid().to_string()));
    let member_id = made_id.as_ref().unwrap_or(&request.member_id);
    admit(ctx, group, member_id, request)?;
    if made_id.is_some() && request.group_instance_id.is_none() && caller.api_version >= JOIN_NEEDS_MEMBER_ID {
        return Err((ErrorCode::MemberIdRequired, member_id.clone()));
    }
    let mut records = Vec::new();
    let participant = find(group, group_id, member_id, request, &mut records).map_err(refuse_for)?;
    let (name, metadata) = request.protocols.first().map(|p| (&p.name, &p.metadata)).unzip();
    let subscription = metadata.and_then(embedded::subscription);
    let subscription = subscription.ok_or(refuse(ErrorCode::InconsistentGroupProtocol))?;
    let topics = subscription.owned_partitions.iter().map(|topic| (&topic.topic, &topic.partitions[..]));
    let owned = embedded::by_id(topics, ctx.env.topics);
    let wants = Wants {
        names: subscription.topics.iter().map(KStr::to_owned_detached).collect(),
        rack_id: subscription.rack_id.as_ref().map(KStr::to_owned_detached),
        ..Wants::default()
    };
    let wants = joined(&participant.member.wants, caller, request, wants);
    let update = Update::new(group_id, group, &participant, Some(wants));
    let subscribed = update.subscribe(ctx, &mut records).map_err(refuse_for)?;
    let converts = replaces_the_last(ctx, group, &participant, &records);
    let next = if converts && subscribed.epoch > group.target.epoch {
        None // The classic group assembles anew instead (C G-13).
    } else {
        let change = update.target(subscribed.epoch);
        let (target_epoch, target) = change.update(ctx, &mut records).map_err(refuse_for)?;
        update.reconcile(ctx, || Some(owned), target_epoch, &target, subscribed.changed)
    };
    let id = participant.member.id.clone();
    if let Some(next) = &next {
        records.push(records::current(group_id, &id, next));
    }
    let has = next.as_ref().unwrap_or(&participant.member.has);

    // Nothing fails from here on.
    regexes::maybe_resolve(ctx, group_id, group, &update.counts);
    ctx.out.records.append(&mut records);
    if let Some(old) = participant.replaces {
        timers::disarm_all(ctx.soft, group_id, &old.id);
    }
    if converts {
        convert(ctx, group_id, group);
    } else {
        watch(ctx, group_id, &id, request);
    }
    Ok(JoinGroupResponse {
        generation_id: has.epoch,
        protocol_type: Some(KStr::from(PROTOCOL_TYPE)),
        protocol_name: name.cloned(),
        member_id: id,
        ..Default::default()
    })
}

/// C G-6, between the policy and the two-step join.
fn admit(ctx: &Ctx<'_, '_>, group: &Group, member_id: &KStr, request: &JoinGroupRequest) -> Result<(), JoinError> {
    join::check_room(group, &ctx.env.config.broker, member_id, request.group_instance_id.as_ref())
        .map_err(refuse_for)?;
    let shared = request.protocols.iter().any(|protocol| group.counts.all_classic_support(&protocol.name));
    if request.protocol_type != PROTOCOL_TYPE || !shared {
        return Err(refuse(ErrorCode::InconsistentGroupProtocol));
    }
    Ok(())
}

/// A static member comes back under a new id and takes over at once, whichever protocol the holder speaks (C G-6).
fn find<'a>(
    group: &'a Group,
    group_id: &KStr,
    member_id: &KStr,
    request: &JoinGroupRequest,
    records: &mut Vec<Record>,
) -> Result<Participant<'a>, Fault> {
    let known = group.members.get(member_id).map(Participant::existing);
    let Some(instance_id) = &request.group_instance_id else {
        return Ok(known.unwrap_or_else(|| Participant::new(member_id)));
    };
    match (group.static_member(instance_id), request.member_id.is_empty()) {
        (Some(holder), true) => Ok(Participant::replacing(group, group_id, holder, member_id, records)),
        (None, true) => Ok(known.unwrap_or_else(|| Participant::new(member_id))),
        (Some(holder), false) if holder.id == *member_id => Ok(Participant::existing(holder)),
        (Some(holder), false) => Err(Fault::fenced_instance(member_id, instance_id, &holder.id)),
        (None, false) => Err(Fault::unknown_instance(instance_id)),
    }
}

/// What the member wants from now on; `given` holds what its subscription says. In memory of its own.
fn joined(before: &Wants, caller: &Caller, request: &JoinGroupRequest, given: Wants) -> Wants {
    let own = KStr::to_owned_detached;
    let protocols = request.protocols.iter();
    Wants {
        instance_id: request.group_instance_id.as_ref().map(own).or_else(|| before.instance_id.clone()),
        rack_id: given.rack_id.or_else(|| before.rack_id.clone()),
        client_id: own(&caller.client_id),
        client_host: own(&caller.client_host),
        rebalance_timeout_ms: rebalance_timeout_ms(request),
        names: given.names,
        // A subscription of the classic protocol is all that its member reads, whatever the holder before it read.
        regex: KStr::EMPTY,
        assignor: before.assignor.clone(),
        classic: Some(Classic {
            session_timeout_ms: request.session_timeout_ms,
            protocols: protocols.map(|p| (own(&p.name), Bytes::copy_from_slice(&p.metadata))).collect(),
        }),
    }
}

/// Version 0 of JoinGroup has none (C section 2).
fn rebalance_timeout_ms(request: &JoinGroupRequest) -> i32 {
    if request.rebalance_timeout_ms < 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms }
}

/// The member takes the place of the last one that spoke the consumer protocol (C G-13). `records`: what it changes.
fn replaces_the_last(ctx: &Ctx<'_, '_>, group: &Group, participant: &Participant<'_>, records: &[Record]) -> bool {
    participant.replaces.is_some_and(|old| !old.is_classic())
        && downgrade::is_due(&ctx.env.config.broker, &after(group, records), &[])
}

fn after(group: &Group, records: &[Record]) -> Group {
    let mut after = group.clone();
    for record in records {
        after.apply(record.clone());
    }
    after
}

/// The group goes on as a classic one, in the generation that its members know: that of the epoch before the join, which may
/// have moved it. If the target is behind, members assemble at once.
fn convert(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: &Group) {
    let mut after = after(group, &ctx.out.records);
    let assembles = after.epoch > after.target.epoch;
    after.epoch = group.epoch;
    // Their tombstones are written once more, as Kafka does.
    after.regexes.clone_from(&group.regexes);
    downgrade::convert(ctx, group_id, &after, &[], assembles);
}

/// C G-8: the session runs, and the sync is waited for.
fn watch(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member_id: &KStr, request: &JoinGroupRequest) {
    let ids = || (group_id.clone(), member_id.clone());
    let ((group, member), (group_of_rebalance, revoker)) = (ids(), ids());
    timers::disarm(ctx.soft, Timer::Join { group_id: group, member_id: member });
    timers::disarm(ctx.soft, Timer::Rebalance { group_id: group_of_rebalance, member_id: revoker });
    let (group, member) = ids();
    timers::arm(ctx.soft, ctx.at, Timer::Session { group_id: group, member_id: member }, request.session_timeout_ms);
    let (group, member) = ids();
    timers::arm(ctx.soft, ctx.at, Timer::Sync { group_id: group, member_id: member }, rebalance_timeout_ms(request));
}

/// C G-9, G-10.
pub(crate) fn sync(ctx: &mut Ctx<'_, '_>, _caller: &Caller, request: &SyncGroupRequest) {
    let response = run_sync(ctx, request)
        .unwrap_or_else(|error| SyncGroupResponse { error_code: error.code(), ..Default::default() });
    ctx.reply(Reply::SyncGroup(Box::new(response)));
}

fn run_sync(ctx: &mut Ctx<'_, '_>, request: &SyncGroupRequest) -> Result<SyncGroupResponse, ErrorCode> {
    let state = ctx.state;
    let Some((group_id, group::Group::Consumer(group))) = state.groups.get_key_value(&request.group_id) else {
        return Err(ErrorCode::UnknownMemberId);
    };
    let (member, classic) = validate(group, &request.member_id, request.group_instance_id.as_ref())?;
    if request.generation_id != member.has.epoch {
        return Err(ErrorCode::IllegalGeneration);
    }
    let preferred = classic.protocols.first();
    let type_differs = request.protocol_type.as_ref().is_some_and(|given| *given != PROTOCOL_TYPE);
    let name_differs =
        request.protocol_name.as_ref().is_some_and(|given| Some(given) != preferred.map(|(name, _)| name));
    if type_differs || name_differs {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    if group.target.epoch > member.has.epoch && member.has.progress != Progress::UnrevokedPartitions {
        expect_rejoin(ctx, group_id, member);
        return Err(ErrorCode::RebalanceInProgress);
    }
    let (sync_group, sync_member) = (group_id.clone(), member.id.clone());
    timers::disarm(ctx.soft, Timer::Sync { group_id: sync_group, member_id: sync_member });
    timers::arm_session(ctx.soft, ctx.at, ctx.env, group_id, member);
    let metadata = preferred.map(|(_, metadata)| metadata.clone()).unwrap_or_default();
    let assigned = member.has.assigned.iter();
    let assigned = assigned.map(|(topic, partitions)| (*topic, partitions.keys().copied().collect())).collect();
    Ok(SyncGroupResponse {
        protocol_type: request.protocol_type.clone(),
        protocol_name: request.protocol_name.clone(),
        assignment: embedded::encode_assignment(&metadata, &assigned, ctx.env.topics),
        ..Default::default()
    })
}

/// C G-11.
pub(crate) fn heartbeat(ctx: &mut Ctx<'_, '_>, _caller: &Caller, request: &HeartbeatRequest) {
    let error = run_heartbeat(ctx, request).err().unwrap_or(ErrorCode::None);
    ctx.reply(Reply::Heartbeat(HeartbeatResponse { error_code: error.code(), ..Default::default() }));
}

fn run_heartbeat(ctx: &mut Ctx<'_, '_>, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
    let state = ctx.state;
    let Some((group_id, group::Group::Consumer(group))) = state.groups.get_key_value(&request.group_id) else {
        return Err(ErrorCode::UnknownMemberId);
    };
    let (member, _) = validate(group, &request.member_id, request.group_instance_id.as_ref())?;
    if request.generation_id != member.has.epoch {
        return Err(ErrorCode::IllegalGeneration);
    }
    timers::arm_session(ctx.soft, ctx.at, ctx.env, group_id, member);
    let has_to_rejoin = member.has.epoch < group.target.epoch
        || match member.has.progress {
            Progress::UnrevokedPartitions => true,
            Progress::UnreleasedPartitions => !waits_for_others(group, member),
            Progress::Stable | Progress::Unknown => false,
        };
    if has_to_rejoin {
        expect_rejoin(ctx, group_id, member);
        return Err(ErrorCode::RebalanceInProgress);
    }
    Ok(())
}

/// Whether somebody still holds what the member is to get.
fn waits_for_others(group: &Group, member: &Member) -> bool {
    let target = group.target_of(&member.id);
    let mut partitions = target.iter().flat_map(|(topic, partitions)| partitions.iter().map(move |p| (topic, *p)));
    partitions.any(|(topic, partition)| {
        let has_it = member.has.assigned.get(topic).is_some_and(|has| has.contains_key(&partition));
        !has_it && group.holder(topic, partition).is_some()
    })
}

/// The member was told to rejoin; it has its rebalance timeout to do so, counted from the first time (C G-11).
fn expect_rejoin(ctx: &mut Ctx<'_, '_>, group_id: &KStr, member: &Member) {
    let timer = Timer::Join { group_id: group_id.clone(), member_id: member.id.clone() };
    if !timers::is_armed(ctx.soft, &timer) {
        timers::arm(ctx.soft, ctx.at, timer, member.wants.rebalance_timeout_ms);
    }
}

/// C J-19, and that the member speaks the classic protocol.
fn validate<'a>(
    group: &'a Group,
    member_id: &KStr,
    instance_id: Option<&KStr>,
) -> Result<(&'a Member, &'a Classic), ErrorCode> {
    if let Some(instance_id) = instance_id {
        let holder = group.static_member(instance_id).ok_or(ErrorCode::UnknownMemberId)?;
        if holder.id != *member_id {
            return Err(ErrorCode::FencedInstanceId);
        }
    }
    let member = group.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
    let classic = member.wants.classic.as_ref().ok_or(ErrorCode::UnknownMemberId)?;
    Ok((member, classic))
}

/// C G-12: for members of both protocols.
pub(crate) fn leave(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &LeaveGroupRequest) {
    let state = ctx.state;
    let single = [MemberIdentity { member_id: request.member_id.clone(), ..Default::default() }];
    let one_only = caller.api_version < LEAVE_MANY;
    let identities = if one_only { &single[..] } else { &request.members };
    let mut leaving: Vec<&Member> = Vec::new();
    let mut errors = vec![ErrorCode::UnknownMemberId; identities.len()];
    if let Some(group::Group::Consumer(group)) = state.group(&request.group_id) {
        for (identity, error) in identities.iter().zip(&mut errors) {
            match find_leaving(group, identity) {
                // Named twice, it is gone by then (C L-6).
                Ok(member) if leaving.iter().any(|other| other.id == member.id) => {}
                Ok(member) => {
                    leaving.push(member);
                    *error = ErrorCode::None;
                }
                Err(why) => *error = why,
            }
        }
        if !leaving.is_empty() {
            leave::remove(ctx, &request.group_id, group, &leaving);
        }
    }
    let mut response = LeaveGroupResponse::default();
    if one_only {
        response.error_code = errors[0].code();
    } else {
        let entries = identities.iter().zip(&errors).map(|(identity, error)| MemberResponse {
            member_id: identity.member_id.clone(),
            group_instance_id: identity.group_instance_id.clone(),
            error_code: error.code(),
        });
        response.members = entries.collect();
    }
    ctx.reply(Reply::LeaveGroup(Box::new(response)));
}

/// C L-3.
fn find_leaving<'a>(group: &'a Group, identity: &MemberIdentity) -> Result<&'a Member, ErrorCode> {
    let Some(instance_id) = &identity.group_instance_id else {
        return group.members.get(&identity.member_id).ok_or(ErrorCode::UnknownMemberId);
    };
    let holder = group.static_member(instance_id).ok_or(ErrorCode::UnknownMemberId)?;
    if identity.member_id.is_empty() || holder.id == identity.member_id {
        Ok(holder)
    } else {
        Err(ErrorCode::FencedInstanceId)
    }
}
