//! From a command and its records to events.

use wire::messages::leave_group_request::LeaveGroupRequest;
use wire::{ErrorCode, KStr};

use super::moves::{self, Shift};
use super::{Event, Kind, MAX_MOVES, Who};
use crate::command::{Caller, Command};
use crate::env::Moment;
use crate::group::{self, Group};
use crate::outcome::Reply;
use crate::record::Record;
use crate::shard::{self, Ctx, State};

/// What one protocol makes of the records of a command.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Old and new epoch of the group, if it moves.
    pub epoch: Option<(i32, i32)>,
    pub causes: Vec<Cause>,
    /// How the targets of members change.
    pub shifts: Vec<Shift>,
    /// A target is complete.
    pub assigned: bool,
    /// Members that are where they shall be.
    pub arrived: Vec<Who>,
    /// The last member goes.
    pub emptied: bool,
    /// The group is removed.
    pub deleted: bool,
    /// What kind of group it was before, if it was another.
    pub converted_from: Option<&'static str>,
}

/// One reason.
#[derive(Debug)]
pub(crate) struct Cause {
    pub kind: Kind,
    pub who: Option<Who>,
    pub topics: Vec<KStr>,
    pub detail: Option<String>,
}

impl Cause {
    pub fn of(kind: Kind, who: Who) -> Cause {
        Cause { kind, who: Some(who), topics: Vec::new(), detail: None }
    }

    pub fn topics((kind, topics): (Kind, Vec<KStr>)) -> Cause {
        Cause { kind, who: None, topics, detail: None }
    }

    pub fn plain(kind: Kind) -> Cause {
        Cause { kind, who: None, topics: Vec::new(), detail: None }
    }

    pub fn with_detail(self, detail: impl Into<String>) -> Cause {
        Cause { detail: Some(detail.into()), ..self }
    }
}

/// Derives the events of a command that has run and whose records are not applied yet. A command without records and
/// without an error passes through without a look at the group.
pub(crate) fn observe(ctx: &mut Ctx<'_, '_>, command: &Command) {
    let timer = ctx.soft.journal.timer.take();
    if let Some(refusal) = refusal(ctx, command) {
        ctx.out.events.push(refusal);
    }
    let records = std::mem::take(&mut ctx.out.records);
    let group_records = records.iter().any(|record| !matches!(record, Record::OffsetCommit(..)));
    if group_records {
        match command.group_id().or(timer.as_ref().map(|(group_id, _)| group_id)) {
            Some(group_id) => of_group(ctx, command, group_id, &records, timer.as_ref().map(|(_, kind)| *kind)),
            None => deletions(ctx, &records),
        }
    }
    ctx.out.records = records;
}

fn of_group(ctx: &mut Ctx<'_, '_>, command: &Command, group_id: &KStr, records: &[Record], timer: Option<Kind>) {
    let state = ctx.state;
    let before = state.group(group_id);
    let protocol = protocol_after(before, records);
    let findings = match protocol {
        "streams" => group::streams::findings(before, group_id, records, ctx),
        "consumer" => group::consumer::findings(before, group_id, records, ctx),
        _ => group::classic::findings(before, group_id, records, ctx),
    };
    // Notes that handlers have taken come first: they are about what led here.
    let farewell = Farewell { command, timer };
    ctx.soft.journal.touched = Some(group_id.to_owned_detached());
    compose(ctx, group_id, protocol, findings, &farewell);
}

/// What the group will be. Tombstones of another protocol may stand before its own records.
fn protocol_after(before: Option<&Group>, records: &[Record]) -> &'static str {
    let of_record = |record: &Record| match record {
        Record::OffsetCommit(..) => None,
        Record::GroupMetadata(..) => Some("classic"),
        Record::StreamsMetadata(..)
        | Record::StreamsMember(..)
        | Record::StreamsTargetMetadata(..)
        | Record::StreamsTargetMember(..)
        | Record::StreamsCurrentMember(..)
        | Record::StreamsTopology(..) => Some("streams"),
        _ => Some("consumer"),
    };
    let written = records.iter().rev().filter(|record| !record.is_tombstone()).find_map(of_record);
    written.or(before.map(Group::type_name)).unwrap_or("classic")
}

/// Groups that are removed by a command about many of them.
fn deletions(ctx: &mut Ctx<'_, '_>, records: &[Record]) {
    for record in records {
        let gone = matches!(
            record,
            Record::GroupMetadata(_, None) | Record::ConsumerMetadata(_, None) | Record::StreamsMetadata(_, None)
        );
        if gone && let Some(group) = ctx.state.group(record.group_id()) {
            ctx.soft.journal.forget(record.group_id());
            let event = Event::new(ctx.at, record.group_id(), group.type_name(), Kind::Deleted);
            ctx.out.events.push(Event { detail: Some("its offsets had expired".to_owned()), ..event });
        }
    }
}

/// Why members that are removed are removed.
struct Farewell<'a> {
    command: &'a Command,
    timer: Option<Kind>,
}

impl Farewell<'_> {
    fn of(&self, who: &Who) -> (Kind, Option<String>) {
        if let Some(kind) = self.timer {
            return (kind, None);
        }
        match self.command {
            Command::LeaveGroup(caller, request) => of_leave(caller, request, who),
            _ => (Kind::MemberLeft, None),
        }
    }
}

/// Whoever is named by its instance alone, or by another client, has not left by itself. The reason is that of KIP-800.
pub(crate) fn of_leave(caller: &Caller, request: &LeaveGroupRequest, who: &Who) -> (Kind, Option<String>) {
    let is_meant = |identity: &&wire::messages::leave_group_request::MemberIdentity| {
        identity.member_id == who.member_id
            || (identity.member_id.is_empty() && identity.group_instance_id == who.instance_id)
    };
    let identity = request.members.iter().find(is_meant);
    let reason = identity.and_then(|identity| identity.reason.as_ref()).filter(|reason| !reason.is_empty());
    let by_itself = caller.client_id == who.client_id && identity.is_none_or(|identity| !identity.member_id.is_empty());
    let kind = if by_itself { Kind::MemberLeft } else { Kind::MemberRemoved };
    (kind, reason.map(|reason| reason.to_string()))
}

/// Events from findings, in the order in which people tell them.
fn compose(
    ctx: &mut Ctx<'_, '_>,
    group_id: &KStr,
    protocol: &'static str,
    findings: Findings,
    farewell: &Farewell<'_>,
) {
    let (at, journal) = (ctx.at, &mut ctx.soft.journal);
    let new = |kind| Event::new(at, group_id, protocol, kind);
    let mut events: Vec<Event> = Vec::new();
    if findings.deleted {
        journal.forget(group_id);
        ctx.out.events.push(new(Kind::Deleted));
        return;
    }
    if let Some(from) = findings.converted_from {
        events.push(Event { detail: Some(format!("from {from} to {protocol}")), ..new(Kind::Converted) });
    }
    let mut causes = findings.causes;
    if findings.epoch.is_some() && causes.is_empty() {
        let kind = if protocol == "streams" { Kind::WarmupProgress } else { Kind::TopicsChanged };
        causes.push(Cause::plain(kind));
    }
    for Cause { mut kind, who, topics, mut detail } in causes {
        if let (Kind::MemberLeft, Some(who)) = (kind, &who) {
            let (why, reason) = farewell.of(who);
            (kind, detail) = (why, detail.or(reason));
        }
        match events.last_mut() {
            // One thing that a member did, with more than one consequence.
            Some(last) if last.who == who && last.kind != Kind::Converted => {
                last.also.push(kind);
                last.topics.extend(topics);
                last.detail = last.detail.take().or(detail);
            }
            _ => events.push(Event { who, topics, detail, epoch: findings.epoch, ..new(kind) }),
        }
    }
    if let Some((old, _)) = findings.epoch {
        journal.open(group_id, at, old);
    }
    let is_target = findings.assigned && (!findings.shifts.is_empty() || findings.epoch.is_some());
    if !findings.shifts.is_empty() || is_target {
        let mut none = moves::Orphans::new();
        let later = !findings.assigned && !findings.emptied;
        let orphans = journal.get(group_id).map_or(&mut none, |open| &mut open.orphans);
        let moves = moves::of(findings.shifts, orphans, later);
        if events.is_empty() && is_target {
            events.push(new(Kind::Assigned));
        }
        if let Some(event) = events.last_mut() {
            event.moved = moves.len();
            event.moves = moves;
            event.moves.truncate(MAX_MOVES);
        }
    }
    for who in findings.arrived {
        journal.arrived(group_id, at, who);
    }
    if findings.emptied {
        journal.close(group_id);
        events.push(new(Kind::Emptied));
    }
    ctx.out.events.append(&mut events);
}

/// After the records were applied: a group that has become stable has done with its rebalance.
pub(crate) fn settled(state: &State, soft: &mut shard::Soft, at: Moment, events: &mut Vec<Event>) {
    let Some(group_id) = soft.journal.touched.take() else { return };
    if !soft.journal.is_open(&group_id) {
        return;
    }
    let Some(group) = state.group(&group_id) else { return soft.journal.forget(&group_id) };
    let (is_settled, epoch, is_empty) = match group {
        Group::Classic(group) => {
            (group.is_assigned(soft, &group_id), group.generation(), group.is_empty(soft, &group_id))
        }
        Group::Consumer(group) => (group.is_settled(), group.epoch(), group.is_empty()),
        Group::Streams(group) => (group.is_settled(soft, &group_id), group.epoch(), group.is_empty()),
    };
    if !is_settled && !is_empty {
        return;
    }
    let Some(open) = soft.journal.close(&group_id).filter(|_| !is_empty) else { return };
    let took_ms = Some(at.mono_ms.saturating_sub(open.since_ms));
    let epoch = Some((open.old_epoch, epoch));
    let event = Event::new(at, &group_id, group.type_name(), Kind::Stable);
    // The moves of a classic group come with its assignment, which is also its end.
    match events.iter_mut().rfind(|event| event.kind == Kind::Stable && event.group_id == group_id) {
        Some(event) => {
            (event.took_ms, event.epoch) = (took_ms, epoch);
            event.waited_for = open.waited_for();
        }
        None => events.push(Event { took_ms, epoch, waited_for: open.waited_for(), ..event }),
    }
}

/// A request that was refused although the group exists, if people care.
fn refusal(ctx: &Ctx<'_, '_>, command: &Command) -> Option<Event> {
    let (_, reply) = ctx.out.replies.iter().rfind(|(ticket, _)| *ticket == ctx.ticket)?;
    let (code, message) = match reply {
        Reply::Heartbeat(reply) => (reply.error_code, None),
        Reply::ConsumerGroupHeartbeat(reply) => (reply.error_code, reply.error_message.as_ref()),
        Reply::StreamsGroupHeartbeat(reply) => (reply.error_code, reply.error_message.as_ref()),
        Reply::JoinGroup(reply) => (reply.error_code, None),
        Reply::SyncGroup(reply) => (reply.error_code, None),
        Reply::OffsetCommit(reply) => (reply.topics.first()?.partitions.first()?.error_code, None),
        Reply::TxnOffsetCommit(reply) => (reply.topics.first()?.partitions.first()?.error_code, None),
        _ => return None,
    };
    let error = ErrorCode::try_from(code).ok()?;
    let ordinary = matches!(
        error,
        ErrorCode::None
            | ErrorCode::RebalanceInProgress
            | ErrorCode::MemberIdRequired
            | ErrorCode::GroupIdNotFound
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::OffsetMetadataTooLarge
    );
    if ordinary {
        return None;
    }
    let group = ctx.state.group(command.group_id()?)?;
    let (caller, member_id, instance_id) = sender(command)?;
    let who = Who::new(member_id, instance_id, &caller.client_id, &caller.client_host);
    let detail = match message {
        Some(message) => format!("{}: {message}", error.name()),
        None => format!("{}: {}", error.name(), error.message()),
    };
    let event = Event::new(ctx.at, command.group_id()?, group.type_name(), Kind::Refused);
    Some(Event { group_id: event.group_id.to_owned_detached(), who: Some(who), detail: Some(detail), ..event })
}

/// The member that a request says it comes from.
fn sender(command: &Command) -> Option<(&Caller, &KStr, Option<&KStr>)> {
    Some(match command {
        Command::JoinGroup(caller, request) => (caller, &request.member_id, request.group_instance_id.as_ref()),
        Command::SyncGroup(caller, request) => (caller, &request.member_id, request.group_instance_id.as_ref()),
        Command::Heartbeat(caller, request) => (caller, &request.member_id, request.group_instance_id.as_ref()),
        Command::ConsumerGroupHeartbeat(caller, request) => (caller, &request.member_id, request.instance_id.as_ref()),
        Command::StreamsGroupHeartbeat(caller, request) => (caller, &request.member_id, request.instance_id.as_ref()),
        Command::OffsetCommit(caller, request) => (caller, &request.member_id, request.group_instance_id.as_ref()),
        Command::TxnOffsetCommit(caller, request) => (caller, &request.member_id, request.group_instance_id.as_ref()),
        _ => return None,
    })
}
