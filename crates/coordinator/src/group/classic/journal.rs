//! What a classic group's journal is told: notes that its handlers take, since its rebalances are not logged, and what
//! the record of a new assignment says.

use std::collections::{BTreeMap, BTreeSet};

use wire::messages::consumer_protocol_assignment::ConsumerProtocolAssignment;
use wire::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};
use wire::messages::leave_group_request::LeaveGroupRequest;
use wire::{Bytes, KStr, Message, Reader};

use super::live::GroupState;
use super::scope::Scope;
use super::{Group, read, subscription};
use crate::command::Caller;
use crate::group::Group as AnyGroup;
use crate::journal::{Cause, Event, Findings, Kind, Role, Shift, Who, of_leave};
use crate::record::Record;
use crate::shard::{Ctx, Soft};

const PROTOCOL: &str = "classic";

impl Scope<'_> {
    /// Something happened to a member that it takes a new generation to answer, or that ends one that is being made.
    pub(super) fn note(&mut self, kind: Kind, member_id: &str, detail: Option<String>) {
        let Some((id, member)) = self.group.members().get_key_value(member_id) else { return };
        let who = Who::new(id, member.instance_id.as_ref(), &member.client_id, &member.client_host);
        let (old, new) = (self.group.generation, self.group.generation.wrapping_add(1));
        let group_id = &self.group.group_id;
        self.journal.rebalance_begins(group_id, self.at, old);
        let event = Event::new(self.at, group_id, PROTOCOL, kind);
        self.out.events.push(Event { who: Some(who), epoch: Some((old, new)), detail, ..event });
    }

    /// The member leaves, or somebody makes it leave.
    pub(super) fn note_leave(&mut self, caller: &Caller, request: &LeaveGroupRequest, member_id: &str) {
        let Some((id, member)) = self.group.members().get_key_value(member_id) else { return };
        let who = Who::new(id, member.instance_id.as_ref(), &member.client_id, &member.client_host);
        let (kind, reason) = of_leave(caller, request, &who);
        self.note(kind, member_id, reason);
    }

    /// A static member is another process now; nothing moves.
    pub(super) fn note_return(&mut self, member_id: &str, old_id: &str) {
        let Some((id, member)) = self.group.members().get_key_value(member_id) else { return };
        let who = Who::new(id, member.instance_id.as_ref(), &member.client_id, &member.client_host);
        let event = Event::new(self.at, &self.group.group_id, PROTOCOL, Kind::MemberReturned);
        self.out.events.push(Event { who: Some(who), detail: Some(format!("it was {old_id}")), ..event });
    }

    /// The member asks for a rebalance: because topics of the group changed, as far as the broker can tell, or for a
    /// reason of its own.
    pub(super) fn note_rejoin(&mut self, kind: Kind, member_id: &str, reason: Option<String>) {
        self.note(kind, member_id, reason);
        let subscribed = self.group.subscribed.as_ref();
        let concerns = |name: &str| subscribed.is_some_and(|topics| topics.contains(name));
        let changed = self.journal.topics_of(&self.group.group_id, concerns);
        if let (Some((kind, topics)), Some(event)) = (changed, self.out.events.last_mut()) {
            event.also.push(event.kind);
            (event.kind, event.topics) = (kind, topics);
        }
    }

    /// The member has joined the generation that is being made.
    pub(super) fn note_arrival(&mut self, member_id: &str) {
        if let Some((id, member)) = self.group.members().get_key_value(member_id) {
            let who = Who::new(id, member.instance_id.as_ref(), &member.client_id, &member.client_host);
            self.journal.arrived(&self.group.group_id, self.at, who);
        }
    }
}

impl Group {
    /// Whether every member has, or can have, its assignment.
    pub(crate) fn is_assigned(&self, soft: &Soft, group_id: &KStr) -> bool {
        read(self, soft, group_id, |live| matches!(live.state(), GroupState::Stable | GroupState::Empty))
    }

    /// Members have used it; else it was made for offsets, or for a join.
    pub(crate) fn has_protocol(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| !stored.protocol_type.is_empty())
    }

    /// Generation and number of members.
    pub(crate) fn size(&self, soft: &Soft, group_id: &str) -> (i32, usize) {
        read(self, soft, &KStr::copy(group_id), |live| (live.generation, live.members().len()))
    }

    pub(crate) fn generation(&self) -> i32 {
        self.stored.as_ref().map_or(0, |stored| stored.generation)
    }
}

/// What the records of a command mean.
pub(crate) fn findings(
    before: Option<&AnyGroup>,
    group_id: &KStr,
    records: &[Record],
    ctx: &mut Ctx<'_, '_>,
) -> Findings {
    let group = match before {
        Some(AnyGroup::Classic(group)) => Some(group),
        _ => None,
    };
    let converted_from = before.filter(|_| group.is_none()).and_then(AnyGroup::name_if_used);
    let written = records.iter().rev().find_map(|record| match record {
        Record::GroupMetadata(_, value) => Some(value.as_ref()),
        _ => None,
    });
    let Some(Some(value)) = written else { return Findings { deleted: true, ..Findings::default() } };
    let stored = group.and_then(|group| group.stored.as_ref());
    let generation = stored.map_or(0, |stored| stored.generation);
    if value.members.is_empty() {
        if generation != value.generation {
            ctx.soft.journal.topics_are_known(group_id);
        }
        return Findings {
            emptied: stored.is_some_and(|stored| !stored.members.is_empty()),
            converted_from,
            ..Findings::default()
        };
    }
    // A static member that came back has a record too, but nothing is assigned anew.
    if generation == value.generation {
        return Findings { converted_from, ..Findings::default() };
    }
    ctx.soft.journal.topics_are_known(group_id);
    let causes = vec![Cause { detail: Some(how(value)), ..Cause::plain(Kind::Stable) }];
    let epoch = Some((generation, value.generation));
    Findings { epoch, causes, shifts: shifts(stored, value), assigned: true, converted_from, ..Findings::default() }
}

fn how(value: &GroupMetadataValue) -> String {
    let protocol = value.protocol.as_ref().map_or("", KStr::as_str);
    let leader = value.leader.as_ref().map_or("", KStr::as_str);
    format!("assigned by {leader} with {protocol}")
}

/// Only groups of consumers have assignments that the broker can read.
fn shifts(before: Option<&GroupMetadataValue>, after: &GroupMetadataValue) -> Vec<Shift> {
    if after.protocol_type != subscription::CONSUMER {
        return Vec::new();
    }
    let by_member = |members: &[MemberMetadata]| -> BTreeMap<KStr, BTreeSet<(KStr, i32)>> {
        members.iter().map(|member| (member.member_id.clone(), partitions(&member.assignment))).collect()
    };
    let mut old = before.map(|before| by_member(&before.members)).unwrap_or_default();
    let mut shifts = Vec::new();
    let mut shift = |member_id: &KStr, before: &BTreeSet<(KStr, i32)>, after: &BTreeSet<(KStr, i32)>| {
        let name = |(topic, partition): &(KStr, i32)| format!("{topic}-{partition}");
        shifts.extend(Shift::between(member_id, Role::Partition, before, after, name));
    };
    for (member_id, now) in by_member(&after.members) {
        let then = old.remove(&member_id).unwrap_or_default();
        shift(&member_id, &then, &now);
    }
    for (member_id, then) in old {
        shift(&member_id, &then, &BTreeSet::new());
    }
    shifts
}

/// Every version of an assignment begins with what version 0 is; one that cannot be read is empty.
fn partitions(assignment: &Bytes) -> BTreeSet<(KStr, i32)> {
    let mut reader = Reader::new(assignment);
    let read = |reader: &mut Reader<'_>| {
        let version = reader.i16().ok()?;
        (version >= ConsumerProtocolAssignment::MIN_VERSION).then_some(())?;
        ConsumerProtocolAssignment::decode(reader, 0).ok()
    };
    let topics = read(&mut reader).map(|assignment| assignment.assigned_partitions).unwrap_or_default();
    let pairs =
        topics.into_iter().flat_map(|topic| topic.partitions.into_iter().map(move |p| (topic.topic.clone(), p)));
    pairs.collect()
}
